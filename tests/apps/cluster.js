// SPDX-License-Identifier: GPL-2.0
// cluster.js POLICY ADDRESS PORT - an http server of three workers that says who answers
//
// rr: the first process accepts and passes each connection to a worker.
// none: the workers get the listening socket and accept themselves.
'use strict';
const cluster = require('cluster');
const http = require('http');
const [policy, address, port] = process.argv.slice(2);

if (cluster.isPrimary) {
  cluster.schedulingPolicy = policy === 'rr' ? cluster.SCHED_RR : cluster.SCHED_NONE;
  for (let i = 0; i < 3; i++)
    cluster.fork();
  // A worker that was asked to end is replaced. First no connection is passed to it any more: one that a worker has not taken
  // when it exits is nobody's, and its client waits for ever.
  cluster.on('message', (worker) => worker.disconnect());
  cluster.on('exit', () => cluster.fork());
} else {
  http.createServer((request, response) => {
    response.setHeader('connection', 'close');
    response.end(`worker ${process.pid}\n`);
    if (request.url === '/end')
      response.on('finish', () => process.send('end'));
  }).listen(port, address);
}
