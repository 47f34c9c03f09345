// SPDX-License-Identifier: GPL-2.0
// http.js serve ADDRESS PORT FOLDER | fetch URL - see src/apps/languages.rs
'use strict';
const http = require('http');
const fs = require('fs');
const path = require('path');

function serve(address, port, folder) {
	http.createServer((request, response) => {
		const file = path.join(folder, path.basename(request.url.split('?')[0]));
		const stream = fs.createReadStream(file);
		stream.on('error', () => { response.statusCode = 404; response.end(); });
		stream.on('open', () => {
			response.setHeader('Content-Length', fs.statSync(file).size);
			stream.pipe(response);
		});
	}).listen(Number(port), address);
}

function get(url, agent) {
	return new Promise((resolve, reject) => {
		http.get(url, { agent }, (response) => {
			const parts = [];
			response.on('data', (part) => parts.push(part));
			response.on('end', () => resolve(Buffer.concat(parts)));
			response.on('error', reject);
		}).on('error', reject);
	});
}

async function fetchAll(base) {
	const agent = new http.Agent({ keepAlive: true, maxSockets: 20 });
	const large = await get(base + '/large', agent);
	const all = [];
	for (let i = 0; i < 500; i++)
		all.push(get(base + '/small?' + i, agent));
	const right = (await Promise.all(all)).filter((b) => b.toString() === 'hello\n').length;
	console.log(`${large.length} ${right}`);
	agent.destroy();
}

if (process.argv[2] === 'serve')
	serve(...process.argv.slice(3));
else
	fetchAll(process.argv[3]).catch((e) => { console.error(e); process.exit(1); });
