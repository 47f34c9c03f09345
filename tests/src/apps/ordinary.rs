// SPDX-License-Identifier: GPL-2.0
//! Without root: everything but the making of a TAP.
//!
//! As root, this runs the test runner itself once more as the user `nobody`, on a subset; as
//! somebody else all of the other tests are that already.

use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec;
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

/// Filters that the runner is started with, one after another.
const SUBSET: &[&str] = &[
    "oracle::sockopt",
    "oracle::epoll",
    "oracle::raw_",
    "oracle::netlink",
    "oracle::packet_lo",
    "apps::http_server_curl_link",
    "apps::nginx_curl_link",
    "apps::ping_link",
    "apps::inspect_ip",
    "apps::inspect_nft",
    "apps::netns_",
    "apps::kill_recv",
    "apps::kill_busy",
    "apps::kill_young",
    "apps::neighbours_kill_",
    "apps::debug_",
    "apps::leaks_link",
    "apps::usage_tap",
    "apps::xdp_object_file",
];

pub fn trials() -> Vec<Trial> {
    SUBSET
        .iter()
        .map(|&filter| {
            let name = filter.replace("::", "_");
            trial(format!("ordinary_{name}"), move || as_nobody(filter))
        })
        .collect()
}

/// A program that is run by a user without rights, to whom the folder belongs from now on.
pub(super) fn nobody(home: &Scratch, program: impl AsRef<OsStr>) -> Result<Command, String> {
    let open = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(home.path(), open).map_err(|e| e.to_string())?;
    std::os::unix::fs::chown(home.path(), Some(65534), Some(65534)).map_err(|e| e.to_string())?;
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(program)
        .current_dir(home.path())
        .env("HOME", home.path())
        .env("XDG_RUNTIME_DIR", home.path())
        .env("TMPDIR", home.path());
    Ok(command)
}

/// Runs the tests of this name as a user without rights.
pub(super) fn as_nobody(filter: &str) -> Checked {
    if !rustix::process::geteuid().is_root() {
        return Ok(Verdict::Ignored(
            "this user is an ordinary one already".into(),
        ));
    }
    if let Some(why) = missing(&["setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    let home = Scratch::new()?;
    let runner = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = nobody(&home, runner)?;
    command
        .arg(filter)
        .current_dir("/")
        .env("RING3_ROOT", paths::root())
        .env("RING3_BUILD", home.file("build"));
    let outcome = exec::run(&mut command, Duration::from_secs(300))?;
    ensure(outcome.ok(), || {
        // Indented, so that nobody takes that runner's summary for ours.
        let report = outcome.report().replace('\n', "\n    ");
        format!("as nobody, {filter}: {report}")
    })?;
    ensure(!outcome.stdout.contains(" 0 passed"), || {
        format!("no test passed: {}", outcome.report())
    })?;
    Ok(Verdict::Passed)
}
