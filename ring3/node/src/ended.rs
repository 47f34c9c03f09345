// SPDX-License-Identifier: GPL-2.0
//! What became of nodes that failed.
//!
//! The keeper of a failed node ends as soon as the node's programs have. Before it gives the node's name back it
//! leaves the node's last status in the runtime folder, as `ended/NAME`; the undertaker does for a keeper that was killed. The file's time is the node's end. The record
//! goes when a node of its name starts, by `ring3 down`, and after [`KEPT`].

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::client::{Calls, Memory, State, Status};
use crate::error::{Error, Result};
use crate::region::Region;
use crate::runtime::{private, Folder};

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
    // Another node may have taken the name meanwhile.
    if folder.is_running(name) {
        return Ok(());
    }
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
    record(folder, &status)
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
    if was_there && !folder.is_running(name) {
        let _ = fs::remove_file(folder.log_path(name));
    }
    was_there
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::NodeFolder;

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
}
