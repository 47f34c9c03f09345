// SPDX-License-Identifier: GPL-2.0
//! How far a simulation is: virtual time, how much faster than real time it goes, when it will be over.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use ring3_sim::run::Watcher;

use crate::say;

/// A simulation that is over sooner shows nothing.
const SILENCE: Duration = Duration::from_secs(2);
/// Where there is no terminal: a line after so long, then after twice as long each time.
const FIRST_LINE: Duration = Duration::from_secs(10);

pub struct Progress {
    stop: Duration,
    begun: Instant,
    bar: Option<ProgressBar>,
    next_line: Duration,
    said_making: bool,
    /// What gdb is to read.
    script: PathBuf,
}

impl Progress {
    pub fn new(stop: Duration, script: PathBuf) -> Progress {
        Progress {
            stop,
            begun: Instant::now(),
            bar: None,
            next_line: FIRST_LINE,
            said_making: false,
            script,
        }
    }

    fn words(&self, at: Duration) -> String {
        let wall = self.begun.elapsed().as_secs_f64().max(1e-9);
        let speed = at.as_secs_f64() / wall;
        let rest = (self.stop.saturating_sub(at)).as_secs_f64() / speed.max(1e-9);
        format!(
            "{:.1} s of {:.1} s virtual, {speed:.1} times as fast, {rest:.0} s left",
            at.as_secs_f64(),
            self.stop.as_secs_f64(),
        )
    }

    pub fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Watcher for Progress {
    fn making(&mut self, done: usize, of: usize) {
        if self.begun.elapsed() >= SILENCE && !self.said_making {
            self.said_making = true;
            say::complain(format_args!(
                "making the network: {done} of {of} namespaces so far"
            ));
        }
    }

    fn debugger(&mut self) {
        say::complain(format_args!(
            "waits for a debugger: gdb -x {}",
            shell_words::quote(&self.script.to_string_lossy())
        ));
    }

    fn ready(&mut self) {
        self.begun = Instant::now();
    }

    fn tick(&mut self, at: Duration) {
        let wall = self.begun.elapsed();
        if !std::io::stderr().is_terminal() {
            if wall >= self.next_line {
                self.next_line *= 2;
                say::complain(self.words(at));
            }
            return;
        }
        if wall < SILENCE {
            return;
        }
        let words = self.words(at);
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new(self.stop.as_nanos() as u64);
            if let Ok(style) = ProgressStyle::with_template("{wide_bar} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        bar.set_position(at.as_nanos() as u64);
        bar.set_message(words);
    }

    fn event(&mut self, at: Duration, label: &str) {
        match &self.bar {
            Some(bar) => bar.println(format!("{:10.3} s  {label}", at.as_secs_f64())),
            None => log::info!("{:10.3} s  {label}", at.as_secs_f64()),
        }
    }
}
