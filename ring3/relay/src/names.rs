// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: names in rules
//!
//! A rule of allow= or deny= may name a name. The relay then reads what a program asks the gateway's port 53 for, and
//! what the host's resolver answers:
//!
//! ```text
//! question   one of a name that is allowed goes on, made anew: nothing of the program's but name, type, class and number
//!            reaches the resolver. Any other is answered REFUSED here
//! answer     the addresses that it gives the name, by way of its CNAMEs, are allowed at the rule's ports for
//!            their time to live
//! ```
//!
//! Answers come over the flow's own connected socket, from the resolver alone. Over TCP no name is asked for. Which names are
//! allowed: those that no rule of deny= holds for and, where allow= is written, one of its rules does. A rule
//! `allow=*` holds for all, one of an address for none.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use ring3_config::{Place, Rule};
use simple_dns::rdata::{RData, OPT};
use simple_dns::{Name, Packet, PacketFlag, Question, OPCODE, RCODE};

use crate::tuning::{NAMED_MAX, NAME_LEAST, NAME_MOST};

/// CNAMEs from a name to its addresses; resolvers give up at some 16.
const ALIASES_MAX: usize = 16;

#[derive(Debug)]
pub struct Names {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    /// Addresses of a name, by the rule's place in `allow`, and until when.
    named: HashMap<(IpAddr, usize), Instant>,
    /// What was refused since it was last said.
    pub refused: Vec<String>,
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
            refused: Vec::new(),
        }
    }

    /// Whether any rule names one.
    pub fn are_ruled(&self) -> bool {
        let mut rules = self.allow.iter().chain(&self.deny);
        rules.any(|rule| rule.name().is_some())
    }

    fn is_allowed(&self, name: &str) -> bool {
        let is = |rule: &Rule| rule.name().is_some_and(|it| it.holds_for(name));
        // Rules of addresses alone say nothing about names.
        let all = !self.allow.iter().any(|rule| rule.name().is_some())
            || self.allow.iter().any(|rule| rule.place == Place::All);
        !self.deny.iter().any(is) && (all || self.allow.iter().any(is))
    }

    pub fn asked(&mut self, question: &[u8]) -> Asked {
        let Ok(packet) = Packet::parse(question) else {
            return Asked::Drop;
        };
        let is_question = !packet.has_flags(PacketFlag::RESPONSE)
            && packet.opcode() == OPCODE::StandardQuery
            && packet.questions.len() == 1;
        if !is_question {
            return Asked::Drop;
        }
        let question = packet.questions[0].clone();
        let name = question.qname.to_string();
        let bytes = match self.is_allowed(&name) {
            true => anew(&packet, question),
            false => {
                self.refused.push(printable(&name));
                refusal(&packet, question)
            }
        };
        match (bytes, self.is_allowed(&name)) {
            (Ok(bytes), true) => Asked::Pass(bytes),
            (Ok(bytes), false) => Asked::Answer(bytes),
            (Err(_), _) => Asked::Drop,
        }
    }

    /// Takes in what the resolver has answered.
    pub fn answered(&mut self, answer: &[u8], now: Instant) {
        let Ok(packet) = Packet::parse(answer) else {
            return;
        };
        let [question] = &packet.questions[..] else {
            return;
        };
        if !packet.has_flags(PacketFlag::RESPONSE) {
            return;
        }
        let name = question.qname.to_string();
        if !self.is_allowed(&name) {
            return;
        }
        let found = addresses(&packet, &question.qname);
        let rules: Vec<usize> = (0..self.allow.len())
            .filter(|at| self.allow[*at].name().is_some_and(|it| it.holds_for(&name)))
            .collect();
        for (address, ttl) in found {
            for rule in &rules {
                self.take(address, *rule, now + ttl.clamp(NAME_LEAST, NAME_MOST));
            }
        }
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

    /// Whether `address` is one of the names that rule `rule` of allow= is about.
    pub fn has(&self, address: IpAddr, rule: usize, now: Instant) -> bool {
        let until = self.named.get(&(address, rule));
        until.is_some_and(|until| *until > now)
    }
}

/// The question without anything else that could carry a message out.
fn anew(packet: &Packet<'_>, question: Question<'_>) -> simple_dns::Result<Vec<u8>> {
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

fn refusal(packet: &Packet<'_>, question: Question<'_>) -> simple_dns::Result<Vec<u8>> {
    let mut reply = Packet::new_reply(packet.id());
    reply.set_flags(PacketFlag::RECURSION_AVAILABLE);
    if packet.has_flags(PacketFlag::RECURSION_DESIRED) {
        reply.set_flags(PacketFlag::RECURSION_DESIRED);
    }
    *reply.rcode_mut() = RCODE::Refused;
    reply.questions.push(question);
    reply.build_bytes_vec()
}

/// The addresses of a name, and how long they hold: as long as every record on the way.
fn addresses(packet: &Packet<'_>, name: &Name<'_>) -> Vec<(IpAddr, Duration)> {
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
            Some((alias, of_alias)) => (name, ttl) = (alias, ttl.min(of_alias)),
            None => break,
        }
    }
    found
}

