// SPDX-License-Identifier: GPL-2.0
//! A folder for one test, removed afterwards; and names that no other test has.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A number that no other test of this run gets, 1 to 60.
///
/// Numbers return after a while; by then the test that had one has ended, since only two
/// tests run at a time.
pub fn slot() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed) % 60 + 1
}

/// A short name for things of the host that two runners must not share: `PREFIX` + hex.
pub fn unique(prefix: &str) -> String {
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}{:x}x{n:x}", std::process::id() & 0xffff)
}

/// A temporary folder.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub fn new() -> Result<Scratch, String> {
        Scratch::below(&std::env::temp_dir())
    }

    /// Whose files are never on a disk.
    pub fn in_memory() -> Result<Scratch, String> {
        Scratch::below(Path::new("/dev/shm"))
    }

    fn below(folder: &Path) -> Result<Scratch, String> {
        let path = folder.join(unique("ring3-test-"));
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Scratch { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> Result<PathBuf, String> {
        let path = self.file(name);
        std::fs::write(&path, contents).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(path)
    }

    /// A file of `size` bytes that do not repeat soon.
    pub fn noise(&self, name: &str, size: usize) -> Result<PathBuf, String> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut bytes = Vec::with_capacity(size + 8);
        while bytes.len() < size {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes.truncate(size);
        self.write(name, bytes)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left behind in /tmp it does no harm.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Whether two files hold the same bytes.
pub fn same(a: &Path, b: &Path) -> Result<bool, String> {
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    Ok(read(a)? == read(b)?)
}
