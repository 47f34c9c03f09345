// SPDX-License-Identifier: GPL-2.0
//! What a sandbox sees of the host's files.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ring3_sandbox::behalf::Reach;
use ring3_sandbox::Files;
use rustix::fs::{openat, renameat_with, unlinkat, AtFlags, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::apart::Writable;
use crate::args::SandboxArgs;
use crate::error::{Failure, Result};
use crate::program::Program;

/// Programs and libraries, as far as they are there.
const SYSTEM: [&str; 8] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
];
/// Of /etc, what libraries and interpreters ask for; nothing there is a secret.
const SETTINGS: [&str; 33] = [
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gitconfig",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/networks",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];
/// Of each folder in /etc whose name begins so, what Java and Debian's Python read when they start. What else they may hold, such as
/// passwords of Java's `management`, is left out.
const LANGUAGES: [(&str, &[&str]); 2] = [
    (
        "java-",
        &[
            "jvm-amd64.cfg",
            "logging.properties",
            "net.properties",
            "security",
        ],
    ),
    ("python3", &["sitecustomize.py"]),
];
/// How many processors there are, and how memory is given: what allocators and language runtimes ask for.
const MACHINE: [&str; 2] = [
    "/sys/devices/system/cpu",
    "/sys/kernel/mm/transparent_hugepage",
];
/// Devices without state.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Where C libraries keep POSIX shared memory and semaphores.
const SHARED_MEMORY: &str = "/dev/shm";

/// What the sandbox sees, and its own folder.
#[derive(Debug)]
pub struct View {
    pub files: Files,
    pub writable: Writable,
    pub tmp: Option<Tmp>,
    /// What the programs have at /dev/shm.
    pub memory: Option<Tmp>,
}

/// A folder that goes with this value. Its path may be below `--rw` of this sandbox or of another, whose programs can put
/// something else in its place: only descriptors are used.
#[derive(Debug)]
pub struct Tmp {
    path: PathBuf,
    fd: OwnedFd,
    parent: OwnedFd,
}

impl Tmp {
    fn make() -> Result<Tmp> {
        Tmp::make_in(&std::env::temp_dir())
    }

    fn make_in(place: &Path) -> Result<Tmp> {
        let make = || -> io::Result<Tmp> {
            let parent = rustix::fs::open(place, FOLDER - OFlags::NOFOLLOW, Mode::empty())?;
            // For this user only, and with a name that nobody else has.
            let made = nix::unistd::mkdtemp(&by_descriptor(&parent).join("ring3-sandbox-XXXXXX"))?;
            let name = made.file_name().unwrap_or_default();
            let fd = openat(&parent, name, FOLDER, Mode::empty())?;
            let path = place.join(name);
            Ok(Tmp { path, fd, parent })
        };
        make().map_err(Failure::host(format!(
            "make a folder in {}",
            place.display()
        )))
    }

    #[cfg(test)]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Nobody may enter it until it is opened: its path is not known, and may be guessed.
    fn close(&self) -> io::Result<()> {
        std::fs::set_permissions(
            by_descriptor(&self.fd),
            std::fs::Permissions::from_mode(0o0),
        )
    }

    fn remove(&self) -> io::Result<()> {
        let name = self.path.file_name().unwrap_or_default();
        // Often nothing is in it.
        if unlinkat(&self.parent, name, AtFlags::REMOVEDIR).is_ok() {
            return Ok(());
        }
        // As the sandbox was, without capabilities.
        let clear = || {
            ring3_sandbox::drop_capabilities()?;
            open_again(&self.fd)?;
            clear(&self.fd)
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, clear)?;
            thread.join().unwrap_or_else(|_| Err(Errno::IO.into()))
        })?;
        Ok(unlinkat(&self.parent, name, AtFlags::REMOVEDIR)?)
    }
}

impl View {
    /// For a process that is not to remove the folder.
    pub fn lent(&self) -> (Files, Option<PathBuf>) {
        let path = self.tmp.as_ref().map(|tmp| tmp.path.clone());
        (self.files.clone(), path)
    }

    /// What is to stay open in a process that uses the names in `files`.
    pub fn fds(&self) -> impl Iterator<Item = &OwnedFd> {
        let folders = self.tmp.iter().chain(&self.memory);
        self.writable.fds().chain(folders.map(Tmp::fd))
    }