/// A name as a program wrote it, for a log.
fn printable(name: &str) -> String {
    name.chars()
        .flat_map(char::escape_default)
        .take(300)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::rdata::{A, CNAME};
    use simple_dns::{ResourceRecord, CLASS, TYPE};

    fn names(allow: &[&str], deny: &[&str]) -> Names {
        let rules =
            |list: &[&str]| -> Vec<Rule> { list.iter().map(|it| it.parse().unwrap()).collect() };
        Names::new(&rules(allow), &rules(deny))
    }

    fn about(name: &str) -> Question<'_> {
        let name = Name::new_unchecked(name);
        Question::new(name, TYPE::A.into(), CLASS::IN.into(), false)
    }

    fn question(name: &str) -> Vec<u8> {
        let mut packet = Packet::new_query(7);
        packet.set_flags(PacketFlag::RECURSION_DESIRED);
        packet.questions.push(about(name));
        packet.build_bytes_vec().unwrap()
    }

    /// `name IN CNAME alias`, and addresses of other names.
    fn answer(name: &str, records: &[(&str, u32, RData<'static>)]) -> Vec<u8> {
        let mut packet = Packet::new_reply(7);
        packet.questions.push(about(name));
        for (name, ttl, data) in records {
            let name = Name::new_unchecked(name);
            let record = ResourceRecord::new(name, CLASS::IN, *ttl, data.clone());
            packet.answers.push(record);
        }
        packet.build_bytes_vec().unwrap()
    }

    fn a(address: &str) -> RData<'static> {
        let address: Ipv4Addr = address.parse().unwrap();
        RData::A(A {
            address: address.into(),
        })
    }

    fn alias(name: &'static str) -> RData<'static> {
        RData::CNAME(CNAME(Name::new_unchecked(name)))
    }

    fn may_ask(names: &mut Names, name: &str) -> bool {
        match names.asked(&question(name)) {
            Asked::Pass(_) => true,
            Asked::Answer(_) => false,
            Asked::Drop => panic!("{name}"),
        }
    }

    #[test]
    fn which_names_may_be_asked_for() {
        let mut few = names(&["pypi.org:443", "*.example.org"], &["bad.example.org"]);
        assert!(may_ask(&mut few, "PyPI.org"));
        assert!(may_ask(&mut few, "a.example.org"));
        for name in ["example.org", "bad.example.org", "pypi.org.evil.example"] {
            assert!(!may_ask(&mut few, name), "{name}");
        }
        assert_eq!(few.refused.len(), 3);
        let mut most = names(&[], &["bad.example.org"]);
        assert!(may_ask(&mut most, "pypi.org") && !may_ask(&mut most, "bad.example.org"));
        let mut all = names(&["pypi.org:443", "*:80"], &[]);
        assert!(may_ask(&mut all, "example.org"));
        assert!(!names(&["*:80", "192.0.2.1"], &["192.0.2.0/24"]).are_ruled());
    }

    #[test]
    fn a_question_carries_nothing_else_out() {
        let mut names = names(&["pypi.org"], &[]);
        let mut bytes = question("pypi.org");
        let clean = names.asked(&bytes);
        bytes.extend(b"a secret");
        let with_more = names.asked(&bytes);
        assert!(matches!(with_more, Asked::Drop) || with_more == clean);
        let Asked::Pass(passed) = clean else { panic!() };
        assert_eq!(passed.len(), question("pypi.org").len());
        for len in 0..12 {
            assert_eq!(names.asked(&bytes[..len]), Asked::Drop);
        }
    }

    #[test]
    fn a_refusal_answers_the_question() {
        let mut names = names(&["pypi.org"], &[]);
        let Asked::Answer(bytes) = names.asked(&question("example.org")) else {
            panic!();
        };
        let reply = Packet::parse(&bytes).unwrap();
        assert_eq!((reply.id(), reply.rcode()), (7, RCODE::Refused));
        assert_eq!(reply.questions.len(), 1);
    }

    #[test]
    fn addresses_hold_for_their_time() {
        let mut names = names(&["*:1", "pypi.org:443"], &[]);
        let now = Instant::now();
        let records = [
            ("pypi.org", 600, alias("x.example.net")),
            ("x.example.net", 200, a("192.0.2.1")),
            ("other.example.net", 600, a("192.0.2.2")),
        ];
        names.answered(&answer("pypi.org", &records), now);
        let has = |names: &Names, address: &str, rule, after| {
            let at = now + Duration::from_secs(after);
            names.has(address.parse().unwrap(), rule, at)
        };
        assert!(has(&names, "192.0.2.1", 1, 199));
        assert!(!has(&names, "192.0.2.1", 1, 200));
        // Of another rule; not on the way from the name.
        assert!(!has(&names, "192.0.2.1", 0, 0));
        assert!(!has(&names, "192.0.2.2", 1, 0));
        // Of a name that no rule is about.
        let records = [("example.org", 600, a("192.0.2.3"))];
        names.answered(&answer("example.org", &records), now);
        assert_eq!(names.named.len(), 1);
        // A question is no answer, and a circle ends.
        names.answered(&question("pypi.org"), now);
        let records = [
            ("pypi.org", 600, alias("b.example")),
            ("b.example", 600, alias("pypi.org")),
        ];
        names.answered(&answer("pypi.org", &records), now);
        assert_eq!(names.named.len(), 1);
    }
}
