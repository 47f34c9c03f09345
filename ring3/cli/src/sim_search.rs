// SPDX-License-Identifier: GPL-2.0
//! `ring3 sim --seeds`: many seeds of a scenario, several at a time, and what makes it fail.
//!
//! Each run is a `ring3 sim` of its own with a data folder of its own. It fails if that does, or if the program
//! given by --judge does. Folders of runs that pass are removed.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressStyle};
use ring3_sim::data;
use ring3_sim::faults::{self, Fault, Kind};
use ring3_sim::read;
use ring3_sim::scenario::Scenario;
use ring3_sim::yaml::Node;
use serde::Serialize;

use crate::args;
use crate::error::{Failure, Result};
use crate::say;
use crate::sim_dask::Cluster;

/// How a run went.
#[derive(Debug, Serialize)]
struct Run {
    seed: u64,
    ok: bool,
    /// Why it failed, in one line.
    why: String,
    faults: Vec<String>,
    /// Where its results are, if it failed.
    data: Option<PathBuf>,
    /// A file with the faults that are enough, for --faults-file.
    minimized: Option<PathBuf>,
}

/// `7`, `1..100`: both ends count.
pub fn seeds(text: &str) -> std::result::Result<std::ops::RangeInclusive<u64>, String> {
    let number = |word: &str| {
        word.parse::<u64>()
            .map_err(|_| format!("`{word}` is not a number"))
    };
    let range = match text.split_once("..") {
        Some((from, to)) => number(from)?..=number(to.trim_start_matches('='))?,
        None => number(text)?..=number(text)?,
    };
    match range.is_empty() {
        true => Err(format!("`{text}` has no seed in it")),
        false => Ok(range),
    }
}

pub fn kind(word: &str) -> std::result::Result<Kind, String> {
    word.parse()
}

struct Search<'a> {
    args: &'a args::Sim,
    /// The scenario that each run reads.
    file: PathBuf,
    scenario: &'a Scenario,
    judge: Vec<String>,
    folder: PathBuf,
    /// Whose workers make the runs; None: this machine.
    cluster: Option<Cluster>,
}

