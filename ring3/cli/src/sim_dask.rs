// SPDX-License-Identifier: GPL-2.0
//! `ring3 sim --seeds --dask`: a search's runs on the workers of a Dask cluster.
//!
//! dask.py is the client, a child of this process. Threads of the search ask it for runs; one thread hears the answers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::error::{Failure, Result};

const CLIENT: &str = include_str!("dask.py");

/// How a command went on a worker.
#[derive(Debug, Deserialize)]
pub struct Ran {
    /// Negative: a signal ended it. None: it was not started, or its worker was lost.
    pub status: Option<i32>,
    /// Or why there is no status.
    pub stderr: String,
}

#[derive(Debug, Deserialize)]
struct Each {
    worker: String,
    /// None: it has left no results.
    hash: Option<String>,
    #[serde(flatten)]
    ran: Ran,
}

#[derive(Debug, Deserialize)]
struct Hello {
    workers: Vec<String>,
    threads: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum What<'a> {
    Run(&'a [String]),
    Each(&'a [String]),
}

#[derive(Debug, Serialize)]
struct Request<'a> {
    id: u64,
    #[serde(flatten)]
    what: What<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<&'a Path>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    id: u64,
    #[serde(flatten)]
    rest: serde_json::Value,
}

type Waiting = Arc<Mutex<HashMap<u64, Sender<serde_json::Value>>>>;

pub struct Cluster {
    child: Child,
    /// And the number of the next request.
    requests: Mutex<(ChildStdin, u64)>,
    waiting: Waiting,
    pub workers: Vec<String>,
    /// Runs at a time.
    pub threads: usize,
}

fn said(words: impl Into<String>) -> Failure {
    ring3_sim::Error::Said(words.into()).into()
}

impl Cluster {
    pub fn connect(address: &str) -> Result<Cluster> {
        let mut child = Command::new("python3")
            .args(["-c", CLIENT, address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Failure::host("start python3, for --dask"))?;
        let (Some(to), Some(from), Some(mut complaints)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(said("--dask: its client has no pipes"));
        };
        let mut answers = BufReader::new(from).lines();
        let hello = answers.next().and_then(std::result::Result::ok);
        let Some(hello) = hello.and_then(|line| serde_json::from_str::<Hello>(&line).ok()) else {
            let mut words = String::new();
            let _ = complaints.read_to_string(&mut words);
            let _ = child.wait();
            let line = words
                .lines()
                .last()
                .unwrap_or("its client ended without a word");
            return Err(said(format!("--dask {address}: {line}")));
        };
        if hello.workers.is_empty() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(said(format!(
                "--dask {address}: the scheduler has no workers: start some with `dask worker {address}`"
            )));
        }
        // What the client complains of later is of no use to anybody, and must not fill its pipe.
        std::thread::spawn(move || std::io::copy(&mut complaints, &mut std::io::sink()));
        let waiting = Waiting::default();
        let list = Arc::clone(&waiting);
        std::thread::spawn(move || {
            for line in answers.map_while(std::result::Result::ok) {
                let Ok(answer) = serde_json::from_str::<Answer>(&line) else {
                    continue;
                };
                let who = list
                    .lock()
                    .ok()
                    .and_then(|mut list| list.remove(&answer.id));
                if let Some(who) = who {
                    let _ = who.send(answer.rest);
                }
            }
            // Who waits then, waits no more.
            if let Ok(mut list) = list.lock() {
                list.clear();
            }
        });
        Ok(Cluster {
            child,
            requests: Mutex::new((to, 0)),
            waiting,
            workers: hello.workers,
            threads: hello.threads.max(1),
        })
    }

    fn ask(&self, what: What, folder: Option<&Path>) -> Result<serde_json::Value> {
        let gone = || said("--dask: its client has ended");
        let (answer, heard) = channel();
        {
            let mut requests = self.requests.lock().map_err(|_| gone())?;
            let id = requests.1;
            requests.1 += 1;
            self.waiting.lock().map_err(|_| gone())?.insert(id, answer);
            let request = Request { id, what, folder };
            let line = serde_json::to_string(&request)
                .map_err(|why| Failure::host("print")(why.into()))?;
            writeln!(requests.0, "{line}").map_err(Failure::host("ask the Dask cluster"))?;
        }
        heard.recv().map_err(|_| gone())
    }

    /// Runs a command on one of the workers. A run that came to no end says nothing of its seed, so it is an error.
    pub fn run(&self, words: &[String]) -> Result<Ran> {
        let answer = self.ask(What::Run(words), None)?;
        let ran: Ran =
            serde_json::from_value(answer).map_err(|why| said(format!("--dask: {why}")))?;
        match ran.status {
            Some(_) => Ok(ran),
            None => Err(said(format!("--dask: {}", ran.stderr))),
        }
    }

    /// Runs a command on each worker, and compares what they leave in the folder.
    pub fn compare(&self, words: &[String], folder: &Path) -> Result<()> {
        let mut answer = self.ask(What::Each(words), Some(folder))?;
        let each: Vec<Each> = serde_json::from_value(answer["each"].take())
            .map_err(|why| said(format!("--dask: {why}")))?;
        let Some(first) = each.first() else {
            return Err(said("--dask: no worker has answered"));
        };
        // A process that did not end as expected is for the search to say; there are results then.
        let has_run = |one: &Each| one.hash.is_some() && matches!(one.ran.status, Some(0 | 1));
        if let Some(bad) = each.iter().find(|one| !has_run(one)) {
            let line = bad.ran.stderr.lines().last().unwrap_or("it says nothing");
            return Err(said(format!(
                "--dask: worker {} cannot run the scenario: {line}",
                bad.worker
            )));
        }
        match each.iter().find(|one| one.hash != first.hash) {
            None => Ok(()),
            Some(other) => Err(said(format!(
                "--dask: workers {} and {} have different results for one seed: they need the same ring3, the same programs and \
                 processors that programs take for the same",
                first.worker, other.worker
            ))),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
