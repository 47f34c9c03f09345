// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: names in rules
//!
//! A rule of allow= or deny= may name a name. The relay then reads what a program asks the gateway's port 53 for, and
//! what the host's resolver answers:
//!
//! ```text
//! question   one of a name that is allowed goes on, made anew: nothing of the program's but name, type, class and number
//!            reaches the resolver. Any other is answered REFUSED here
//! answer     one of a question that waits (questions.rs): all else is dropped. The addresses that it gives the name, by way
//!            of its CNAMEs, are allowed at the rule's ports for their time to live. An alias that deny= names ends the way
//! ```
//!
//! Answers come over the flow's own connected socket, from the resolver alone. No name opens an address of the host or of a
//! private network (inward.rs): a rule of its address does. Over TCP it is the same (frames.rs). Which names are
//! allowed: those that no rule of deny= holds for and, where allow= is written, one of its rules does. A rule
//! `allow=*` holds for all, one of an address for none.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use ring3_config::{Place, Rule};
use simple_dns::rdata::RData;
use simple_dns::{Name, Packet, PacketFlag, OPCODE};

use crate::engine::Pair;
use crate::inward::Own;
use crate::questions::{anew, not_understood, refusal, Questions};
use crate::route::Refusal;
use crate::tuning::{NAMED_MAX, NAME_LEAST, NAME_MOST};

/// CNAMEs from a name to its addresses; resolvers give up at some 16.
const ALIASES_MAX: usize = 16;

#[derive(Debug)]
pub struct Names {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    /// Addresses of a name, by the rule's place in `allow`, and until when.
    named: HashMap<(IpAddr, usize), Instant>,
    own: Own,
    questions: Questions,
    /// What was refused since it was last said: what, whom, why.
    pub refused: Vec<(&'static str, String, Refusal)>,
}

/// What becomes of a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    /// These bytes go to the resolver.
    Pass(Vec<u8>),
    /// These go back.
    Answer(Vec<u8>),
    /// No question.
    Drop,
}

impl Names {
    pub fn new(allow: &[Rule], deny: &[Rule]) -> Names {
        Names {
            allow: allow.to_vec(),
            deny: deny.to_vec(),
            named: HashMap::new(),
            own: Own::of_host(),
            questions: Questions::default(),
            refused: Vec::new(),
        }
    }

    /// Whether any rule names one.
    pub fn are_ruled(&self) -> bool {
        let mut rules = self.allow.iter().chain(&self.deny);
        rules.any(|rule| rule.name().is_some())
    }

    fn is_denied(&self, name: &str) -> bool {
        let is = |rule: &Rule| rule.name().is_some_and(|it| it.holds_for(name));
        self.deny.iter().any(is)
    }

    fn is_allowed(&self, name: &str) -> bool {
        let is = |rule: &Rule| rule.name().is_some_and(|it| it.holds_for(name));
        // Rules of addresses alone say nothing about names.
        let all = !self.allow.iter().any(|rule| rule.name().is_some())
            || self.allow.iter().any(|rule| rule.place == Place::All);
        !self.is_denied(name) && (all || self.allow.iter().any(is))
    }

