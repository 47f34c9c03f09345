// SPDX-License-Identifier: GPL-2.0
//! Lines of JSON: each connection that is over, and what happens to the proxy.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{json, Value};

use crate::error::{Error, Result};

#[derive(Debug)]
pub struct Journal {
    /// `None`: what happens is said on standard error, and connections are not.
    file: Option<(PathBuf, File)>,
    is_lost: bool,
}

impl Journal {
    pub fn open(path: Option<&Path>) -> Result<Journal> {
        let open = |path: &Path| -> Result<(PathBuf, File)> {
            let file = File::options().append(true).create(true).open(path);
            let file = file.map_err(Error::host(format!("open the log {}", crate::shown(path))))?;
            Ok((path.to_owned(), file))
        };
        Ok(Journal {
            file: path.map(open).transpose()?,
            is_lost: false,
        })
    }

    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Something that an operator wants to know.
    pub fn event(&mut self, what: &str, mut about: Value) {
        about["event"] = what.into();
        match self.file {
            Some(_) => self.line(about),
            None => log::info!("{about}"),
        }
    }

    /// One line, with the time.
    pub fn line(&mut self, mut value: Value) {
        let Some((path, file)) = &mut self.file else {
            return;
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        // Milliseconds since 1970.
        value["time_ms"] = json!(now.map_or(0, |now| now.as_millis() as u64));
        let text = format!("{value}\n");
        // One write: lines of others do not mix with it.
        match file.write_all(text.as_bytes()) {
            Ok(()) => self.is_lost = false,
            Err(why) if !self.is_lost => {
                self.is_lost = true;
                log::warn!("lines for {} are lost: {why}", path.display());
            }
            Err(_) => {}
        }
    }
}
