// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: one folder at two places
//!
//! A folder can be mounted at a second place (`mount --bind`), and then lies below folders that are not among its parents. Landlock
//! lets the programs of a sandbox write to all below a path of `--rw`, mounts included. So two paths are compared by what the host's mounts
//! show: a file system's number, and a path in that file system. /proc/self/mountinfo has both of each mount, and a descriptor's mount is in its fdinfo.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

/// A folder or file in a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// As mountinfo has it: "8:1".
    system: String,
    path: PathBuf,
}

impl Place {
    pub fn is_below(&self, other: &Place) -> bool {
        self.system == other.system && self.path.starts_with(&other.path)
    }
}

#[derive(Debug)]
struct Mount {
    id: u64,
    /// What it shows, and where.
    shows: Place,
    at: PathBuf,
}

/// The mounts that this process sees.
#[derive(Debug, Default)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    pub fn read() -> nix::Result<Mounts> {
        let text = std::fs::read("/proc/self/mountinfo").map_err(errno)?;
        let mounts = text.split(|&byte| byte == b'\n').filter_map(mount);
        Ok(Mounts(mounts.collect()))
    }

    /// What a descriptor is of.
    pub fn place_of(&self, fd: &OwnedFd) -> nix::Result<Place> {
        let number = fd.as_raw_fd();
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"));
        let info = info.map_err(errno)?;
        let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
        let id = id.and_then(|id| id.trim().parse::<u64>().ok());
        let mount = self.0.iter().find(|it| Some(it.id) == id);
        let mount = mount.ok_or(Errno::ENOENT)?;
        let path = path_of(fd)?;
        let rest = path.strip_prefix(&mount.at).map_err(|_| Errno::ENOENT)?;
        Ok(Place {
            system: mount.shows.system.clone(),
            path: joined(&mount.shows.path, rest),
        })
    }

    /// All that lies at a descriptor or below: the place itself, and what is mounted there.
    pub fn below(&self, fd: &OwnedFd) -> nix::Result<Vec<Place>> {
        let path = path_of(fd)?;
        let mounts = self.0.iter().filter(|it| it.at.starts_with(&path));
        let shown = mounts.map(|it| it.shows.clone());
        Ok(std::iter::once(self.place_of(fd)?).chain(shown).collect())
    }
}

fn errno(why: std::io::Error) -> Errno {
    Errno::from_raw(why.raw_os_error().unwrap_or(libc::EIO))
}

/// The same path, without a slash at its end.
fn joined(path: &Path, rest: &Path) -> PathBuf {
    match rest.as_os_str().is_empty() {
        true => path.to_owned(),
        false => path.join(rest),
    }
}

fn path_of(fd: &OwnedFd) -> nix::Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    std::fs::read_link(link).map_err(errno)
}

/// "ID PARENT SYSTEM PATH AT ..."
fn mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|&byte| byte == b' ');
    let mut word = || words.next().map(plain);
    let id = word()?.to_str()?.parse().ok()?;
    word()?;
    let system = word()?.into_string().ok()?;
    let path = word()?.into();
    let at = word()?.into();
    Some(Mount {
        id,
        shows: Place { system, path },
        at,
    })
}

/// Spaces, tabs, ends of lines and backslashes are written as three octal digits.
fn plain(word: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, others)) = rest.split_first() {
        let code = others
            .get(..3)
            .filter(|_| first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(first));
        rest = &others[if code.is_some() { 3 } else { 0 }..];
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let line = b"36 35 98:0 /mnt1/a\\040b /mnt2 rw,noatime master:1 - ext3 /dev/root rw";
        let mount = mount(line).unwrap();
        assert_eq!((mount.id, mount.at), (36, "/mnt2".into()));
        assert_eq!(mount.shows.system, "98:0");
        assert_eq!(mount.shows.path, Path::new("/mnt1/a b"));
    }

    #[test]
    fn a_folder_lies_below_itself_and_its_parents() {
        let top = tempfile::tempdir().unwrap();
        let below = top.path().join("a");
        std::fs::create_dir(&below).unwrap();
        let mounts = Mounts::read().unwrap();
        let open = |path: &Path| OwnedFd::from(std::fs::File::open(path).unwrap());
        let (top, below) = (open(top.path()), open(&below));
        let place = |fd| mounts.place_of(fd).unwrap();
        assert!(place(&below).is_below(&place(&top)));
        assert!(place(&top).is_below(&place(&top)));
        assert!(!place(&top).is_below(&place(&below)));
        assert!(mounts.below(&top).unwrap().contains(&place(&top)));
    }
}
