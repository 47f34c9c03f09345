// SPDX-License-Identifier: GPL-2.0

use super::*;
use simple_dns::rdata::{A, CNAME};
use simple_dns::{Question, ResourceRecord, CLASS, RCODE, TYPE};
use std::net::SocketAddr;

const PROGRAM: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 2, 15)), 4000);
const GATEWAY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 2, 2)), 53);
const ENDS: Pair = (PROGRAM, GATEWAY);

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
fn answer(id: u16, name: &str, records: &[(&str, u32, RData<'static>)]) -> Vec<u8> {
    let mut packet = Packet::new_reply(id);
    packet.questions.push(about(name));
    for (name, ttl, data) in records {
        let name = Name::new_unchecked(name);
        let record = ResourceRecord::new(name, CLASS::IN, *ttl, data.clone());
        packet.answers.push(record);
    }
    packet.build_bytes_vec().unwrap()
}

fn id_of(message: &[u8]) -> u16 {
    u16::from_be_bytes([message[0], message[1]])
}

fn ask(names: &mut Names, name: &str) -> u16 {
    match names.asked(ENDS, &question(name)) {
        Asked::Pass(bytes) => id_of(&bytes),
        other => panic!("{name}: {other:?}"),
    }
}

/// Asks, and has the resolver answer so.
fn resolve(names: &mut Names, name: &str, records: &[(&str, u32, RData<'static>)], now: Instant) {
    let mut answer = answer(ask(names, name), name, records);
    assert!(names.answered(ENDS, &mut answer, now));
    assert_eq!(id_of(&answer), 7);
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
    match names.asked(ENDS, &question(name)) {
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
    let clean = names.asked(ENDS, &bytes);
    bytes.extend(b"a secret");
    let with_more = names.asked(ENDS, &bytes);
    let (Asked::Pass(passed), Asked::Pass(more)) = (clean, with_more) else {
        panic!()
    };
    assert_eq!(passed.len(), question("pypi.org").len());
    assert_eq!(passed[2..], more[2..]);
    // Not even by the number of the question.
    assert_ne!(id_of(&passed), id_of(&more));
    for len in 0..12 {
        assert_eq!(names.asked(ENDS, &bytes[..len]), Asked::Drop);
    }
}

#[test]
fn a_refusal_answers_the_question() {
    let mut names = names(&["pypi.org"], &[]);
    let Asked::Answer(bytes) = names.asked(ENDS, &question("example.org")) else {
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
    resolve(&mut names, "pypi.org", &records, now);
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
    resolve(&mut names, "example.org", &records, now);
    assert_eq!(names.named.len(), 1);
    // A question is no answer, and a circle ends.
    assert!(!names.answered(ENDS, &mut question("pypi.org"), now));
    let records = [
        ("pypi.org", 600, alias("b.example")),
        ("b.example", 600, alias("pypi.org")),
    ];
    resolve(&mut names, "pypi.org", &records, now);
    assert_eq!(names.named.len(), 1);
}

#[test]
fn a_name_does_not_open_the_host_s_networks() {
    let mut names = names(&["*.example.org", "10.1.0.0/16:22"], &[]);
    let now = Instant::now();
    let inward = ["10.0.0.1", "169.254.169.254", "100.64.0.1", "127.0.0.1"];
    let of_rule = ["10.1.0.1"];
    for address in inward.iter().chain(&of_rule) {
        let records = [("a.example.org", 60, a(address))];
        resolve(&mut names, "a.example.org", &records, now);
        assert!(!names.has(address.parse().unwrap(), 0, now), "{address}");
    }
    // The rule of an address says which ports; it is no news that a name has it, too.
    let said: Vec<_> = names.refused.drain(..).map(|it| (it.1, it.2)).collect();
    let all = inward.map(|it| (format!("{it} of a.example.org"), Refusal::Inward));
    assert_eq!(said, all);
    resolve(
        &mut names,
        "a.example.org",
        &[("a.example.org", 60, a("192.0.2.1"))],
        now,
    );
    assert!(names.has("192.0.2.1".parse().unwrap(), 0, now));
}

#[test]
fn only_the_answer_to_a_question_is_one() {
    let mut names = names(&["pypi.org"], &[]);
    let now = Instant::now();
    let id = ask(&mut names, "pypi.org");
    let records = [("pypi.org", 60, a("192.0.2.1"))];
    let elsewhere = (GATEWAY, PROGRAM);
    let forged = [
        (ENDS, answer(id.wrapping_add(1), "pypi.org", &records)),
        (ENDS, answer(id, "www.pypi.org", &records)),
        (elsewhere, answer(id, "pypi.org", &records)),
    ];
    for (ends, mut answer) in forged {
        assert!(!names.answered(ends, &mut answer, now));
    }
    assert!(names.named.is_empty());
    let mut right = answer(id, "PyPI.org", &records);
    assert!(names.answered(ENDS, &mut right.clone(), now));
    assert_eq!(names.named.len(), 1);
    // It is answered now.
    assert!(!names.answered(ENDS, &mut right, now));
}

#[test]
fn a_denied_alias_ends_the_way() {
    let mut names = names(&["a.example.org"], &["bad.example"]);
    let now = Instant::now();
    let records = [
        ("a.example.org", 60, alias("bad.example")),
        ("bad.example", 60, a("192.0.2.1")),
    ];
    resolve(&mut names, "a.example.org", &records, now);
    assert!(names.named.is_empty());
    assert_eq!(names.refused[0].1, "bad.example");
}

#[test]
fn a_question_of_an_unknown_type_is_answered() {
    let mut names = names(&["pypi.org"], &[]);
    let mut bytes = question("pypi.org");
    let kind = bytes.len() - 4;
    bytes[kind..kind + 2].copy_from_slice(&[0xff, 0x01]);
    let Asked::Answer(reply) = names.asked(ENDS, &bytes) else {
        panic!();
    };
    // NOTIMP, with the question; FORMERR where none can be read.
    assert_eq!((&reply[..2], reply[3] & 15), (&bytes[..2], 4));
    assert_eq!((reply[2], &reply[12..]), (0x81, &bytes[12..]));
    let Asked::Answer(reply) = names.asked(ENDS, &bytes[..20]) else {
        panic!();
    };
    assert_eq!((reply.len(), reply[3] & 15), (12, 1));
    assert_eq!(names.asked(ENDS, &reply), Asked::Drop);
}
