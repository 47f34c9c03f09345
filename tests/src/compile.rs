// SPDX-License-Identifier: GPL-2.0
//! Compiling the C programs, once per change.

use crate::exec;
use crate::paths;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// Compiles `source` into the build folder unless what is there is younger than all that it was
/// made of, by the compiler's own list (`-MMD`).
pub fn compile(source: &Path) -> Result<PathBuf, String> {
    compile_as(source, "", &[])
}

/// The same as a shared object.
pub fn compile_shared(source: &Path) -> Result<PathBuf, String> {
    let include = paths::root().join("include");
    let flags = ["-shared", "-fPIC", "-I", &include.to_string_lossy()];
    compile_as(source, "so", &flags)
}

/// The same with ThreadSanitizer.
pub fn compile_thread_sanitizer(source: &Path) -> Result<PathBuf, String> {
    compile_as(source, "tsan", &["-fsanitize=thread"])
}

fn compile_as(source: &Path, ending: &str, flags: &[&str]) -> Result<PathBuf, String> {
    static TURN: AtomicU32 = AtomicU32::new(0);

    let name = source
        .file_stem()
        .ok_or_else(|| format!("{}: no file name", source.display()))?;
    let kind = source.parent().and_then(Path::file_name);
    let folder = paths::build().join(kind.unwrap_or_default());
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let program = folder.join(name).with_extension(ending);
    let list = match ending {
        "" => program.with_extension("d"),
        _ => program.with_extension(format!("{ending}.d")),
    };
    if is_current(&program, &list) {
        return Ok(program);
    }
    // Another test may be executing the old one: replace, don't overwrite.
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    let fresh = program.with_extension(format!("{}.{turn}", std::process::id()));
    let fresh_list = fresh.with_extension(format!("{turn}.d"));
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-O1", "-g", "-Wall", "-Werror", "-pthread", "-I"])
        .arg(paths::oracle())
        .args(flags)
        .args(["-MMD", "-MF"])
        .arg(&fresh_list)
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
    // The list last: without it, or beside an older program, the program is not current.
    for (from, to) in [(&fresh, &program), (&fresh_list, &list)] {
        std::fs::rename(from, to).map_err(|e| format!("{}: {e}", to.display()))?;
    }
    Ok(program)
}

fn modified(path: impl AsRef<Path>) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|m| m.modified()).ok()
}

/// Is the program younger than each file of the make rule in `list`?
fn is_current(program: &Path, list: &Path) -> bool {
    let (Some(built), Ok(rule)) = (modified(program), std::fs::read_to_string(list)) else {
        return false;
    };
    let Some((_, files)) = rule.split_once(": ") else {
        return false;
    };
    files
        .split_ascii_whitespace()
        .filter(|word| *word != "\\")
        .all(|file| modified(file).is_some_and(|changed| changed < built))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of another folder, as `poison.c` has the contract's: a program of before its change was run after it.
    #[test]
    fn a_header_elsewhere_counts() {
        let folder = std::env::temp_dir().join(format!("ring3-compile-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [program, list, source, header] =
            ["program", "program.d", "source.c", "header.h"].map(|name| folder.join(name));
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for (file, seconds) in [(&source, 1), (&header, 1), (&program, 2)] {
            let file = std::fs::File::create(file).unwrap();
            file.set_modified(at(seconds)).unwrap();
        }
        assert!(!is_current(&program, &list));
        let rule = format!("x: {} \\\n {}\n", source.display(), header.display());
        std::fs::write(&list, rule).unwrap();
        assert!(is_current(&program, &list));
        let file = std::fs::File::options().write(true).open(&header).unwrap();
        file.set_modified(at(3)).unwrap();
        assert!(!is_current(&program, &list));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
