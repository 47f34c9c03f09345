// SPDX-License-Identifier: GPL-2.0
//! What a `host` port lets through: ports of the host that lead to the node, and what the node may reach.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// `[ADDRESS@]FIRST[-LAST][:TO[-LAST]]`: ports of the host that lead to the node. pasta's `ADDRESS/` is the same as `ADDRESS@`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// Of the host, where it listens; `None`: on all.
    pub address: Option<IpAddr>,
    pub first: u16,
    pub last: u16,
    /// The node's port for `first`; the others follow.
    pub to: u16,
}

/// What the node may or may not reach: `PLACE[:FIRST[-LAST]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub place: Place,
    /// `None`: all, and what has no ports.
    pub ports: Option<(u16, u16)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    All,
    Net(IpNet),
    Name(Pattern),
}

/// A name, or `*.NAME`: all names below it. In lower case, without a dot at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    pub fn holds_for(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        match self.0.strip_prefix('*') {
            Some(end) => name.strip_suffix(end).is_some_and(|it| !it.is_empty()),
            None => name == self.0,
        }
    }
}

impl FromStr for Pattern {
    type Err = Why;

    /// A name needs a dot, so that a mistyped word is none; and its last part is no number, as of an address.
    fn from_str(text: &str) -> Result<Pattern, Why> {
        let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let parts: Vec<&str> = text
            .strip_prefix("*.")
            .unwrap_or(&text)
            .split('.')
            .collect();
        let is_part = |part: &&str| {
            let is_fine = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
            (1..=63).contains(&part.len()) && part.bytes().all(is_fine)
        };
        let is_number = |part: &&str| part.bytes().all(|b| b.is_ascii_digit());
        let is_name = parts.len() >= 2
            && text.len() <= 253
            && parts.iter().all(is_part)
            && !parts.last().is_some_and(is_number);
        match is_name {
            true => Ok(Pattern(text)),
            false => Err("it is no IP address, no network and no name with a dot"),
        }
    }
}

type Why = &'static str;

impl Rule {
    /// `port`: `None` for what has no ports. A name's addresses are not known here: `of_name` says whether this is one.
    pub fn holds_for(
        &self,
        address: IpAddr,
        port: Option<u16>,
        of_name: impl FnOnce(&Pattern) -> bool,
    ) -> bool {
        let is_port =
            |(first, last): (u16, u16)| port.is_some_and(|it| (first..=last).contains(&it));
        self.ports.is_none_or(is_port)
            && match &self.place {
                Place::All => true,
                Place::Net(net) => net.contains(&address),
                Place::Name(name) => of_name(name),
            }
    }

    pub fn name(&self) -> Option<&Pattern> {
        match &self.place {
            Place::Name(name) => Some(name),
            _ => None,
        }
    }
}

fn port(text: &str) -> Result<u16, Why> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits && port > 0 => Ok(port),
        _ => Err("a port is a number from 1 to 65535"),
    }
}

fn range(text: &str) -> Result<(u16, u16), Why> {
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (port(first)?, port(last)?),
        None => (port(text)?, port(text)?),
    };
    match first <= last {
        true => Ok((first, last)),
        false => Err("the range ends before it begins"),
    }
}

/// In brackets or not.
fn address(text: &str) -> Result<IpAddr, Why> {
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    bare.unwrap_or(text)
        .parse()
        .map_err(|_| "it names no IP address")
}

impl FromStr for Publish {
    type Err = Why;

    fn from_str(text: &str) -> Result<Publish, Why> {
        if matches!(text, "all" | "auto") {
            return Err("which ports the node will listen on is not known here: name them");
        }
        let at = text.find(['@', '/']);
        let (place, ports) = match at {
            Some(at) => (Some(address(&text[..at])?), &text[at + 1..]),
            None => (None, text),
        };
        let (here, there) = match ports.split_once(':') {
            Some((here, there)) => (range(here)?, range(there)?),
            None => (range(ports)?, range(ports)?),
        };
        let is_one = there.0 == there.1 && here.0 == here.1;
        if !is_one && here.1 - here.0 != there.1 - there.0 {
            return Err("the two ranges have not the same length");
        }
        Ok(Publish {
            address: place,
            first: here.0,
            last: here.1,
            to: there.0,
        })
    }
}

fn write_address(f: &mut fmt::Formatter<'_>, address: IpAddr) -> fmt::Result {
    match address {
        IpAddr::V4(v4) => write!(f, "{v4}"),
        IpAddr::V6(v6) => write!(f, "[{v6}]"),
    }
}

impl fmt::Display for Publish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(address) = self.address {
            write_address(f, address)?;
            f.write_str("@")?;
        }
        let count = self.last - self.first;
        match count {
            0 => write!(f, "{}:{}", self.first, self.to),
            _ => {
                let end = self.to.saturating_add(count);
                write!(f, "{}-{}:{}-{end}", self.first, self.last, self.to)
            }
        }
    }
}

