// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the runtime folder
//!
//! Each user has one folder, private to them (0700), where nodes find each other:
//!
//! ```text
//! ROOT/nodes/NAME/lock      locked (byte 0) by the node's process while it lives
//! ROOT/nodes/NAME/join      SOCK_SEQPACKET socket of include/ring3.abi
//! ROOT/nodes/NAME/control   stream socket, see control.rs
//! ROOT/nodes/NAME/unix/     unix sockets of a sandbox's programs, see ring3/sandbox/src/sockets.rs
//! ROOT/slots                byte N is locked by the node in slot N of the address space, see load.rs
//! ROOT/ended/NAME           what became of a node that failed, see ended.rs
//! ROOT/links/NAME           who has which end of a link, see ports/link.rs
//! ROOT/links/NAME@SIDE      the socket where that end gives the link's memory to the other
//! ```
//!
//! ROOT is `$XDG_RUNTIME_DIR/ring3`, for root without one `/run/ring3`, for others
//! `/tmp/ring3-UID`.
//!
//! A name is taken if and only if its `lock` is locked. The host drops the lock with the process,
//! however that ends. So the remains of a killed keeper are recognised, and removed by the next
//! command that looks ([`NodeFolder::claim`], [`Folder::nodes`]).

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

use crate::ended;
use crate::error::{Errno, Error, Result};
use crate::sys::{byte_is_locked, lock_byte};

/// `sun_path` of a unix socket holds this many bytes, its NUL included.
const SUN_PATH: usize = 108;
/// A node's folder that is still not locked at this age has no owner.
const STALE_AGE: std::time::Duration = std::time::Duration::from_secs(5);
/// In a node's folder: where the warden of a sandbox binds its programs' unix sockets.
const SOCKETS: &str = "unix";
/// Attempts to lock a file that others may be removing at the same time.
const LOCK_TRIES: usize = 100;

