// SPDX-License-Identifier: GPL-2.0
//! `ring3 proxy reload`: a unix socket in the runtime folder, by the proxy's name. One line each way: `reload`, and `ok` or
//! why not.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use ring3_node::Folder;
use rustix::fs::{flock, FlockOperation};

use crate::error::{Error, Result};

/// A name is looked up anew when the configuration is read: a resolver may take this long.
const PATIENCE: Duration = Duration::from_secs(60);
/// One who has connected sends its line at once.
const ASKER_PATIENCE: Duration = Duration::from_millis(500);
const LINE_MAX: u64 = 4 << 10;

#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
    /// Locked while the proxy lives.
    _lock: File,
}

fn folder() -> Result<PathBuf> {
    let path = Folder::open()?.root().join("proxies");
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&path);
    made.map_err(Error::host(format!("make {}", path.display())))?;
    Ok(path)
}

impl Control {
    pub fn open(name: &str) -> Result<Control> {
        let folder = folder()?;
        let fail = |what: &str| Error::host(format!("{what} in {}", folder.display()));
        let lock = File::options()
            .create(true)
            .append(true)
            .open(folder.join(format!("{name}.lock")))
            .map_err(fail("make a lock"))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Error::NameTaken {
                name: name.to_owned(),
            });
        }
        let path = folder.join(name);
        // What a killed one has left.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(fail("listen"))?;
        listener.set_nonblocking(true).map_err(fail("listen"))?;
        Ok(Control {
            listener,
            path,
            _lock: lock,
        })
    }

    /// One who asks, and what.
    pub fn hear(&self) -> Option<(String, UnixStream)> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(ASKER_PATIENCE)).ok()?;
        let mut line = String::new();
        let mut reader = BufReader::new((&stream).take(LINE_MAX));
        reader.read_line(&mut line).ok()?;
        Some((line.trim().to_owned(), stream))
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

pub fn answer(mut stream: UnixStream, outcome: &Result<(), String>) {
    let text = match outcome {
        Ok(()) => "ok\n".to_owned(),
        Err(why) => format!("{}\n", why.replace('\n', ", ")),
    };
    // Whoever has gone does not want to know.
    let _ = stream.write_all(text.as_bytes());
}

/// Tells the proxy called `name` to read its file again.
pub fn reload(name: &str) -> Result<()> {
    let path = folder()?.join(name);
    let missing = || Error::NoSuchProxy {
        name: name.to_owned(),
    };
    let stream = UnixStream::connect(path).map_err(|_| missing())?;
    match ask(stream, name, PATIENCE)?.trim() {
        "ok" => Ok(()),
        "" => Err(missing()),
        why => Err(Error::Refused {
            why: why.to_owned(),
        }),
    }
}

/// What the proxy answers.
fn ask(mut stream: UnixStream, name: &str, patience: Duration) -> Result<String> {
    let fail = || Error::host(format!("speak to the proxy `{name}`"));
    stream.set_read_timeout(Some(patience)).map_err(fail())?;
    stream.write_all(b"reload\n").map_err(fail())?;
    let mut line = String::new();
    let mut reader = BufReader::new(stream.take(LINE_MAX));
    match reader.read_line(&mut line) {
        Ok(_) => Ok(line),
        // The time is over.
        Err(why) if why.kind() == ErrorKind::WouldBlock => Err(Error::StillReads {
            name: name.to_owned(),
        }),
        Err(why) => Err(fail()(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_waits_too_long_hears_that_it_is_not_over() {
        let (ours, _proxy) = UnixStream::pair().unwrap();
        let said = ask(ours, "edge", Duration::from_millis(1)).unwrap_err();
        assert!(said.to_string().contains("still reads its file"), "{said}");
        let (ours, mut proxy) = UnixStream::pair().unwrap();
        proxy.write_all(b"ok\n").unwrap();
        assert_eq!(ask(ours, "edge", PATIENCE).unwrap(), "ok\n");
    }
}
