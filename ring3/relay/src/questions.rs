// SPDX-License-Identifier: GPL-2.0
//! Questions that wait for the resolver's answer. Each goes out under an id of the relay's own, which no program knows;
//! an answer is one that has the id and the question, and comes over the flow that asked.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use simple_dns::rdata::OPT;
use simple_dns::{Packet, PacketFlag, Question, RCODE};

use crate::engine::Pair;
use crate::tuning::QUESTIONS_MAX;

/// A message's header (RFC 1035, 4.1.1), and where in it: flags, code, how many questions.
const HEADER: usize = 12;
const FLAGS: usize = 2;
const CODE: usize = 3;
const COUNT: usize = 4;
const RESPONSE: u8 = 0x80;
const OPCODE_AND_RECURSION: u8 = 0x79;
const FORMAT_ERROR: u8 = 1;
const NOT_IMPLEMENTED: u8 = 4;
/// Type and class.
const KIND: usize = 4;

#[derive(Debug)]
struct Waiting {
    ends: Pair,
    /// The program's.
    id: u16,
    question: Vec<u8>,
    number: u64,
}

#[derive(Debug, Default)]
pub struct Questions {
    waiting: HashMap<u16, Waiting>,
    /// Secret: what makes an id of a number.
    ids: RandomState,
    made: u64,
}

impl Questions {
    /// Gives the message an id of its own. Where too many wait, the oldest is forgotten.
    pub fn ask(&mut self, ends: Pair, message: &mut [u8]) {
        let Some(question) = question(message).map(<[u8]>::to_vec) else {
            return;
        };
        if self.waiting.len() >= QUESTIONS_MAX {
            let oldest = self.waiting.iter().min_by_key(|(_, it)| it.number);
            if let Some(id) = oldest.map(|(id, _)| *id) {
                self.waiting.remove(&id);
            }
        }
        let own = loop {
            self.made += 1;
            let id = self.ids.hash_one(self.made) as u16;
            if !self.waiting.contains_key(&id) {
                break id;
            }
        };
        let waiting = Waiting {
            ends,
            id: id(message),
            question,
            number: self.made,
        };
        self.waiting.insert(own, waiting);
        message[..2].copy_from_slice(&own.to_be_bytes());
    }

    /// Gives the answer to a question that waits the program's id back. False: it is no such answer.
    pub fn answer(&mut self, ends: Pair, message: &mut [u8]) -> bool {
        if message.len() < HEADER || message[FLAGS] & RESPONSE == 0 {
            return false;
        }
        let own = id(message);
        let is_its = |it: &Waiting| it.ends == ends && answers(message, &it.question);
        if !self.waiting.get(&own).is_some_and(is_its) {
            return false;
        }
        let Some(waiting) = self.waiting.remove(&own) else {
            return false;
        };
        message[..2].copy_from_slice(&waiting.id.to_be_bytes());
        true
    }
}

fn id(message: &[u8]) -> u16 {
    u16::from_be_bytes([message[0], message[1]])
}

/// Names are the same in either case, types and classes are numbers.
fn answers(message: &[u8], asked: &[u8]) -> bool {
    // Who has not understood the question may leave it out.
    if message[COUNT..COUNT + 2] == [0, 0] {
        return message[CODE] & 15 != 0;
    }
    let Some(question) = question(message).filter(|it| it.len() == asked.len()) else {
        return false;
    };
    let kind = asked.len() - KIND;
    question[..kind].eq_ignore_ascii_case(&asked[..kind]) && question[kind..] == asked[kind..]
}

/// The bytes of a message's one question.
fn question(message: &[u8]) -> Option<&[u8]> {
    if *message.get(COUNT..COUNT + 2)? != [0, 1] {
        return None;
    }
    let mut end = HEADER;
    loop {
        match usize::from(*message.get(end)?) {
            0 => break,
            len @ 1..=63 => end += 1 + len,
            // Nothing comes before that this could point at.
            _ => return None,
        }
    }
    message.get(HEADER..end + 1 + KIND)
}

/// The question without anything else that could carry a message out.
pub fn anew(packet: &Packet<'_>, question: Question<'_>) -> simple_dns::Result<Vec<u8>> {
    let mut fresh = Packet::new_query(packet.id());
    for flag in [PacketFlag::RECURSION_DESIRED, PacketFlag::CHECKING_DISABLED] {
        if packet.has_flags(flag) {
            fresh.set_flags(flag);
        }
    }
    *fresh.opt_mut() = packet.opt().map(|opt| OPT {
        opt_codes: Vec::new(),
        udp_packet_size: opt.udp_packet_size,
        version: 0,
    });
    fresh.questions.push(question);
    fresh.build_bytes_vec()
}

pub fn refusal(packet: &Packet<'_>, question: Question<'_>) -> simple_dns::Result<Vec<u8>> {
    let mut reply = Packet::new_reply(packet.id());
    reply.set_flags(PacketFlag::RECURSION_AVAILABLE);
    if packet.has_flags(PacketFlag::RECURSION_DESIRED) {
        reply.set_flags(PacketFlag::RECURSION_DESIRED);
    }
    *reply.rcode_mut() = RCODE::Refused;
    reply.questions.push(question);
    reply.build_bytes_vec()
}

/// What is said to a question that this relay can't make anew: of a type, or with something else, that it does not know.
pub fn not_understood(message: &[u8]) -> Option<Vec<u8>> {
    if message.len() < HEADER || message[FLAGS] & RESPONSE != 0 {
        return None;
    }
    let mut reply = vec![0; HEADER];
    reply[..2].copy_from_slice(&message[..2]);
    reply[FLAGS] = RESPONSE | message[FLAGS] & OPCODE_AND_RECURSION;
    match question(message) {
        Some(question) => {
            reply[CODE] = NOT_IMPLEMENTED;
            reply[COUNT + 1] = 1;
            reply.extend(question);
        }
        None => reply[CODE] = FORMAT_ERROR,
    }
    Some(reply)
}