/// This user's runtime folder.
#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Opens or makes the folder; refuses one that other users could write to.
    pub fn open() -> Result<Folder> {
        let uid = geteuid().as_raw();
        let root = match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(dir) if Path::new(&dir).is_absolute() => PathBuf::from(dir).join("ring3"),
            _ if uid == 0 => PathBuf::from("/run/ring3"),
            _ => PathBuf::from(format!("/tmp/ring3-{uid}")),
        };
        Folder::at(root)
    }

    /// The same at another place; for tests.
    pub fn at(root: PathBuf) -> Result<Folder> {
        private(&root)?;
        private(&root.join("nodes"))?;
        private(&root.join("links"))?;
        Ok(Folder { root })
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file by which the ends of link `name` find each other.
    pub(crate) fn link(&self, name: &str) -> PathBuf {
        self.root.join("links").join(name)
    }

    pub(crate) fn node(&self, name: &str) -> PathBuf {
        self.root.join("nodes").join(name)
    }

    /// The file whose bytes say which slots of the address space this user's nodes are in. A node can do without: one process
    /// then may be unable to join it and another.
    pub(crate) fn slots(&self) -> Option<File> {
        let path = self.root.join("slots");
        match open_current(&path) {
            Ok(Some(file)) => Some(file),
            Ok(None) => {
                log::warn!(
                    "{} is gone: the node may lie where another does",
                    path.display()
                );
                None
            }
            Err(why) => {
                log::warn!("{why}: the node may lie where another does");
                None
            }
        }
    }

    /// The socket by which programs join node `name` (the value of `RING3_NODE`).
    pub fn join_path(&self, name: &str) -> PathBuf {
        self.node(name).join("join")
    }

    /// A pipe by which this process takes a capture from node `name`.
    pub(crate) fn capture_path(&self, name: &str) -> PathBuf {
        let file = format!("capture-{}", std::process::id());
        self.node(name).join(file)
    }

    /// The socket at which a sandboxed node's warden receives requests to start programs.
    pub(crate) fn enter_path(&self, name: &str) -> PathBuf {
        self.node(name).join("enter")
    }

    pub(crate) fn control_path(&self, name: &str) -> PathBuf {
        self.node(name).join("control")
    }

    /// What the process of node `name` says, if `ring3 up` made it. It outlives a node that fails.
    pub fn log_path(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}.log"))
    }

    /// Names of the running nodes, sorted. Removes the remains of killed ones.
    pub fn nodes(&self) -> Result<Vec<String>> {
        let dir = self.root.join("nodes");
        let entries = fs::read_dir(&dir).map_err(Error::io(format!("list {}", dir.display())))?;
        let mut names = Vec::new();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if self.is_running(&name) {
                names.push(name);
            } else if entry.metadata().is_ok_and(|meta| is_old(&meta)) {
                // If the lock is free no node owns it: dropping it removes the folder.
                drop(NodeFolder::lock(self, &name));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Whether node `name` runs.
    pub fn is_running(&self, name: &str) -> bool {
        self.running(name).is_some()
    }

    /// The lock of node `name`, if that runs. It distinguishes this node from a later one of the
    /// name.
    pub(crate) fn running(&self, name: &str) -> Option<File> {
        let lock = File::open(self.node(name).join("lock")).ok()?;
        is_held(&lock).then_some(lock)
    }
}

/// Whether a node holds this lock.
pub(crate) fn is_held(lock: &File) -> bool {
    byte_is_locked(lock, 0) == Ok(true)
}

/// A starting node has its folder a moment before its lock.
fn is_old(meta: &fs::Metadata) -> bool {
    let age = meta.modified().map(|time| time.elapsed());
    matches!(age, Ok(Ok(age)) if age > STALE_AGE)
}

/// A node's own folder; removed with this value.
#[derive(Debug)]
pub(crate) struct NodeFolder {
    path: PathBuf,
    /// Holds the lock.
    lock: File,
}

impl NodeFolder {
    /// Takes the name, or says that it is taken. What became of an earlier node of the name is forgotten.
    pub(crate) fn claim(folder: &Folder, name: &str) -> Result<NodeFolder> {
        let claimed = NodeFolder::lock(folder, name)?;
        ended::forget(folder, name);
        Ok(claimed)
    }

    pub(crate) fn lock(folder: &Folder, name: &str) -> Result<NodeFolder> {
        let path = folder.node(name);
        if folder.control_path(name).as_os_str().len() >= SUN_PATH {
            return Err(Error::PathTooLong {
                path: folder.control_path(name),
            });
        }
        let lock_path = path.join("lock");
        let taken = || Error::NameTaken {
            name: name.to_owned(),
        };
        for _ in 0..LOCK_TRIES {
            private(&path)?;
            let Some(lock) = open_current(&lock_path)? else {
                continue;
            };
            match lock_byte(&lock, 0) {
                Ok(()) => {}
                Err(Errno(libc::EAGAIN)) => return Err(taken()),
                Err(why) => {
                    return Err(Error::Host {
                        what: format!("lock {}", lock_path.display()),
                        why,
                    })
                }
            }
            // The last owner may have removed it just before it was locked here.
            if !is_current(&lock, &lock_path) {
                continue;
            }
            // Sockets that a killed keeper left would make bind() fail.
            let _ = fs::remove_file(path.join("join"));
            let _ = fs::remove_file(path.join("control"));
            let _ = fs::remove_file(path.join("enter"));
            let _ = fs::remove_dir_all(path.join(SOCKETS));
            return Ok(NodeFolder { path, lock });
        }
        Err(taken())
    }

    pub(crate) fn sockets(&self) -> PathBuf {
        self.path.join(SOCKETS)
    }
}

impl Drop for NodeFolder {
    fn drop(&mut self) {
        // Someone has removed the folder; one with the same name is another node's.
        if !is_current(&self.lock, &self.path.join("lock")) {
            return;
        }
        let _ = fs::remove_dir_all(self.sockets());
        // The lock is removed last: when it is free, the sockets are gone.
        for name in ["join", "control", "enter", "lock"] {
            let _ = fs::remove_file(self.path.join(name));
        }
        let _ = fs::remove_dir(&self.path);
    }
}

/// Opens or makes a file of the runtime folder. `None`: its folder was removed just now.
pub(crate) fn open_current(path: &Path) -> Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(fd) => Ok(Some(File::from(fd))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(why) => Err(Error::host(format!("open {}", path.display()))(why)),
    }
}

