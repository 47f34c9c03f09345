// SPDX-License-Identifier: GPL-2.0
//! `[sandbox]`: what a program that nobody trusts may do, in the words of the command line. A file that has this table is never
//! started without a sandbox, also where the table is empty.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::size;
use crate::ConfigError;

/// Each is the option of that name: `proc_mem` is `--proc-mem`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sandbox {
    pub ro: Vec<PathBuf>,
    pub rw: Vec<PathBuf>,
    pub tmp: bool,
    pub pids: Option<u64>,
    pub proc_mem: Option<String>,
    /// Seconds.
    pub cpu_time: Option<u64>,
    pub files: Option<u64>,
    pub file_size: Option<String>,
    pub min_free: Option<String>,
    pub policy: Option<PathBuf>,
    pub record: Option<PathBuf>,
}

/// Processes, seconds, descriptors: what the options take.
pub const PIDS: std::ops::RangeInclusive<u64> = 1..=100_000;
pub const CPU_TIME_S: std::ops::RangeInclusive<u64> = 1..=1_000_000_000;
/// The gate wants room for 1024.
pub const FILES: std::ops::RangeInclusive<u64> = 1024..=1_048_576;

impl Sandbox {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for (key, value, range) in [
            ("pids", self.pids, PIDS),
            ("cpu_time", self.cpu_time, CPU_TIME_S),
            ("files", self.files, FILES),
        ] {
            if let Some(got) = value.filter(|value| !range.contains(value)) {
                let (min, max) = range.into_inner();
                return Err(ConfigError::Limit { key, got, min, max });
            }
        }
        let sizes = [&self.proc_mem, &self.file_size, &self.min_free];
        let mut sizes = sizes.into_iter().flatten();
        sizes.try_for_each(|text| size::parse(text).map(drop))
    }

    /// With relative paths from this folder on.
    pub(crate) fn below(mut self, folder: &Path) -> Sandbox {
        let lists = self.ro.iter_mut().chain(&mut self.rw);
        for path in lists.chain(&mut self.policy).chain(&mut self.record) {
            *path = folder.join(&*path);
        }
        self
    }
}
