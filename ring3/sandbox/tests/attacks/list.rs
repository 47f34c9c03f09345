// SPDX-License-Identifier: GPL-2.0
//! Calls, commands and options that the list does not name; and whether gate, list and page agree.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

use ring3_sandbox::arguments::{Word, FCNTLS, IOCTLS, PRCTLS};
use ring3_sandbox::list::{Call, ABSENT, ALLOWED, BEHALF, CHECKED, OWN, REFUSED, TABLE, WITHOUT};

use crate::inside;

/// What list.rs says of a call is what calls.tbl says of it, number included.
#[test]
fn lists_are_those_of_the_table() {
    let refused = |list: &'static [ring3_sandbox::list::Refused]| list.iter().map(|it| it.call);
    let asked = std::iter::once(OWN).chain(refused(BEHALF));
    let lists: [(&str, Vec<Call>); 6] = [
        ("pass", ALLOWED.to_vec()),
        ("some", CHECKED.iter().map(|it| it.call).collect()),
        ("refuse", refused(REFUSED).collect()),
        ("absent", refused(ABSENT).collect()),
        ("without", refused(WITHOUT).collect()),
        ("warden", asked.collect()),
    ];
    for (word, calls) in lists {
        let sorted = |calls: &mut dyn Iterator<Item = Call>| {
            let mut calls: Vec<_> = calls.map(|call| (call.nr, call.name)).collect();
            calls.sort_unstable();
            calls
        };
        let of_table = TABLE.iter().filter(|(_, it)| *it == word);
        assert_eq!(
            sorted(&mut calls.into_iter()),
            sorted(&mut of_table.map(|(call, _)| *call)),
            "{word}"
        );
    }
}

fn names() -> Vec<&'static str> {
    let allowed = ALLOWED.iter().map(|call| call.name);
    let checked = CHECKED.iter().map(|checked| checked.call.name);
    let refused = REFUSED
        .iter()
        .chain(ABSENT)
        .chain(WITHOUT)
        .chain(BEHALF)
        .map(|refused| refused.call.name);
    let asked = [OWN.name];
    allowed.chain(checked).chain(refused).chain(asked).collect()
}

#[test]
fn no_call_is_named_twice() {
    let mut names = names();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// The gate's own host calls are decided here, each of them.
#[test]
fn every_host_call_of_the_gate_is_named() {
    let gate = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gate");
    let names = names();
    let mut found = 0;
    let mut folders = vec![gate];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry),
            }
        }
    }
    for entry in files {
        if !entry
            .path()
            .extension()
            .is_some_and(|it| it == "c" || it == "h")
        {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap();
        for piece in text.split("host_syscall").skip(1) {
            let Some(call) = piece.get(1..).and_then(|it| it.strip_prefix("(__NR_")) else {
                continue;
            };
            let end = call.find([',', ')', ' ']).unwrap();
            found += 1;
            assert!(
                names.contains(&&call[..end]),
                "{}: {}",
                entry.path().display(),
                &call[..end]
            );
        }
    }
    assert!(
        found > 100,
        "only {found} host calls found: has the gate another way to make them?"
    );
}

/// Each number of these interfaces, on a file and on a terminal's and a socket's range: those named get through to the host, no
/// other does. Outside, the host says something else to all of them.
#[test]
fn no_other_command_or_option_is_taken() {
    const SWEPT: [(u32, u32); 10] = [
        (0, 0x100),
        (0x400, 0x500),
        (0x5400, 0x5500),
        (0x8900, 0x8a00),
        (0xb700, 0xb710),
        (0x4004_5400, 0x4004_5500),
        (0x8004_5400, 0x8004_5500),
        (0x4008_6600, 0x4008_6680),
        (0x8008_6600, 0x8008_6680),
        (0x5356_4d00, 0x5356_4e00),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "x").unwrap();
    let is_named = |words: &[Word], nr: u32| words.iter().any(|word| word.1 == nr);
    let swept = || SWEPT.iter().flat_map(|(from, to)| *from..*to);
    let wrong: Vec<String> = inside(folder.path(), || {
        let file = fs::File::open(&path).unwrap();
        let command = |nr: u32| absent(libc::SYS_ioctl, file.as_raw_fd() as u64, nr.into());
        let option = |nr: u32| absent(libc::SYS_prctl, nr.into(), u64::MAX);
        let commands = swept().chain(IOCTLS.iter().map(|word| word.1));
        let commands = commands.filter(|nr| command(*nr) == is_named(IOCTLS, *nr));
        let commands: Vec<_> = commands.map(|nr| format!("ioctl {nr:#x}")).collect();
        // With all flags, of which F_SETFL may not have O_ASYNC.
        let control = |nr: u32| absent(libc::SYS_fcntl, file.as_raw_fd() as u64, nr.into());
        let controls = swept().chain(FCNTLS.iter().map(|word| word.1));
        let controls = controls.filter(|nr| control(*nr) == is_named(FCNTLS, *nr));
        let controls = controls.map(|nr| format!("fcntl {nr:#x}"));
        // These would be carried out.
        let harmless = |nr: &u32| !is_named(PRCTLS, *nr);
        let options = swept().filter(harmless).filter(|nr| !option(*nr));
        let options = options.map(|nr| format!("prctl {nr:#x}"));
        commands
            .into_iter()
            .chain(controls)
            .chain(options)
            .collect()
    });
    assert_eq!(wrong, Vec::<String>::new());
}

/// Whether the host says that it has no such call, for these two arguments and none.
#[allow(unsafe_code)]
fn absent(call: libc::c_long, first: u64, second: u64) -> bool {
    // SAFETY: the second argument is a number, or an address that no memory has: nothing of this process is read or written.
    let done = unsafe { libc::syscall(call, first, second, u64::MAX, u64::MAX, u64::MAX) };
    done == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS)
}

/// The numbers are those of Linux's headers.
#[test]
fn commands_and_options_are_what_they_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = String::from(
        "#include <asm/ioctls.h>\n#include <asm/termbits.h>\n#include <linux/sockios.h>\n#include <linux/fs.h>\n\
         #include <linux/fiemap.h>\n#include <linux/nsfs.h>\n#include <linux/prctl.h>\n#include <linux/fcntl.h>\n\
         #if __has_include(<linux/eventpoll.h>)\n#include <linux/eventpoll.h>\n#endif\n",
    );
    // What older headers lack is not compared.
    for (name, nr) in IOCTLS.iter().chain(FCNTLS).chain(PRCTLS) {
        source += &format!(
            "#ifdef {name}\n_Static_assert((unsigned)({name}) == {nr:#x}u, \"{name}\");\n#endif\n"
        );
    }
    let file = folder.path().join("numbers.c");
    fs::write(&file, source).unwrap();
    let status = Command::new("cc")
        .args(["-fsyntax-only", "-x", "c"])
        .arg(&file)
        .status();
    assert!(status.expect("a C compiler").success());
}

/// `RING3_BLESS=1` writes the page.
#[test]
fn the_page_is_the_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/host-calls.md");
    let page = ring3_sandbox::list::page();
    if std::env::var_os("RING3_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let words = "run this test with RING3_BLESS=1 to write docs/host-calls.md anew";
    assert!(fs::read_to_string(&path).unwrap() == page, "{words}");
}
