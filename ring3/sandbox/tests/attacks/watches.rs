// SPDX-License-Identifier: GPL-2.0
//! `inotify`: names and uses of files of others, and what of it the host has for one user.

use std::fs;
use std::io;
use std::path::Path;

use crate::{fails_inside, inside};

#[test]
fn only_own_files_are_watched() {
    use rustix::fs::inotify::{add_watch, init, CreateFlags, WatchFlags};
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let watch = |path: &Path| -> io::Result<()> {
        let watch = init(CreateFlags::NONBLOCK)?;
        add_watch(&watch, path, WatchFlags::CREATE)?;
        fs::write(path.join("new"), "x")?;
        let mut bytes = [0; 1024];
        match rustix::io::read(&watch, &mut bytes)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    };
    fails_inside(libc::EPERM, || watch(outside.path()));
    inside(folder.path(), || watch(folder.path()).unwrap());
}

/// Linux counts instances and watches by user: one sandbox does not use up those of all of the user's programs.
#[test]
fn others_can_still_watch_files() {
    use rustix::fs::inotify::{add_watch, init, CreateFlags, WatchFlags};
    use rustix::io::Errno;
    let of_user = |what: &str| -> usize {
        let text = fs::read_to_string(format!("/proc/sys/fs/inotify/{what}"));
        text.unwrap().trim().parse().unwrap()
    };
    let most = of_user("max_user_instances") / 8;
    let watches_most = of_user("max_user_watches") / 8 / most;
    let folder = tempfile::tempdir().unwrap();
    let file = |n: usize| folder.path().join(n.to_string());
    (0..watches_most + 2).for_each(|n| drop(fs::File::create(file(n)).unwrap()));
    inside(folder.path(), || {
        let fill = || {
            let mut all = Vec::new();
            let why = loop {
                match init(CreateFlags::NONBLOCK) {
                    Ok(instance) if all.len() < 1000 => all.push(instance),
                    Ok(_) => return (all, None),
                    Err(why) => break why,
                }
            };
            (all, Some(why))
        };
        let (all, why) = fill();
        assert_eq!((all.len(), why), (most, Some(Errno::MFILE)));
        // Copies count once, and what is closed everywhere does not.
        let copy = all[0].try_clone().unwrap();
        drop(all);
        let (all, why) = fill();
        assert_eq!((all.len(), why), (most - 1, Some(Errno::MFILE)));
        drop(copy);
        let watch = |n: usize| add_watch(&all[0], file(n), WatchFlags::OPEN);
        let first = watch(0).unwrap();
        (1..watches_most).for_each(|n| assert!(watch(n).is_ok()));
        assert_eq!(watch(watches_most), Err(Errno::NOSPC));
        // One that is there already can be changed, and one that goes makes room for another.
        assert_eq!(watch(0), Ok(first));
        rustix::fs::inotify::remove_watch(&all[0], first).unwrap();
        assert!(watch(watches_most).is_ok());
        assert_eq!(watch(watches_most + 1), Err(Errno::NOSPC));
    });
}
