// SPDX-License-Identifier: GPL-2.0
//! Running the two ends of one measurement, and ending them whatever happens.

use crate::figure::Output;
use crate::tool;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a program may take beyond the seconds it was asked for.
const PATIENCE: Duration = Duration::from_secs(20);
/// A server ends by itself, or when told to, within this.
const PARTING: Duration = Duration::from_millis(500);

/// A program that is ended when this is dropped: asked first, so that a node's program
/// is not killed in the middle of kernel code.
///
/// A thread waits for it: who looked again and again would do so on the CPUs that are measured.
pub struct Ended {
    pid: u32,
    name: String,
    out: Option<ChildStdout>,
    err: Option<ChildStderr>,
    exit: mpsc::Receiver<std::io::Result<ExitStatus>>,
    status: Option<ExitStatus>,
}

impl Ended {
    fn start(mut command: Command, name: &str) -> Result<Ended, String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{name}: {e}"))?;
        let (send, exit) = mpsc::channel();
        let ended = Ended {
            pid: child.id(),
            name: name.to_string(),
            out: child.stdout.take(),
            err: child.stderr.take(),
            exit,
            status: None,
        };
        std::thread::spawn(move || send.send(child.wait()));
        Ok(ended)
    }

    /// Asks it to end, and waits for that.
    pub fn end(self) {
        self.signal("-TERM");
    }

    /// How it ended, if it did within `time`.
    fn wait(&mut self, time: Duration) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.exit.recv_timeout(time).ok()?.ok();
        }
        self.status
    }

    fn signal(&self, name: &str) {
        // One that has just ended needs none.
        let _ = tool::output(Command::new("kill").args([name, &self.pid.to_string()]));
    }

    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(err) = self.err.as_mut() {
            let _ = err.read_to_string(&mut text);
        }
        text.trim().lines().last().unwrap_or("").to_string()
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if self.wait(PARTING).is_some() {
            return;
        }
        self.signal("-TERM");
        if self.wait(Duration::from_secs(3)).is_none() {
            let Ended { name, pid, .. } = self;
            eprintln!("bench: {name} (pid {pid}) did not end and is killed");
            self.signal("-KILL");
            self.wait(Duration::from_secs(3));
        }
    }
}

/// The output of the asking end, by key.
pub type Values = BTreeMap<String, f64>;

pub fn measure(
    far: Option<Command>,
    near: Command,
    output: Output,
    seconds: f64,
) -> Result<Values, String> {
    let server = match far {
        Some(command) => Some(serve(command)?),
        None => None,
    };
    let values = ask(near, output, seconds)?;
    drop(server);
    Ok(values)
}

/// Runs an asking end to its end.
pub fn ask(near: Command, output: Output, seconds: f64) -> Result<Values, String> {
    let limit = PATIENCE + Duration::from_secs_f64(seconds);
    let mut client = Ended::start(near, "the asking end")?;
    let (send, text) = mpsc::channel();
    let mut out = client.out.take().ok_or("no output")?;
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = out.read_to_string(&mut text).map(|_| send.send(text));
    });
    let status = client
        .wait(limit)
        .ok_or_else(|| format!("the asking end took over {limit:?}"))?;
    if !status.success() {
        return Err(format!("the asking end: {status}: {}", client.complaint()));
    }
    let text = text
        .recv_timeout(Duration::from_secs(1))
        .map_err(|_| "the asking end's output can't be read")?;
    read(output, &text)
}

/// Starts a server and waits for its first line.
pub fn serve(command: Command) -> Result<Ended, String> {
    let mut server = Ended::start(command, "the serving end")?;
    let out = server.out.take().ok_or("no output")?;
    let (send, first) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines() {
            if send.send(line.is_ok()).is_err() || line.is_err() {
                break;
            }
        }
    });
    match first.recv_timeout(PATIENCE) {
        Ok(true) => {
            // Go on reading, so that the server never writes into a closed pipe.
            std::thread::spawn(move || while first.recv().is_ok() {});
            Ok(server)
        }
        _ => {
            if server.wait(PARTING).is_some() {
                return Err(format!("the serving end: {}", server.complaint()));
            }
            Err("the serving end does not get ready".into())
        }
    }
}

fn read(output: Output, text: &str) -> Result<Values, String> {
    let number = |word: &str| {
        word.parse::<f64>()
            .map_err(|_| format!("not a number: '{word}'"))
    };
    match output {
        Output::Number => Ok(Values::from([("value".into(), number(text.trim())?)])),
        Output::Lines => text
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| match line.split_once(' ') {
                Some((key, value)) => Ok((key.to_string(), number(value)?)),
                None => Err(format!("not 'KEY VALUE': '{line}'")),
            })
            .collect(),
        Output::Wrk => wrk(text),
    }
}

/// Requests a second and the latency distribution, in microseconds.
fn wrk(text: &str) -> Result<Values, String> {
    let mut values = Values::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Requests/sec:", rate] => {
                values.insert("rate".into(), rate.parse().map_err(|_| line.to_string())?);
            }
            ["50%", time] => drop(values.insert("p50".into(), micros(time)?)),
            ["99%", time] => drop(values.insert("p99".into(), micros(time)?)),
            ["Non-2xx", ..] | ["Socket", "errors:", ..] => {
                return Err(format!("wrk: {}", line.trim()));
            }
            _ => {}
        }
    }
    match values.contains_key("rate") {
        true => Ok(values),
        false => Err(format!("wrk said: {}", text.trim())),
    }
}

fn micros(word: &str) -> Result<f64, String> {
    let at = word.find(|c: char| c.is_alphabetic()).unwrap_or(word.len());
    let scale = match &word[at..] {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return Err(format!("not a time: '{word}'")),
    };
    word[..at]
        .parse::<f64>()
        .map(|n| n * scale)
        .map_err(|_| format!("not a time: '{word}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_and_ends() {
        let shell = |line: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", line]);
            command
        };
        let run = |line: &str| measure(None, shell(line), Output::Lines, 0.1);
        assert_eq!(run("sleep 0.1; echo p50 2").unwrap()["p50"], 2.0);
        let why = run("echo it broke >&2; exit 3").unwrap_err();
        assert!(why.contains("exit status: 3: it broke"), "{why}");
        let mut slow = Ended::start(shell("exec sleep 60"), "a slow one").unwrap();
        assert!(slow.wait(Duration::from_millis(20)).is_none());
        slow.signal("-TERM");
        assert!(slow.wait(Duration::from_secs(5)).is_some());
        let serve = shell("trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done");
        let both = measure(Some(serve), shell("echo rate 1"), Output::Lines, 0.1);
        assert_eq!(both.unwrap()["rate"], 1.0);
    }

    #[test]
    fn reads_what_programs_print() {
        let values = read(Output::Lines, "p50 1.5\n\nrate 20\n").unwrap();
        assert_eq!((values["p50"], values["rate"]), (1.5, 20.0));
        assert!(read(Output::Lines, "nonsense\n").is_err());
        assert_eq!(read(Output::Number, "17.5\n").unwrap()["value"], 17.5);
        let text = "  Latency Distribution\n     50%  1.20ms\n     99%   30.5us\n\
                    Requests/sec:  19087.06\n";
        let values = read(Output::Wrk, text).unwrap();
        assert_eq!((values["p50"], values["p99"]), (1200.0, 30.5));
        assert!(read(Output::Wrk, "Requests/sec: 1\nSocket errors: connect 1\n").is_err());
        assert!(read(Output::Wrk, "unable to connect").is_err());
    }
}
