// SPDX-License-Identifier: GPL-2.0
//! Compiling the C programs, once per change.

use crate::exec;
use crate::paths;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// Compiles `source` into the build folder unless what is there is younger than all `.c` and
/// `.h` files that it may be made of.
pub fn compile(source: &Path) -> Result<PathBuf, String> {
    static TURN: AtomicU32 = AtomicU32::new(0);

    let name = source
        .file_stem()
        .ok_or_else(|| format!("{}: no file name", source.display()))?;
    let kind = source.parent().and_then(Path::file_name);
    let folder = paths::build().join(kind.unwrap_or_default());
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let program = folder.join(name);
    if let Some(built) = modified(&program)
        && built > newest(source)
    {
        return Ok(program);
    }
    // Another test may be executing the old one: replace, don't overwrite.
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    let fresh = program.with_extension(format!("{}.{turn}", std::process::id()));
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-O1", "-g", "-Wall", "-Werror", "-pthread", "-I"])
        .arg(paths::oracle())
        .arg("-o")
        .arg(&fresh)
        .arg(source);
    let outcome = exec::run(&mut cc, Duration::from_secs(60))?;
    if !outcome.ok() {
        return Err(format!(
            "{} does not compile:\n{}",
            source.display(),
            outcome.stderr
        ));
    }
    std::fs::rename(&fresh, &program).map_err(|e| format!("{}: {e}", program.display()))?;
    Ok(program)
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|m| m.modified()).ok()
}

/// When the source or any header of the oracle's changed last.
fn newest(source: &Path) -> SystemTime {
    let folders = [Some(paths::oracle()), source.parent().map(Path::to_owned)];
    let headers = folders
        .into_iter()
        .flatten()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "h"));
    headers
        .chain([source.to_path_buf()])
        .filter_map(|path| modified(&path))
        .max()
        .unwrap_or_else(SystemTime::now)
}