    /// `ends`: the flow's.
    pub fn asked(&mut self, ends: Pair, question: &[u8]) -> Asked {
        let is_question = |packet: &Packet<'_>| {
            !packet.has_flags(PacketFlag::RESPONSE)
                && packet.opcode() == OPCODE::StandardQuery
                && packet.questions.len() == 1
        };
        let packet = match Packet::parse(question) {
            Ok(packet) if is_question(&packet) => packet,
            _ => return not_understood(question).map_or(Asked::Drop, Asked::Answer),
        };
        let question = packet.questions[0].clone();
        let name = question.qname.to_string();
        if !self.is_allowed(&name) {
            self.refuse_name(&name);
            return refusal(&packet, question).map_or(Asked::Drop, Asked::Answer);
        }
        let Ok(mut bytes) = anew(&packet, question) else {
            return Asked::Drop;
        };
        self.questions.ask(ends, &mut bytes);
        Asked::Pass(bytes)
    }

    fn refuse_name(&mut self, name: &str) {
        let refused = ("the name", printable(name), Refusal::Name);
        self.refused.push(refused);
    }

    /// Takes in what the resolver has answered, and makes it what the program waits for. False: nobody does.
    pub fn answered(&mut self, ends: Pair, answer: &mut [u8], now: Instant) -> bool {
        let is_wanted = self.questions.answer(ends, answer);
        if is_wanted {
            self.learn(answer, now);
        }
        is_wanted
    }

    fn learn(&mut self, answer: &[u8], now: Instant) {
        let Ok(packet) = Packet::parse(answer) else {
            return;
        };
        let [question] = &packet.questions[..] else {
            return;
        };
        let name = question.qname.to_string();
        if !self.is_allowed(&name) {
            return;
        }
        let found = self.addresses(&packet, &question.qname);
        let rules: Vec<usize> = (0..self.allow.len())
            .filter(|at| self.allow[*at].name().is_some_and(|it| it.holds_for(&name)))
            .collect();
        for (address, ttl) in found {
            if rules.is_empty() || !self.may_open(address, &name) {
                continue;
            }
            for rule in &rules {
                self.take(address, *rule, now + ttl.clamp(NAME_LEAST, NAME_MOST));
            }
        }
    }

    /// Whether a name may open this address; says so where it may not, and no other rule does.
    fn may_open(&mut self, address: IpAddr, name: &str) -> bool {
        if !self.own.is_inward(address) {
            return true;
        }
        let is = |rule: &Rule| matches!(&rule.place, Place::Net(net) if net.contains(&address));
        if !self.allow.iter().any(is) {
            let whom = format!("{address} of {}", printable(name));
            self.refused.push(("the address", whom, Refusal::Inward));
        }
        false
    }

    fn take(&mut self, address: IpAddr, rule: usize, until: Instant) {
        if self.named.len() >= NAMED_MAX {
            let now = Instant::now();
            self.named.retain(|_, until| *until > now);
        }
        let is_known = self.named.contains_key(&(address, rule));
        if is_known || self.named.len() < NAMED_MAX {
            let held = self.named.entry((address, rule)).or_insert(until);
            *held = until.max(*held);
        }
    }

    /// The addresses of a name, and how long they hold: as long as every record on the way.
    fn addresses(&mut self, packet: &Packet<'_>, name: &Name<'_>) -> Vec<(IpAddr, Duration)> {
        let same = |a: &Name<'_>, b: &str| a.to_string().eq_ignore_ascii_case(b);
        let mut found = Vec::new();
        let (mut name, mut ttl) = (name.to_string(), u32::MAX);
        for _ in 0..ALIASES_MAX {
            let mut next = None;
            for record in packet.answers.iter().filter(|it| same(&it.name, &name)) {
                let holds = Duration::from_secs(ttl.min(record.ttl).into());
                match &record.rdata {
                    RData::A(a) => found.push((Ipv4Addr::from(a.address).into(), holds)),
                    RData::AAAA(a) => {
                        let address = IpAddr::from(Ipv6Addr::from(a.address)).to_canonical();
                        found.push((address, holds));
                    }
                    RData::CNAME(alias) => next = Some((alias.0.to_string(), record.ttl)),
                    _ => {}
                }
            }
            match next {
                Some((alias, _)) if self.is_denied(&alias) => {
                    self.refuse_name(&alias);
                    break;
                }
                Some((alias, of_alias)) => (name, ttl) = (alias, ttl.min(of_alias)),
                None => break,
            }
        }
        found
    }

    /// Whether `address` is one of the names that rule `rule` of allow= is about.
    pub fn has(&self, address: IpAddr, rule: usize, now: Instant) -> bool {
        let until = self.named.get(&(address, rule));
        until.is_some_and(|until| *until > now)
    }
}

/// A name as a program wrote it, for a log.
fn printable(name: &str) -> String {
    name.chars()
        .flat_map(char::escape_default)
        .take(300)
        .collect()
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
