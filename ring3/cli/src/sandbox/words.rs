// SPDX-License-Identifier: GPL-2.0
//! What a caller of `ring3 exec` has started in a sandbox, as a file in memory.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use nix::sys::memfd::{memfd_create, MFdFlags};

use crate::error::{Failure, Result};

/// Arguments and environment: what Linux takes at most (a quarter of the usual stack limit, 8 MiB).
const WORDS_MAX: u64 = 2 << 20;

/// What is to be started, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct Words {
    pub folder: PathBuf,
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
}

impl Words {
    pub fn of_caller(command: &[OsString]) -> Words {
        Words {
            folder: std::env::current_dir().unwrap_or_else(|_| "/".into()),
            args: command.to_vec(),
            env: std::env::vars_os().collect(),
        }
    }

    /// Strings that each end with a NUL: the folder, how many arguments, these, the environment.
    pub fn write(&self) -> Result<File> {
        let mut bytes = Vec::new();
        let mut put = |text: &OsStr| {
            bytes.extend(text.as_bytes());
            bytes.push(0);
        };
        put(self.folder.as_os_str());
        put(OsStr::new(&self.args.len().to_string()));
        self.args.iter().for_each(|text| put(text));
        for (name, value) in &self.env {
            let mut pair = name.clone();
            pair.push("=");
            pair.push(value);
            put(&pair);
        }
        let file = memfd_create(c"ring3-exec", MFdFlags::MFD_CLOEXEC);
        let file = file.map_err(|why| Failure::host("make a file in memory")(why.into()))?;
        let mut file = File::from(file);
        file.write_all(&bytes)
            .map_err(Failure::host("write a command down"))?;
        Ok(file)
    }

    pub fn read(file: &mut File) -> Option<Words> {
        let mut bytes = Vec::new();
        file.rewind().ok()?;
        file.take(WORDS_MAX).read_to_end(&mut bytes).ok()?;
        let bytes = bytes.strip_suffix(&[0])?;
        let mut texts = bytes
            .split(|&byte| byte == 0)
            .map(|text| OsString::from_vec(text.to_vec()));
        let folder = texts.next()?.into();
        let count = texts.next()?.to_str()?.parse().ok()?;
        let args: Vec<OsString> = texts.by_ref().take(count).collect();
        let env = texts.filter_map(|pair| {
            let at = pair
                .as_bytes()
                .iter()
                .skip(1)
                .position(|&byte| byte == b'=')?
                + 1;
            let (name, value) = pair.as_bytes().split_at(at);
            Some((
                OsStr::from_bytes(name).to_owned(),
                OsStr::from_bytes(&value[1..]).to_owned(),
            ))
        });
        let env = env.collect();
        (!args.is_empty()).then_some(Words { folder, args, env })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_through() {
        let words = Words {
            folder: "/a b".into(),
            args: vec!["x".into(), OsString::new(), "y\nz".into()],
            env: vec![
                ("A".into(), "1=2".into()),
                ("B".into(), OsString::from_vec(vec![0xff])),
            ],
        };
        let mut file = words.write().unwrap();
        assert_eq!(Words::read(&mut file), Some(words));
        let mut empty = Words::of_caller(&[]).write().unwrap();
        assert_eq!(Words::read(&mut empty), None);
    }
}
