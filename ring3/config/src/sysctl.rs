// SPDX-License-Identifier: GPL-2.0
//! `net.ipv4.tcp_congestion_control=bbr`, as sysctl(8) writes it.

use crate::ConfigError;

/// Splits `KEY=VALUE`.
pub fn parse(text: &str) -> Result<(String, String), ConfigError> {
    let error = |why| ConfigError::Sysctl {
        text: text.to_owned(),
        why,
    };
    let (key, value) = text.split_once('=').ok_or_else(|| error("has no ="))?;
    let (key, value) = (key.trim(), value.trim());
    check(key, value).map_err(error)?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Checks a pair that came from elsewhere.
pub(crate) fn pair(key: &str, value: &str) -> Result<(), ConfigError> {
    check(key, value).map_err(|why| ConfigError::Sysctl {
        text: format!("{key}={value}"),
        why,
    })
}

/// Where the value is to be written, below /proc/sys. The first of `.` and `/`
/// to occur is the separator and the other one is part of a name, as sysctl(8) has it.
pub fn path(key: &str) -> String {
    match key.find(['.', '/']) {
        Some(at) if key.as_bytes()[at] == b'.' => key
            .chars()
            .map(|c| match c {
                '.' => '/',
                '/' => '.',
                other => other,
            })
            .collect(),
        _ => key.to_owned(),
    }
}

fn check(key: &str, value: &str) -> Result<(), &'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '@');
    if key.is_empty() {
        return Err("has no key");
    }
    if !key.chars().all(allowed) {
        return Err("has a character in its key that is not allowed");
    }
    let path = path(key);
    if !path.contains('/') {
        return Err("has a key of one part");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("has an empty part in its key");
    }
    if !path.starts_with("net/") {
        return Err("is the host's: a node has those below net");
    }
    if value.contains(['\0', '\n']) {
        return Err("has a value of more than one line");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs() {
        let pair = |k: &str, v: &str| Ok((k.to_owned(), v.to_owned()));
        assert_eq!(
            parse("net.ipv4.tcp_rmem=4096 131072 6291456"),
            pair("net.ipv4.tcp_rmem", "4096 131072 6291456")
        );
        assert_eq!(
            parse("net.core.default_qdisc = fq"),
            pair("net.core.default_qdisc", "fq")
        );
        assert_eq!(parse("net.x.y=a=b"), pair("net.x.y", "a=b"));
    }

    #[test]
    fn paths() {
        assert_eq!(path("net.ipv4.ip_forward"), "net/ipv4/ip_forward");
        assert_eq!(
            path("net/ipv4/conf/eth0.1/forwarding"),
            "net/ipv4/conf/eth0.1/forwarding"
        );
        assert_eq!(
            path("net.ipv4.conf.eth0/1.forwarding"),
            "net/ipv4/conf/eth0.1/forwarding"
        );
    }

    #[test]
    fn what_is_wrong() {
        for (text, why) in [
            ("", "has no ="),
            ("net.ipv4.ip_forward", "has no ="),
            ("=1", "has no key"),
            ("forward=1", "one part"),
            ("net..x=1", "empty part"),
            (".net=1", "empty part"),
            ("net/../x=1", "empty part"),
            ("net ipv4=1", "not allowed"),
            ("net.x=a\nb", "more than one line"),
            ("kernel.panic=3", "is the host's"),
            ("network.x=3", "is the host's"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