    /// What the sandbox's programs may change the attributes of. `sockets`: a folder that the warden makes for unix sockets with names.
    /// `prepare`: called before a program learns of what it has at /dev/shm.
    pub fn reach(
        &self,
        sockets: PathBuf,
        prepare: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) -> Result<Reach> {
        let fail = |why| Failure::host("copy a descriptor")(why);
        let places = self.fds().map(OwnedFd::try_clone);
        let places = places.collect::<io::Result<Vec<_>>>().map_err(fail)?;
        let memory = self.memory.as_ref().map(|it| it.fd().try_clone());
        let reach = Reach::new(places).with_sockets(sockets);
        let Some(memory) = memory.transpose().map_err(fail)? else {
            return Ok(reach);
        };
        let copy = memory.try_clone().map_err(fail)?;
        Ok(reach.with_memory(memory, move || {
            prepare().map_err(io::Error::other)?;
            open_again(&copy)
        }))
    }
}

impl Drop for Tmp {
    fn drop(&mut self) {
        if let Err(why) = self.remove() {
            log::warn!("{} stays: {why}", self.path.display());
        }
    }
}

fn open_again(folder: &OwnedFd) -> io::Result<()> {
    std::fs::set_permissions(
        by_descriptor(folder),
        std::fs::Permissions::from_mode(0o700),
    )
}

/// Names that are looked at at once: a hostile program can make more than there is memory for.
const NAMES_MAX: usize = if cfg!(test) { 3 } else { 1 << 14 };

/// A folder as such, which may be closed to us.
const FOLDER: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes all in a folder that a hostile program has filled: with folders that may not be read, and with chains of them that
/// no recursion would survive. So each folder's folders are moved up before it goes. Links are removed, never followed. No path
/// of more than one name is used: another sandbox may change what is on it.
fn clear(top: &OwnedFd) -> io::Result<()> {
    let mut count = 0u64;
    loop {
        let names = names_in(top)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            let Some(folder) = remove_or_open(top, &name)? else {
                continue;
            };
            loop {
                let names = names_in(&folder)?;
                if names.is_empty() {
                    break;
                }
                for below in names {
                    // To move a folder is to write to it: its parent is another.
                    if remove_or_open(&folder, &below)?.is_none() {
                        continue;
                    }
                    loop {
                        count += 1;
                        let stays = RenameFlags::NOREPLACE;
                        match renameat_with(&folder, &below, top, count.to_string(), stays) {
                            Err(Errno::EXIST) => {}
                            moved => break moved?,
                        }
                    }
                }
            }
            unlinkat(top, &name, AtFlags::REMOVEDIR)?;
        }
    }
}

/// Removes what is no folder; a folder is opened, and what closes it is taken away.
fn remove_or_open(at: &OwnedFd, name: &CStr) -> io::Result<Option<OwnedFd>> {
    match unlinkat(at, name, AtFlags::empty()) {
        Ok(()) => return Ok(None),
        Err(Errno::ISDIR) => {}
        Err(why) => return Err(why.into()),
    }
    let folder = openat(at, name, FOLDER, Mode::empty())?;
    open_again(&folder)?;
    Ok(Some(folder))
}

/// The first names in a folder, [`NAMES_MAX`] at most; none: it is empty.
fn names_in(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut names = Vec::new();
    for entry in Dir::new(openat(folder, ".", flags, Mode::empty())?)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
        if names.len() >= NAMES_MAX {
            break;
        }
    }
    Ok(names)
}

fn by_descriptor(fd: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}

/// What each sandbox sees: the system's programs and libraries, and `programs`, of which there is one at least.
pub fn system(programs: &[&Program]) -> Files {
    let mut files = Files::default();
    let there = |path: &&str| Path::new(path).exists();
    let system = SYSTEM.iter().chain(&SETTINGS).chain(&MACHINE);
    let system = system.copied().filter(there);
    files.read.extend(system.map(PathBuf::from));
    files.read.extend(settings_of_languages());
    let devices = DEVICES.iter().copied().filter(there);
    files.write.extend(devices.map(PathBuf::from));
    for program in programs {
        files.read.push(program.gate().to_owned());
        files.read.extend(program.file());
    }
    // `ring3 wait` and `ring3 connect` start it within.
    files.read.extend(std::env::current_exe());
    files
}