pub fn search(
    args: &args::Sim,
    file: &Path,
    scenario: &Scenario,
    tree: &Node,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u8> {
    let folder = std::path::absolute(&scenario.general.data_directory)
        .map_err(Failure::host("find the data folder"))?;
    if folder.exists() {
        let words = format!(
            "{} exists: remove it, or name another folder by --data-directory",
            folder.display()
        );
        return Err(ring3_sim::Error::Said(words).into());
    }
    // A folder of a search that has not begun would be in the way of the next one.
    let cluster = match &args.dask {
        Some(address) => Some(Cluster::connect(address)?),
        None => None,
    };
    data::folder(&folder)?;
    // What is not in the file is written down, for the runs and for whoever repeats one.
    let file = match read::is_stdin(file) || !args.over.0.is_empty() {
        true => {
            let path = folder.join("scenario.yaml");
            data::write(&path, &tree.to_json())?;
            path
        }
        false => file.to_owned(),
    };
    let judge = match &args.judge {
        Some(text) => shell_words::split(text)
            .map_err(|why| ring3_sim::Error::Said(format!("--judge: {why}")))?,
        None => Vec::new(),
    };
    let search = Search {
        args,
        file,
        scenario,
        judge,
        folder,
        cluster,
    };
    search.compare_workers(*range.start())?;
    let runs = search.all(range)?;
    search.report(runs)
}

impl Search<'_> {
    fn all(&self, range: std::ops::RangeInclusive<u64>) -> Result<Vec<Run>> {
        let count = range.end() - range.start() + 1;
        let bar = match std::io::stderr().is_terminal() {
            true => ProgressBar::new(count),
            false => ProgressBar::hidden(),
        };
        if let Ok(style) =
            ProgressStyle::with_template("{wide_bar} {pos} of {len} seeds, {msg}, {eta} left")
        {
            bar.set_style(style);
        }
        let next = Mutex::new(range);
        let runs = Mutex::new(Vec::new());
        let broken = AtomicBool::new(false);
        let failed = std::sync::atomic::AtomicU64::new(0);
        let work = || -> Result<()> {
            while let Some(seed) = next.lock().ok().and_then(|mut range| range.next()) {
                if broken.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let run = self
                    .one(seed)
                    .inspect_err(|_| broken.store(true, Ordering::Relaxed))?;
                if !run.ok {
                    failed.fetch_add(1, Ordering::Relaxed);
                    bar.suspend(|| say::complain(format_args!("seed {seed} fails: {}", run.why)));
                }
                bar.inc(1);
                bar.set_message(format!("{} fail", failed.load(Ordering::Relaxed)));
                if let Ok(mut runs) = runs.lock() {
                    runs.push(run);
                }
            }
            Ok(())
        };
        let own = || self.cluster.as_ref().map_or_else(cores, |it| it.threads);
        let jobs = self.args.jobs.unwrap_or_else(own).clamp(1, count as usize);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| {
                    Err(ring3_sim::Error::Said("a thread of the search panicked".into()).into())
                })
            })
        })?;
        bar.finish_and_clear();
        let mut runs = runs.into_inner().unwrap_or_default();
        runs.sort_by_key(|run: &Run| run.seed);
        Ok(runs)
    }

    fn one(&self, seed: u64) -> Result<Run> {
        let list = faults::faults(self.scenario, &self.args.faults, seed);
        let data = self.folder.join(format!("seed-{seed}"));
        let why = self.fails(seed, &list, &data)?;
        let mut run = Run {
            seed,
            ok: why.is_none(),
            why: why.unwrap_or_default(),
            faults: labels(&list),
            data: None,
            minimized: None,
        };
        if run.ok {
            return Ok(run);
        }
        run.data = Some(data);
        if self.args.minimize && !list.is_empty() {
            run.minimized = Some(self.shorten(seed, list, &mut run)?);
        }
        Ok(run)
    }

    fn shorten(&self, seed: u64, list: Vec<Fault>, run: &mut Run) -> Result<PathBuf> {
        let data = self.folder.join(format!("seed-{seed}.fewer"));
        let kept = faults::minimize(list, |some| {
            Ok::<_, Failure>(self.fails(seed, some, &data)?.is_some())
        })?;
        if data.exists() {
            remove(&data)?;
        }
        run.faults = labels(&kept);
        let path = self.folder.join(format!("seed-{seed}.faults.json"));
        write_faults(&path, &kept)?;
        Ok(path)
    }

    fn command(&self, seed: u64, faults: &Path, data: &Path) -> Result<Vec<OsString>> {
        let exe = std::env::current_exe().map_err(Failure::host("find where ring3 is"))?;
        // Workers have other folders.
        let file = std::path::absolute(&self.file).map_err(Failure::host("find the scenario"))?;
        let mut words: Vec<OsString> = vec![exe.into(), "sim".into(), file.into()];
        words.extend(["--data-directory".into(), data.into()]);
        words.extend(["--seed".into(), seed.to_string().into()]);
        words.extend(["--faults-file".into(), faults.into()]);
        if self.args.real_time {
            words.push("--real-time".into());
        }
        Ok(words)
    }

    /// Whether the run went well, and what it said.
    fn run(&self, seed: u64, faults: &Path, data: &Path) -> Result<(bool, String)> {
        let words = self.command(seed, faults, data)?;
        if let Some(cluster) = &self.cluster {
            let ran = cluster.run(&texts(&words)?)?;
            return Ok((ran.status == Some(0), ran.stderr));
        }
        let output = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output()
            .map_err(Failure::host("start a run"))?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((output.status.success(), words))
    }

    /// Each worker runs the first seed, and all have to leave the same.
    fn compare_workers(&self, seed: u64) -> Result<()> {
        let Some(cluster) = &self.cluster else {
            return Ok(());
        };
        let data = self.folder.join("compared");
        let faults = self.folder.join("compared.json");
        write_faults(
            &faults,
            &faults::faults(self.scenario, &self.args.faults, seed),
        )?;
        let words = texts(&self.command(seed, &faults, &data)?)?;
        let result = cluster.compare(&words, &data);
        std::fs::remove_file(&faults).map_err(Failure::host("remove a list of faults"))?;
        result?;
        say::complain(format_args!(
            "{} workers, all with the same results of seed {seed}",
            cluster.workers.len()
        ));
        Ok(())
    }

    /// Runs one seed; why it fails, if it does. Its folder stays only then.
    fn fails(&self, seed: u64, list: &[Fault], data: &Path) -> Result<Option<String>> {
        if data.exists() {
            remove(data)?;
        }
        let faults = data.with_extension("json.tmp");
        write_faults(&faults, list)?;
        let (is_good, words) = self.run(seed, &faults, data)?;
        std::fs::remove_file(&faults).map_err(Failure::host("remove a list of faults"))?;
        let mut why = None;
        if !is_good {
            let line = words
                .lines()
                .find(|line| !line.contains("note: "))
                .unwrap_or("it ended without a word");
            why = Some(line.trim_start_matches("ring3: ").to_owned());
        } else if let Some((program, rest)) = self.judge.split_first() {
            let output = Command::new(program)
                .args(rest)
                .arg(data)
                .output()
                .map_err(Failure::host(format!("start {program}")))?;
            if !output.status.success() {
                let words = String::from_utf8_lossy(&output.stdout).into_owned();
                let line = words.lines().last().unwrap_or("it says nothing").to_owned();
                why = Some(format!("{program} ({}): {line}", output.status));
            }
        }
        if why.is_none() {
            remove(data)?;
        }
        Ok(why)
    }

    fn report(&self, runs: Vec<Run>) -> Result<u8> {
        let text = serde_json::to_string_pretty(&runs)
            .map_err(|why| Failure::host("print")(why.into()))?;
        data::write(&self.folder.join("search.json"), &format!("{text}\n"))?;
        let failed: Vec<&Run> = runs.iter().filter(|run| !run.ok).collect();
        if self.args.json {
            say::print(format!("{text}\n"))?;
            return Ok(u8::from(!failed.is_empty()));
        }
        for run in &failed {
            say::print(format!("seed {}: {}\n", run.seed, run.why))?;
            for fault in &run.faults {
                say::print(format!("  {fault}\n"))?;
            }
            say::print(format!("  again: {}\n", self.again(run)))?;
        }
        say::print(format!("{} of {} seeds fail\n", failed.len(), runs.len()))?;
        Ok(u8::from(!failed.is_empty()))
    }

    /// The command that repeats a run.
    fn again(&self, run: &Run) -> String {
        let mut words = vec!["ring3".to_owned(), "sim".to_owned()];
        words.push(self.file.display().to_string());
        words.extend(["--seed".to_owned(), run.seed.to_string()]);
        match &run.minimized {
            Some(path) => words.extend(["--faults-file".to_owned(), path.display().to_string()]),
            None if !self.args.faults.is_empty() => {
                let kinds: Vec<_> = self
                    .args
                    .faults
                    .iter()
                    .map(|kind| format!("{kind:?}").to_lowercase())
                    .collect();
                words.extend(["--faults".to_owned(), kinds.join(",")]);
            }
            None => {}
        }
        if self.args.real_time {
            words.push("--real-time".into());
        }
        shell_words::join(words)
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// For a message to the workers.
fn texts(words: &[OsString]) -> Result<Vec<String>> {
    words
        .iter()
        .map(|word| {
            word.clone().into_string().map_err(|word| {
                let words = format!("--dask: {} is not UTF-8", word.to_string_lossy());
                ring3_sim::Error::Said(words).into()
            })
        })
        .collect()
}

fn labels(list: &[Fault]) -> Vec<String> {
    list.iter().map(|fault| fault.label.clone()).collect()
}

fn remove(path: &Path) -> Result<()> {
    std::fs::remove_dir_all(path).map_err(Failure::host(format!("remove {}", path.display())))
}

fn write_faults(path: &Path, list: &[Fault]) -> Result<()> {
    let text =
        serde_json::to_string_pretty(list).map_err(|why| Failure::host("print")(why.into()))?;
    Ok(data::write(path, &format!("{text}\n"))?)
}

pub fn read_faults(path: &Path) -> Result<Vec<Fault>> {
    let what = || format!("read {}", path.display());
    let text = std::fs::read(path).map_err(Failure::host(what()))?;
    serde_json::from_slice(&text).map_err(|why| Failure::host(what())(why.into()))
}

#[cfg(test)]
mod tests {
    use super::seeds;

    #[test]
    fn ranges() {
        assert_eq!(seeds("1..3"), Ok(1..=3));
        assert_eq!(seeds("1..=3"), Ok(1..=3));
        assert_eq!(seeds("7"), Ok(7..=7));
        assert!(seeds("3..1").is_err());
        assert!(seeds("a..b").unwrap_err().contains("`a`"));
    }
}
