// SPDX-License-Identifier: GPL-2.0
//! The list as seccomp filters. Each filter has one action for what it names, so there are four: the first lets
//! through what is allowed and says `ENOSYS` to all else, the second says `EPERM` to what is refused, the third
//! `EOPNOTSUPP` to what is unsupported, the last has the warden asked. Where two say something, the host takes an error before a question, and the later one's error.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use crate::arguments::Word;
use crate::list::{asked, Check, Checked, ALLOWED, CHECKED, REFUSED, UNSUPPORTED, WITHOUT};
use crate::Error;

/// <linux/seccomp.h>
const RET_TRACE: u32 = 0x7ff0_0000;
const RET_USER_NOTIF: u32 = 0x7fc0_0000;
/// <linux/bpf_common.h>: BPF_RET | BPF_K.
const RETURN: u16 = 0x06;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters, in the order in which they are to be set.
pub(crate) fn programs() -> Result<[BpfProgram; 3], Error> {
    let mut pass: Rules = ALLOWED.iter().map(|call| (call.nr, Vec::new())).collect();
    pass.extend(asked().map(|nr| (nr, Vec::new())));
    for checked in CHECKED {
        pass.insert(checked.call.nr, rules(checked)?);
    }
    let refuse: Rules = REFUSED
        .iter()
        .map(|refused| (refused.call.nr, Vec::new()))
        .collect();
    let mut unsupported: Rules = WITHOUT.iter().map(|it| (it.call.nr, Vec::new())).collect();
    unsupported.insert(UNSUPPORTED.call.nr, rules(&UNSUPPORTED)?);
    let error = |errno: i32| SeccompAction::Errno(errno as u32);
    Ok([
        program(pass, error(libc::ENOSYS), SeccompAction::Allow)?,
        program(refuse, SeccompAction::Allow, error(libc::EPERM))?,
        program(unsupported, SeccompAction::Allow, error(libc::EOPNOTSUPP))?,
    ])
}

/// The filter that has the warden asked. The crate has no such action, so its like is replaced.
pub(crate) fn question() -> Result<BpfProgram, Error> {
    let rules = asked().map(|nr| (nr, Vec::new())).collect();
    let mut program = program(rules, SeccompAction::Allow, SeccompAction::Trace(0))?;
    for step in &mut program {
        if step.code == RETURN && step.k == RET_TRACE {
            step.k = RET_USER_NOTIF;
        }
    }
    Ok(program)
}

fn program(rules: Rules, other: SeccompAction, named: SeccompAction) -> Result<BpfProgram, Error> {
    let filter = SeccompFilter::new(rules, other, named, TargetArch::x86_64)?;
    Ok(filter.try_into()?)
}

fn rules(checked: &Checked) -> Result<Vec<SeccompRule>, Error> {
    let all = checked.when.iter().flat_map(|all| alternatives(all));
    all.map(|all| rule(&all)).collect()
}

/// One for each value that an argument may have.
fn alternatives(all: &[Check]) -> Vec<Vec<Check>> {
    match *all {
        [Check::Among(index, words)] => {
            let is = |word: &Word| vec![Check::Is(index, word.1)];
            words.iter().map(is).collect()
        }
        _ => vec![all.to_vec()],
    }
}

fn rule(all: &[Check]) -> Result<SeccompRule, Error> {
    let conditions: Result<Vec<_>, Error> = all.iter().map(condition).collect();
    Ok(SeccompRule::new(conditions?)?)
}

fn condition(check: &Check) -> Result<SeccompCondition, Error> {
    let (index, len, op, value) = match *check {
        Check::Is(index, value) => (index, Len::Dword, Op::Eq, value),
        Check::IsNot(index, value) => (index, Len::Dword, Op::Ne, value),
        Check::Clear(index, bits) => (index, Len::Dword, Op::MaskedEq(bits.into()), 0),
        Check::Bits(index, of, set) => (index, Len::Dword, Op::MaskedEq(of.into()), set),
        // alternatives() has taken it apart, and it stands alone.
        Check::Among(..) => return Err(Error::Condition),
        Check::Null(index) => (index, Len::Qword, Op::Eq, 0),
    };
    Ok(SeccompCondition::new(index, len, op, value.into())?)
}