/// Whether `path` still names this file.
pub(crate) fn is_current(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(now)) => ours.ino() == now.ino() && ours.dev() == now.dev(),
        _ => false,
    }
}

/// Makes a folder that only this user can enter, or checks that it is one.
pub(crate) fn private(path: &Path) -> Result<()> {
    let fail = |why: String| Error::Runtime {
        path: path.to_owned(),
        why,
    };
    let mut tries = 0..LOCK_TRIES;
    let meta = loop {
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(fail(format!(
                    "cannot be made ({error}): set XDG_RUNTIME_DIR to a folder of your own"
                )))
            }
        }
        match fs::symlink_metadata(path) {
            Ok(meta) => break meta,
            // The process that made it has removed it meanwhile.
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound && tries.next().is_some() => {}
            Err(error) => return Err(fail(format!("cannot be read: {error}"))),
        }
    };
    if !meta.is_dir() {
        return Err(fail("is not a folder: remove it".into()));
    }
    if meta.uid() != geteuid().as_raw() {
        return Err(fail(
            "belongs to another user: set XDG_RUNTIME_DIR to a folder of your own".into(),
        ));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(fail(format!(
            "can be entered by others: `chmod 700 {}`",
            path.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::at(dir.path().join("r")).unwrap();
        (dir, folder)
    }

    #[test]
    fn a_name_is_taken_once_and_given_back() {
        let (_dir, folder) = folder();
        let node = NodeFolder::claim(&folder, "a").unwrap();
        assert!(matches!(
            NodeFolder::claim(&folder, "a"),
            Err(Error::NameTaken { .. })
        ));
        assert!(folder.is_running("a"));
        assert_eq!(folder.nodes().unwrap(), ["a"]);
        drop(node);
        assert!(!folder.is_running("a"));
        assert!(!folder.node("a").exists());
        NodeFolder::claim(&folder, "a").unwrap();
    }

    /// Someone removes the folder, and the name is taken again: the end of the first owner leaves
    /// the second's files alone.
    #[test]
    fn another_owners_folder_is_left_alone() {
        let (_dir, folder) = folder();
        let first = NodeFolder::claim(&folder, "a").unwrap();
        fs::remove_dir_all(folder.node("a")).unwrap();
        let second = NodeFolder::claim(&folder, "a").unwrap();
        fs::write(folder.join_path("a"), "").unwrap();
        drop(first);
        assert!(folder.is_running("a") && folder.join_path("a").exists());
        drop(second);
        assert!(!folder.node("a").exists());
    }

    #[test]
    fn what_a_killed_keeper_left_is_removed() {
        let (_dir, folder) = folder();
        fs::create_dir(folder.node("dead")).unwrap();
        fs::write(folder.node("dead").join("lock"), "").unwrap();
        fs::write(folder.join_path("dead"), "").unwrap();
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(folder.node("dead"), fs::Permissions::from_mode(0o700)).unwrap();
        // A starting node looks the same: it is left alone.
        assert!(folder.nodes().unwrap().is_empty());
        assert!(folder.node("dead").exists());
        let old = std::time::SystemTime::now() - 2 * STALE_AGE;
        File::open(folder.node("dead"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        assert!(folder.nodes().unwrap().is_empty());
        assert!(!folder.node("dead").exists());
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let error = Folder::at(open).unwrap_err().to_string();
        assert!(error.contains("chmod 700"), "{error}");
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused() {
        let (_dir, folder) = folder();
        let error = NodeFolder::claim(&folder, &"n".repeat(100)).unwrap_err();
        assert!(matches!(error, Error::PathTooLong { .. }));
    }
}
