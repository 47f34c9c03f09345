// SPDX-License-Identifier: GPL-2.0
//! What became of nodes that failed.
//!
//! The keeper of a failed node ends as soon as the node's programs have. Before it gives the node's name back it
//! leaves the node's last status in the runtime folder, as `ended/NAME`; the undertaker does for a keeper that was killed. The file's time is the node's end. The record
//! goes when a node of its name starts, by `ring3 down`, and after [`KEPT`].

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{flock, FlockOperation};

use crate::client::{Calls, Memory, State, Status};
use crate::error::{Error, Result};
use crate::region::Region;
use crate::runtime::{is_current, private, Folder, NodeFolder};

/// Long enough for somebody to come back and look.
const KEPT: Duration = Duration::from_secs(3600);

fn path(folder: &Folder, name: &str) -> PathBuf {
    folder.root().join("ended").join(name)
}

/// For the keeper, which still has the name.
pub fn record(folder: &Folder, status: &Status) -> Result<()> {
    // It has no ports, programs and memory any more, and its keeper is about to end.
    let last = Status {
        pid: 0,
        ports: Vec::new(),
        procs: Vec::new(),
        held_up_by: Vec::new(),
        mem: crate::client::Memory {
            resident: 0,
            ..status.mem
        },
        ended_s: Some(0),
        ..status.clone()
    };
    let path = path(folder, &status.name);
    private(&folder.root().join("ended"))?;
    let fail = || Error::io(format!("write {}", path.display()));
    let text = serde_json::to_vec(&last).map_err(|why| fail()(why.into()))?;
    fs::write(&path, text).map_err(fail())
}

/// For the undertaker of a keeper that was killed.
pub(crate) fn record_killed(folder: &Folder, name: &str, region: &Region) -> Result<()> {
    let status = Status {
        name: name.to_owned(),
        state: State::Poisoned,
        poison: region.poison(),
        pid: 0,
        uptime_ns: 0,
        version: region.version.clone(),
        image: region.image.clone(),
        join: folder.join_path(name),
        base: region.base(),
        mem: Memory {
            size: region.size(),
            resident: 0,
        },
        calls: Calls::default(),
        late: region.late(),
        ports: Vec::new(),
        procs: Vec::new(),
        adopter: None,
        held_up_by: Vec::new(),
        ended_s: None,
    };
    record_unless_taken(folder, &status)
}

/// Another node may have taken the name meanwhile, and none takes it while the record is made: its end would seem to be the new node's.
fn record_unless_taken(folder: &Folder, status: &Status) -> Result<()> {
    match NodeFolder::lock(folder, &status.name) {
        Ok(_held) => record(folder, status),
        Err(Error::NameTaken { .. }) => Ok(()),
        Err(why) => Err(why),
    }
}

/// What became of node `name`, if it failed within the last hour and nothing has its name now.
pub(crate) fn find(folder: &Folder, name: &str) -> Option<Status> {
    let path = path(folder, name);
    let ended = fs::metadata(&path).and_then(|it| it.modified()).ok()?;
    let age = SystemTime::now().duration_since(ended).unwrap_or_default();
    if age > KEPT {
        forget(folder, name);
        return None;
    }
    // One that is being written is found next time.
    let mut status: Status = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    status.ended_s = Some(age.as_secs());
    Some(status)
}

/// All of them, sorted by name.
pub(crate) fn list(folder: &Folder) -> Vec<Status> {
    let entries = fs::read_dir(folder.root().join("ended"));
    let mut all: Vec<Status> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| find(folder, entry.file_name().to_str()?))
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Whether there was anything to forget.
pub(crate) fn forget(folder: &Folder, name: &str) -> bool {
    let was_there = fs::remove_file(path(folder, name)).is_ok();
    if was_there {
        remove_unused(&folder.log_path(name));
    }
    was_there
}

/// Removes a log that no node's process holds (ring3/cli/src/up.rs): a new node has its log before it has its name.
fn remove_unused(log: &Path) {
    let Ok(file) = File::open(log) else {
        return;
    };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() && is_current(&file, log) {
        let _ = fs::remove_file(log);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Of another ring3: the fields that it has not are left out.
    const STATUS: &str = r#"{"name":"a","state":"poisoned","poison":"why","pid":7,"uptime_ns":0,"version":"","image":"","join":"",
        "base":0,"mem":{"size":1,"resident":1},"calls":{"rewritten":0,"trapped":0,"host":0},"late":0,"ports":[],
        "procs":[],"adopter":null,"held_up_by":[]}"#;

    #[test]
    fn it_is_told_until_the_name_is_taken_or_an_hour_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::at(dir.path().join("r")).unwrap();
        assert!(list(&folder).is_empty() && find(&folder, "a").is_none());
        let status: Status = serde_json::from_str(STATUS).unwrap();
        record(&folder, &status).unwrap();
        let found = find(&folder, "a").unwrap();
        assert_eq!((found.pid, found.ended_s), (0, Some(0)));
        assert_eq!(list(&folder).len(), 1);
        drop(NodeFolder::claim(&folder, "a").unwrap());
        assert!(find(&folder, "a").is_none());
        record(&folder, &status).unwrap();
        let old = SystemTime::now() - KEPT - Duration::from_secs(60);
        let file = fs::File::options()
            .write(true)
            .open(path(&folder, "a"))
            .unwrap();
        file.set_modified(old).unwrap();
        assert!(list(&folder).is_empty() && !path(&folder, "a").exists());
    }

    fn of(name: &str) -> Status {
        let status: Status = serde_json::from_str(STATUS).unwrap();
        Status {
            name: name.to_owned(),
            ..status
        }
    }

    /// `ring3 down x` of a node that failed, beside a `ring3 up x` that has its log and not yet its name.
    #[test]
    fn a_log_that_a_new_node_holds_stays() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::at(dir.path().join("r")).unwrap();
        let log = folder.log_path("a");
        let file = File::create(&log).unwrap();
        flock(&file, FlockOperation::LockShared).unwrap();
        record(&folder, &of("a")).unwrap();
        assert!(forget(&folder, "a") && log.exists());
        drop(file);
        record(&folder, &of("a")).unwrap();
        assert!(forget(&folder, "a") && !log.exists());
    }

    /// The undertaker of a killed keeper, beside nodes that take the name.
    #[test]
    fn a_node_that_is_up_has_no_end() {
        const TURNS: usize = 20_000;
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::at(dir.path().join("r")).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    record_unless_taken(&folder, &of("a")).unwrap();
                }
            });
            let mut claimed = 0;
            let mut wrong = 0;
            for _ in 0..TURNS {
                // The undertaker may have the name for a moment.
                let Ok(held) = NodeFolder::claim(&folder, "a") else {
                    continue;
                };
                claimed += 1;
                std::thread::yield_now();
                wrong += usize::from(path(&folder, "a").exists());
                drop(held);
            }
            is_over.store(true, Ordering::Relaxed);
            assert!(claimed > 0 && wrong == 0, "{wrong} of {claimed}");
        });
    }
}
