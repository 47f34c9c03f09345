// SPDX-License-Identifier: GPL-2.0
//! What untrusted peers may send to a node, and what must hold for every input: called by the
//! coverage-guided fuzzers of tests/fuzz, and with their corpora by the tests here.

use ring3_abi::*;

use crate::control::{Reply, Request};
use crate::join;

/// The pid of the peer, as the host reports it.
const PID: i32 = 4711;

/// A request to join: granted if it is the request of a gate of this build; otherwise refused in
/// one line that fits into the reply.
pub fn join(bytes: &[u8]) {
    let mut good = RING3_JOIN_MAGIC.to_ne_bytes().to_vec();
    good.extend(RING3_ABI.to_ne_bytes());
    good.extend(PID.to_ne_bytes());
    match join::judge(bytes, PID) {
        Ok(who) => {
            if who == join::Joiner::Adopter {
                good[..8].copy_from_slice(&RING3_ADOPT_MAGIC.to_ne_bytes());
            }
            assert_eq!(bytes, good);
        }
        Err((status, why)) => {
            assert_ne!(bytes, good);
            assert!(status < 0 && !why.is_empty() && !why.contains('\n'));
            let mut reply = [0; 160];
            join::copy(&mut reply, &why);
            let end = reply.iter().position(|byte| *byte == 0).expect("no NUL");
            assert!(std::str::from_utf8(&reply[..end]).is_ok());
        }
    }
}

/// A line at the control socket: an accepted request is the same after it was written and read
/// again.
pub fn control(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(request) = serde_json::from_str::<Request>(text) {
        let again = serde_json::to_string(&request).expect("a request can be written");
        // Nothing of it is lost. (Serde also accepts a list, which has no names.)
        let value: serde_json::Value = serde_json::from_str(text).expect("it was read before");
        if let (Some(object), Request::Log { from }) = (value.as_object(), &request) {
            assert_eq!(object.get("from").and_then(|it| it.as_u64()), Some(*from));
        }
        assert_eq!(serde_json::from_str::<Request>(&again).ok(), Some(request));
    }
    if let Ok(reply) = serde_json::from_str::<Reply>(text) {
        let line = serde_json::to_string(&reply).expect("a reply can be written");
        assert!(!line.contains('\n'));
        let again: Reply = serde_json::from_str(&line).expect("and read again");
        assert_eq!(serde_json::to_string(&again).ok(), Some(line));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Inputs that the fuzzers have kept.
    fn corpus(name: &str, judge: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus");
        let mut inputs = 0;
        for entry in std::fs::read_dir(folder.join(name)).unwrap() {
            judge(&std::fs::read(entry.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs > 3, "{name}: {inputs} inputs");
    }

    #[test]
    fn corpora() {
        corpus("join", super::join);
        corpus("control", super::control);
    }
}