impl FromStr for Rule {
    type Err = Why;

    fn from_str(text: &str) -> Result<Rule, Why> {
        let (place, ports) = match text.rsplit_once(':') {
            // Colons of an IPv6 address that no bracket ends.
            Some((place, _)) if place.contains(':') && !place.ends_with(']') => (text, None),
            Some((place, ports)) => (place, Some(range(ports)?)),
            None => (text, None),
        };
        let bare = place.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let place = bare.unwrap_or(place);
        let place = match (place, place.parse::<IpNet>(), place.parse::<IpAddr>()) {
            ("*", ..) => Place::All,
            (_, Ok(net), _) => Place::Net(net.trunc()),
            (_, _, Ok(address)) => Place::Net(address.into()),
            _ => Place::Name(place.parse()?),
        };
        Ok(Rule { place, ports })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bracket = self.ports.is_some();
        match &self.place {
            Place::All => f.write_str("*")?,
            Place::Net(IpNet::V6(net)) if bracket => write!(f, "[{net}]")?,
            Place::Net(net) => write!(f, "{net}")?,
            Place::Name(name) => f.write_str(&name.0)?,
        }
        match self.ports {
            None => Ok(()),
            Some((first, last)) if first == last => write!(f, ":{first}"),
            Some((first, last)) => write!(f, ":{first}-{last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(text: &str) -> Result<Publish, Why> {
        text.parse()
    }

    #[test]
    fn published_ports() {
        let all = |first, last, to| Publish {
            address: None,
            first,
            last,
            to,
        };
        assert_eq!(publish("80"), Ok(all(80, 80, 80)));
        assert_eq!(publish("8080:80"), Ok(all(8080, 8080, 80)));
        assert_eq!(publish("1-9:11-19"), Ok(all(1, 9, 11)));
        let at = |text| publish(text).unwrap().address;
        let local = Some("127.0.0.1".parse().unwrap());
        assert_eq!(at("127.0.0.1@80"), local);
        assert_eq!(at("127.0.0.1/80"), local);
        assert_eq!(at("[::1]@80"), Some("::1".parse().unwrap()));
        for wrong in [
            "", "x", "0", "65536", "9-1", "1-9:1-8", "x@80", "auto", "all", "80:", "+1",
        ] {
            assert!(publish(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rules() {
        let holds = |rule: &str, address: &str, port| {
            let rule: Rule = rule.parse().unwrap();
            rule.holds_for(address.parse().unwrap(), Some(port), |_| false)
        };
        let is_all: Rule = "192.0.2.0/24".parse().unwrap();
        let is_some: Rule = "192.0.2.0/24:443".parse().unwrap();
        let address = "192.0.2.1".parse().unwrap();
        assert!(is_all.holds_for(address, None, |_| false));
        assert!(!is_some.holds_for(address, None, |_| false));
        assert!(holds("192.0.2.0/24", "192.0.2.9", 1));
        assert!(!holds("192.0.2.0/24", "192.0.3.9", 1));
        assert!(holds("192.0.2.9", "192.0.2.9", 1));
        assert!(holds("*:443", "2001:db8::1", 443));
        assert!(!holds("*:443", "2001:db8::1", 80));
        assert!(holds("[2001:db8::]:80-90", "2001:db8::", 85));
        assert!(holds("2001:db8::/32", "2001:db8::1", 443));
        for wrong in [
            "",
            "x",
            "192.0.2.1:",
            "*:0",
            "192.0.2.0/33",
            "192.0.2.300",
            "a..example",
            "*.*.example",
            "a.example/24",
            "a b.example",
            "*example.org",
        ] {
            assert!(wrong.parse::<Rule>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn rules_of_names() {
        let rule: Rule = "PyPI.org.:443".parse().unwrap();
        assert_eq!(rule.to_string(), "pypi.org:443");
        let pattern = |text: &str| text.parse::<Rule>().unwrap().name().unwrap().clone();
        assert!(pattern("pypi.org").holds_for("PYPI.org."));
        assert!(!pattern("pypi.org").holds_for("a.pypi.org"));
        assert!(pattern("*.pypi.org").holds_for("a.b.pypi.org"));
        assert!(!pattern("*.pypi.org").holds_for("pypi.org"));
        assert!(!pattern("*.pypi.org").holds_for(".pypi.org"));
        assert!(!pattern("*.pypi.org").holds_for("notpypi.org"));
        let address = "192.0.2.1".parse().unwrap();
        assert!(rule.holds_for(address, Some(443), |_| true));
        assert!(!rule.holds_for(address, Some(80), |_| true));
        assert!(!rule.holds_for(address, Some(443), |_| false));
    }
}