fn settings_of_languages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in std::fs::read_dir("/etc").into_iter().flatten().flatten() {
        let name = folder.file_name();
        for (start, files) in LANGUAGES {
            if name.to_string_lossy().starts_with(start) {
                found.extend(files.iter().map(|file| folder.path().join(file)));
            }
        }
    }
    found.retain(|path| path.exists());
    found
}

/// The same, and what `args` let it see.
pub fn view(args: &SandboxArgs, programs: &[&Program]) -> Result<View> {
    let mut files = system(programs);
    for path in &args.ro {
        files.read.push(existing(path)?);
    }
    let writable = Writable::find(&args.rw)?;
    files.write.extend(writable.paths());
    let tmp = args.tmp.then(Tmp::make).transpose()?;
    let memory = Some(shared_memory()?);
    let folders = tmp.iter().chain(&memory).map(Tmp::fd);
    files.write.extend(folders.map(by_descriptor));
    Ok(View {
        files,
        writable,
        tmp,
        memory,
    })
}

/// A folder in the host's memory where the host has that, else beside other temporary files.
fn shared_memory() -> Result<Tmp> {
    let folder = Tmp::make_in(Path::new(SHARED_MEMORY)).or_else(|_| Tmp::make())?;
    let closed = folder.close();
    closed.map_err(Failure::host("close a folder for shared memory"))?;
    Ok(folder)
}

fn existing(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|why| Failure::SandboxPath {
        path: path.to_owned(),
        why: why.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_folders_of_one_process() {
        let (one, other) = (Tmp::make().unwrap(), Tmp::make().unwrap());
        assert_ne!(one.path(), other.path());
        let mode = one.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_goes_whatever_is_in_it() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("kept"), "x").unwrap();
        let top = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), top.path().join("link")).unwrap();
        let names = ["1", "2", "a"].map(|name| top.path().join(name));
        for name in &names {
            std::fs::create_dir(name).unwrap();
            std::fs::create_dir(name.join("b")).unwrap();
            std::os::unix::fs::symlink(outside.path(), name.join("b/link")).unwrap();
            std::fs::write(name.join("b/file"), "x").unwrap();
            // More than are looked at at once.
            for n in 0..8 {
                std::fs::create_dir(name.join(format!("b/folder{n}"))).unwrap();
                std::fs::write(name.join(format!("b/file{n}")), "x").unwrap();
            }
        }
        // Deeper than there are descriptors, and than a path is long.
        let mut deep = std::process::Command::new("/usr/bin/python3");
        let chain = "import os\nfor n in range(1500):\n os.mkdir('d' * 9); os.chdir('d' * 9)";
        let done = deep.args(["-c", chain]).current_dir(&names[2]).status();
        assert!(done.unwrap().success());
        for name in &names {
            let none = std::fs::Permissions::from_mode(0o0);
            std::fs::set_permissions(name.join("b"), none.clone()).unwrap();
            std::fs::set_permissions(name, none).unwrap();
        }
        let fd = rustix::fs::open(top.path(), FOLDER, Mode::empty()).unwrap();
        clear(&fd).unwrap();
        assert_eq!(std::fs::read_dir(top.path()).unwrap().count(), 0);
        assert!(outside.path().join("kept").exists());
    }

    /// `--tmp` with its parent below `--rw`: a link in the folder's place, or in that of its parent, leads nowhere.
    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        let kept = outside.path().join("kept/too");
        std::fs::create_dir_all(&kept).unwrap();
        let top = tempfile::tempdir().unwrap();
        let parent = top.path().join("parent");
        for swap_parent in [false, true] {
            std::fs::create_dir_all(&parent).unwrap();
            let tmp = Tmp::make_in(&parent).unwrap();
            let path = tmp.path().to_owned();
            std::fs::write(path.join("file"), "x").unwrap();
            let moved = top.path().join(format!("moved-{swap_parent}"));
            let swapped = if swap_parent { &parent } else { &path };
            std::fs::rename(swapped, &moved).unwrap();
            std::os::unix::fs::symlink(outside.path(), swapped).unwrap();
            let same = outside.path().join(path.file_name().unwrap());
            std::fs::create_dir(&same).unwrap();
            drop(tmp);
            assert!(kept.exists() && same.exists());
            assert!(swap_parent || std::fs::read_dir(&moved).unwrap().count() == 0);
            assert!(!moved.join(path.file_name().unwrap()).exists());
            std::fs::remove_file(swapped).unwrap();
        }
    }
}
