// SPDX-License-Identifier: GPL-2.0
//! DNS over TCP where rules name names (RFC 7766): messages, each after its length in two bytes (RFC 1035, 4.2.2). Each is
//! looked at as a datagram's is (names.rs). A program asks so when an answer did not fit into a datagram.

use std::time::Instant;

use crate::engine::Pair;
use crate::names::{Asked, Names};
use crate::slab::Side;

/// Bytes that one side may have waiting, before the other side's are read.
pub const WAITING_MAX: usize = 64 << 10;

#[derive(Debug)]
pub struct Frames {
    ends: Pair,
    /// What came of a message that has not come whole, by its side.
    parts: [Vec<u8>; 2],
}

impl Frames {
    pub fn new(ends: Pair) -> Frames {
        Frames {
            ends,
            parts: Default::default(),
        }
    }

    /// Bytes that came from one side: what the other side hears of it, and what the same side is answered.
    pub fn take(&mut self, names: &mut Names, from: Side, data: &[u8]) -> [Vec<u8>; 2] {
        let all = &mut self.parts[from as usize];
        all.extend_from_slice(data);
        let (mut on, mut back) = (Vec::new(), Vec::new());
        let mut rest = &all[..];
        while let Some((message, more)) = first(rest) {
            rest = more;
            match from {
                Side::Node => match names.asked(self.ends, message) {
                    Asked::Pass(question) => push(&mut on, &question),
                    Asked::Answer(refusal) => push(&mut back, &refusal),
                    Asked::Drop => {}
                },
                Side::Host => {
                    let mut message = message.to_vec();
                    if names.answered(self.ends, &mut message, Instant::now()) {
                        push(&mut on, &message);
                    }
                }
            }
        }
        match all.len() - rest.len() {
            // What has not come whole stays where it is.
            0 => {}
            // Nothing is held for a connection that waits for nothing.
            used if used == all.len() => *all = Vec::new(),
            used => drop(all.drain(..used)),
        }
        [on, back]
    }
}

/// The first whole message, and what comes after it.
fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(u16::from_be_bytes(*len).into())
}

fn push(to: &mut Vec<u8>, message: &[u8]) {
    // None is longer: each was read from such a message, or is a question made anew.
    if let Ok(len) = u16::try_from(message.len()) {
        to.extend(len.to_be_bytes());
        to.extend(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::{Name, Packet, Question, CLASS, TYPE};

    fn question(name: &str) -> Vec<u8> {
        let mut packet = Packet::new_query(7);
        let (kind, class) = (TYPE::A.into(), CLASS::IN.into());
        let name = Name::new_unchecked(name).into_owned();
        packet
            .questions
            .push(Question::new(name, kind, class, false));
        packet.build_bytes_vec().unwrap()
    }

    fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
        let mut all = Vec::new();
        messages.iter().for_each(|it| push(&mut all, it));
        all
    }

    fn messages(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Some((message, rest)) = first(bytes) {
            all.push(message.to_vec());
            bytes = rest;
        }
        assert!(bytes.is_empty());
        all
    }

    /// A message of 64 KB that comes in small parts is not copied at each.
    #[test]
    fn what_has_not_come_whole_stays_where_it_is() {
        let mut names = Names::new(&["a.example.org".parse().unwrap()], &[]);
        let ends = (
            "10.0.0.2:9".parse().unwrap(),
            "10.0.0.1:53".parse().unwrap(),
        );
        let mut frames = Frames::new(ends);
        frames.parts[0].reserve(1 << 16);
        let place = frames.parts[0].as_ptr();
        let bytes = framed(&[question("a.example.org"), question("a.example.org")]);
        let (most, last) = bytes.split_at(bytes.len() - 1);
        let mut heard = 0;
        for byte in most {
            let [on, _] = frames.take(&mut names, Side::Node, &[*byte]);
            heard += on.len();
            if heard == 0 {
                assert_eq!(frames.parts[0].as_ptr(), place);
            }
        }
        let [on, _] = frames.take(&mut names, Side::Node, last);
        assert_eq!(heard + on.len(), bytes.len());
        assert_eq!(frames.parts[0].capacity(), 0);
    }

    #[test]
    fn each_message_has_its_answer_however_it_comes() {
        let rules = ["a.example.org".parse().unwrap()];
        let mut names = Names::new(&rules, &[]);
        let ends = (
            "10.0.0.2:9".parse().unwrap(),
            "10.0.0.1:53".parse().unwrap(),
        );
        let mut frames = Frames::new(ends);
        let bytes = framed(&[
            question("a.example.org"),
            question("b.example.org"),
            question("a.example.org"),
        ]);
        // A byte at a time.
        let (mut on, mut back) = (Vec::new(), Vec::new());
        for byte in &bytes {
            let [more, answer] = frames.take(&mut names, Side::Node, &[*byte]);
            on.extend(more);
            back.extend(answer);
        }
        let (on, back) = (messages(&on), messages(&back));
        assert_eq!((on.len(), back.len()), (2, 1));
        assert_eq!(back[0][3] & 15, 5, "REFUSED");
        // All at once; the answer of the second question first, and one that nobody waits for.
        let mut answers = [on[1].clone(), on[0].clone(), on[0].clone()];
        answers.iter_mut().for_each(|it| it[2] |= 0x80);
        let [heard, none] = frames.take(&mut names, Side::Host, &framed(&answers));
        assert!(none.is_empty());
        let heard = messages(&heard);
        assert_eq!(heard.len(), 2);
        assert!(heard.iter().all(|it| it[..2] == [0, 7]));
    }
}
