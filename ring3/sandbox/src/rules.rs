// SPDX-License-Identifier: GPL-2.0
//! Lists of host calls for processes that speak with strangers: gateways, relays, devices. Each keeps its list beside the code
//! that makes the calls. What is on none of them is `EPERM`, on each of the process's threads, for ever.

use std::collections::BTreeMap;

use seccompiler::{
    apply_filter_all_threads, BpfProgram, SeccompAction, SeccompCmpArgLen as Len,
    SeccompCmpOp as Op, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use crate::Error;

/// An argument of 32 bits.
pub const fn word(value: i32) -> u64 {
    value as u32 as u64
}

/// One condition: argument, mask, value. A mask of more than 32 bits takes the whole argument.
pub type Condition = (u8, u64, u64);
/// A host call, and alternatives, each of conditions that all hold.
pub type Checked = (libc::c_long, &'static [&'static [Condition]]);
pub const WHOLE: u64 = 0xffff_ffff;
/// A socket option of this level.
pub const fn option(level: i32, name: i32) -> [Condition; 2] {
    [(1, WHOLE, word(level)), (2, WHOLE, word(name))]
}

/// New memory of this process's own, or of threads' stacks: not a file, whose bytes could be the kernel's text.
const ANONYMOUS: u64 = libc::MAP_ANONYMOUS as u64;

/// No new code; and no second mapping of shared memory, which mremap() makes, too: a writable one of the kernel's text.
pub const NO_CODE: [Checked; 2] = [
    (
        libc::SYS_mmap,
        &[&[(2, word(libc::PROT_EXEC), 0), (3, ANONYMOUS, ANONYMOUS)]],
    ),
    (libc::SYS_mprotect, &[&[(2, word(libc::PROT_EXEC), 0)]]),
];

fn rule(conditions: &[Condition]) -> Result<SeccompRule, Error> {
    let made = conditions
        .iter()
        .map(|&(index, mask, value)| {
            let len = if mask > WHOLE { Len::Qword } else { Len::Dword };
            SeccompCondition::new(index, len, Op::MaskedEq(mask), value)
        })
        .collect::<std::result::Result<_, _>>()
        .and_then(SeccompRule::new);
    made.map_err(|why| Error::Rules(why.to_string()))
}

/// A list of host calls: with any arguments, and with some.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    pub allowed: &'a [&'static [libc::c_long]],
    pub checked: &'a [&'static [Checked]],
}

impl Rules<'_> {
    fn program(&self) -> Result<BpfProgram, Error> {
        let allowed = self.allowed.iter().copied().flatten();
        let allowed = allowed.map(|nr| (*nr, Vec::new()));
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = allowed.collect();
        for (nr, alternatives) in self.checked.iter().copied().flatten() {
            let all: Result<_, Error> = alternatives.iter().map(|it| rule(it)).collect();
            rules.insert(*nr, all?);
        }
        let refuse = SeccompAction::Errno(libc::EPERM as u32);
        SeccompFilter::new(rules, refuse, SeccompAction::Allow, TargetArch::x86_64)
            .and_then(BpfProgram::try_from)
            .map_err(|why| Error::Rules(why.to_string()))
    }

    /// From here on, for all threads of this process. Also sets no_new_privs.
    pub fn raise(&self) -> Result<(), Error> {
        apply_filter_all_threads(&self.program()?).map_err(|why| Error::Rules(why.to_string()))
    }
}

/// On all threads of this process: these calls are said to be missing (`ENOSYS`), so that the C library makes others. Beside a
/// list that lets them through.
pub fn hide(calls: &[libc::c_long]) -> Result<(), Error> {
    let rules = calls.iter().map(|nr| (*nr, Vec::new())).collect();
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, missing, TargetArch::x86_64)
        .and_then(BpfProgram::try_from)
        .map_err(|why| Error::Rules(why.to_string()))
        .and_then(|program| {
            apply_filter_all_threads(&program).map_err(|why| Error::Rules(why.to_string()))
        })
}
