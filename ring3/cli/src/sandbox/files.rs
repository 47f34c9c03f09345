// SPDX-License-Identifier: GPL-2.0
//! What a sandbox sees of the host's files.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use ring3_sandbox::behalf::Reach;
use ring3_sandbox::Files;

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
/// Devices without state.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// What the sandbox sees, and its own folder.
#[derive(Debug)]
pub struct View {
    pub files: Files,
    pub writable: Writable,
    pub tmp: Option<Tmp>,
}

/// A folder that goes with this value.
#[derive(Debug)]
pub struct Tmp(PathBuf);

impl Tmp {
    fn make() -> Result<Tmp> {
        // For this user only, and with a name that nobody else has.
        let path = std::env::temp_dir().join("ring3-sandbox-XXXXXX");
        let made = nix::unistd::mkdtemp(&path);
        let fail = Failure::host(format!("make {}", path.display()));
        Ok(Tmp(made.map_err(|why| fail(why.into()))?))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl View {
    /// For a process that is not to remove the folder.
    pub fn lent(&self) -> (Files, Option<PathBuf>) {
        let path = self.tmp.as_ref().map(|tmp| tmp.0.clone());
        (self.files.clone(), path)
    }

    /// What the sandbox's programs may change the attributes of.
    pub fn reach(&self) -> Result<Reach> {
        let fail = Failure::host("copy a descriptor");
        let places = self.writable.fds().map(OwnedFd::try_clone);
        let mut places = places.collect::<std::io::Result<Vec<_>>>().map_err(fail)?;
        if let Some(Tmp(path)) = &self.tmp {
            let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let place = nix::fcntl::open(path, flags, Mode::empty());
            let fail = Failure::host(format!("open {}", path.display()));
            places.push(place.map_err(|why| fail(why.into()))?);
        }
        Ok(Reach::new(places))
    }
}

impl Drop for Tmp {
    fn drop(&mut self) {
        // Nobody of the sandbox is left to change it meanwhile.
        if let Err(why) = clear(&self.0).and_then(|()| std::fs::remove_dir(&self.0)) {
            log::warn!("{} stays: {why}", self.0.display());
        }
    }
}

/// Removes all in a folder that a hostile program has filled: with folders that may not be read, and with chains of them that
/// no recursion would survive. So each folder's folders are moved up before it goes. Links are removed, never followed.
fn clear(top: &Path) -> std::io::Result<()> {
    let mut count = 0u64;
    loop {
        let mut is_empty = true;
        for entry in std::fs::read_dir(top)? {
            let entry = entry?;
            is_empty = false;
            if !entry.file_type()?.is_dir() {
                std::fs::remove_file(entry.path())?;
                continue;
            }
            let folder = entry.path();
            open_up(&folder)?;
            for below in std::fs::read_dir(&folder)? {
                let below = below?;
                if !below.file_type()?.is_dir() {
                    std::fs::remove_file(below.path())?;
                    continue;
                }
                // To move a folder is to write to it: its parent is another.
                open_up(&below.path())?;
                count += 1;
                let mut to = top.join(format!("{count}"));
                while to.symlink_metadata().is_ok() {
                    count += 1;
                    to = top.join(format!("{count}"));
                }
                std::fs::rename(below.path(), to)?;
            }
            std::fs::remove_dir(&folder)?;
        }
        if is_empty {
            return Ok(());
        }
    }
}

fn open_up(folder: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
}

/// What each sandbox sees: the system's programs and libraries, and `programs`, of which there is one at least.
pub fn system(programs: &[&Program]) -> Files {
    let mut files = Files::default();
    let there = |path: &&str| Path::new(path).exists();
    let system = SYSTEM.iter().chain(&SETTINGS).copied().filter(there);
    files.read.extend(system.map(PathBuf::from));
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

/// The same, and what `args` let it see.
pub fn view(args: &SandboxArgs, programs: &[&Program]) -> Result<View> {
    let mut files = system(programs);
    for path in &args.ro {
        files.read.push(existing(path)?);
    }
    let writable = Writable::find(&args.rw)?;
    files.write.extend(writable.paths());
    let tmp = args.tmp.then(Tmp::make).transpose()?;
    files
        .write
        .extend(tmp.iter().map(|tmp| tmp.path().to_owned()));
    Ok(View {
        files,
        writable,
        tmp,
    })
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
        clear(top.path()).unwrap();
        assert_eq!(std::fs::read_dir(top.path()).unwrap().count(), 0);
        assert!(outside.path().join("kept").exists());
    }
}
