// SPDX-License-Identifier: GPL-2.0
//! Paths that a sandbox's programs lead elsewhere.

use std::os::unix::fs::symlink;

use super::*;

struct Top(tempfile::TempDir);

impl Top {
    fn new() -> Top {
        let top = Top(tempfile::tempdir().unwrap());
        for folder in ["work/below", "kept", "other"] {
            std::fs::create_dir_all(top.path(folder)).unwrap();
        }
        top
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn work(&self) -> Writable {
        Writable::find(&[self.path("work")]).unwrap()
    }
}

#[test]
fn nothing_on_the_way_is_the_programs() {
    let top = Top::new();
    symlink(top.path("work"), top.path("way")).unwrap();
    symlink("../kept", top.path("work/out")).unwrap();
    symlink("work/out", top.path("other/through")).unwrap();
    symlink(top.path("work/out"), top.path("through")).unwrap();
    symlink("kept", top.path("near")).unwrap();
    let work = top.work();
    for name in ["kept", "kept/new/x", "worker", "near/y", "new/work", "."] {
        work.folder(&top.path(name)).map(drop).unwrap();
    }
    for name in [
        "work",
        "work/new/x",
        "work/below",
        "way/new",
        "work/out",
        "work/out/x",
        "through",
        "through/x",
        "kept/../work",
    ] {
        let folder = work.folder(&top.path(name)).map(drop);
        assert!(matches!(folder, Err(Failure::InReach { .. })), "{name}");
        let file = work.append(&top.path(name).join("f")).map(drop);
        assert!(matches!(file, Err(Failure::InReach { .. })), "{name}");
    }
    assert!(!top.path("work/new").exists());
}

#[test]
fn a_second_name_is_refused() {
    let top = Top::new();
    let (file, other) = (top.path("kept/a"), top.path("work/a"));
    std::fs::write(&file, "x").unwrap();
    top.work().read(&file).unwrap();
    std::fs::hard_link(&file, &other).unwrap();
    let read = top.work().read(&file).map(drop);
    assert!(matches!(read, Err(Failure::SecondName { .. })));
    let append = top.work().append(&file).map(drop);
    assert!(matches!(append, Err(Failure::SecondName { .. })));
    // The warden can't compare device numbers: files of one overlay mount have different ones.
    let elsewhere = Writable::find(&["/proc".into()]).unwrap();
    let read = elsewhere.read(&file).map(drop);
    assert!(matches!(read, Err(Failure::SecondName { .. })));
    // Nobody within writes anywhere: nobody is kept from it.
    Writable::default().read(&file).unwrap();
    let alone = Writable::find(std::slice::from_ref(&file)).unwrap();
    let read = alone.read(&file).map(drop);
    assert!(matches!(read, Err(Failure::InReach { .. })));
}

/// Another sandbox's program may have put that there.
#[test]
fn a_link_in_the_place_of_a_record_is_not_followed() {
    let top = Top::new();
    symlink("flows", top.path("kept/flows.jsonl")).unwrap();
    let work = top.work();
    let folder = work.folder(&top.path("kept")).unwrap();
    assert!(folder.append("flows.jsonl").is_err());
    assert!(!top.path("kept/flows").exists());
}

/// What was found is what is meant, whatever happens to the path.
#[test]
fn a_path_of_another_s_is_looked_up_once() {
    let top = Top::new();
    let work = top.work();
    std::fs::rename(top.path("work"), top.path("moved")).unwrap();
    symlink("kept", top.path("work")).unwrap();
    let by_now = work.paths().next().unwrap().canonicalize().unwrap();
    assert_eq!(by_now, top.path("moved").canonicalize().unwrap());
    work.folder(&top.path("kept")).map(drop).unwrap();
    let moved = work.folder(&top.path("moved/below")).map(drop);
    assert!(matches!(moved, Err(Failure::InReach { .. })));
}

/// While somebody within swaps a folder on the way for a link, and back.
#[test]
fn a_race_is_lost_by_whoever_swaps() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let top = Top::new();
    symlink(top.path("work/turn"), top.path("through")).unwrap();
    std::fs::create_dir(top.path("work/turn")).unwrap();
    symlink("../kept", top.path("work/spare")).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let [turn, spare, third] = ["turn", "spare", "x"].map(|it| top.path("work").join(it));
            while !is_over.load(Ordering::Relaxed) {
                std::fs::rename(&turn, &third).unwrap();
                std::fs::rename(&spare, &turn).unwrap();
                std::fs::rename(&third, &spare).unwrap();
            }
        });
        let work = top.work();
        for _ in 0..2000 {
            let file = work.append(&top.path("through/f")).map(drop);
            assert!(file.is_err());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(!top.path("kept/f").exists() && !top.path("work/turn/f").exists());
}
