// SPDX-License-Identifier: GPL-2.0
//! The host's name servers, for a node that can reach the internet.
//!
//! A node without name servers of its own sees the host's /etc/resolv.conf. On a host with a local
//! resolver, that names an address of the loopback, often 127.0.0.53, which on the node is the node
//! itself. Such resolvers leave a file with the servers that they ask themselves: then the node
//! gets an /etc/resolv.conf of its own, with those.

use std::net::IpAddr;
use std::path::Path;

pub(crate) const RESOLV_CONF: &str = "/etc/resolv.conf";
/// The files that systemd-resolved(8) and NetworkManager(8) document for clients that can't use the
/// loopback.
pub(crate) const UPSTREAM: [&str; 2] = [
    "/run/systemd/resolve/resolv.conf",
    "/run/NetworkManager/no-stub-resolv.conf",
];

/// How the host resolves names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// By servers that the node can reach as well, or by none.
    Reachable,
    /// By a server on its loopback, and this is the resolv.conf with the servers that that one
    /// asks.
    Behind(String),
    /// By a server on its loopback, at this address.
    Hidden(IpAddr),
}

pub(crate) fn host(file: &str, upstream: &[&str]) -> Resolver {
    let Some(first) = servers_of(file).and_then(only_loopback) else {
        return Resolver::Reachable;
    };
    let behind = upstream.iter().find_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        let lines = text.lines().filter(|line| !names_loopback(line));
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        text.lines().any(|it| server(it).is_some()).then_some(text)
    });
    match behind {
        Some(text) => Resolver::Behind(text),
        None => Resolver::Hidden(first),
    }
}

/// The first server in the file; without one, the host asks its own loopback (resolv.conf(5)).
pub(crate) fn first(file: &str) -> IpAddr {
    let servers = servers_of(file).unwrap_or_default();
    let first = servers.first().copied();
    first.unwrap_or(std::net::Ipv4Addr::LOCALHOST.into())
}

/// Without the file there is no server, on the host as on the node.
fn servers_of(file: &str) -> Option<Vec<IpAddr>> {
    let text = std::fs::read_to_string(Path::new(file)).ok()?;
    Some(text.lines().filter_map(server).collect())
}

/// The first server, if all are on the loopback.
fn only_loopback(servers: Vec<IpAddr>) -> Option<IpAddr> {
    let all = servers.iter().all(IpAddr::is_loopback);
    servers.first().copied().filter(|_| all)
}

fn names_loopback(line: &str) -> bool {
    server(line).is_some_and(|it| it.is_loopback())
}

/// The address of a line `nameserver ADDRESS`.
fn server(line: &str) -> Option<IpAddr> {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("nameserver") => words.next()?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result for such files; an empty text stands for a missing file.
    fn case(name: &str, own: &str, upstream: &str) -> Resolver {
        let name = format!("ring3-resolver-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let path = |name: &str, text: &str| {
            let file = folder.join(name);
            if !text.is_empty() {
                std::fs::write(&file, text).unwrap();
            }
            file.to_str().unwrap().to_owned()
        };
        let files = (path("own", own), path("upstream", upstream));
        let found = host(&files.0, &["/nowhere", &files.1]);
        std::fs::remove_dir_all(&folder).unwrap();
        found
    }

    #[test]
    fn whom_the_local_one_asks() {
        let own = "nameserver 127.0.0.53\noptions edns0\n";
        let upstream =
            "# of 127.0.0.53\nnameserver 192.0.2.1\nnameserver ::1\nsearch example.org\n";
        let wanted = "# of 127.0.0.53\nnameserver 192.0.2.1\nsearch example.org\n";
        assert_eq!(case("a", own, upstream), Resolver::Behind(wanted.into()));
    }

    #[test]
    fn one_that_nothing_is_known_of() {
        let hidden = Resolver::Hidden([127, 0, 0, 1].into());
        assert_eq!(case("b", "nameserver 127.0.0.1\n", ""), hidden);
        let alike = "nameserver 127.0.0.1\n";
        assert_eq!(case("c", alike, alike), hidden);
    }

    #[test]
    fn one_that_can_be_reached() {
        for own in [
            "nameserver 192.0.2.1\n",
            "nameserver 127.0.0.1\nnameserver 192.0.2.1\n",
            "search example.org\n",
            "",
        ] {
            let found = case("d", own, "nameserver 192.0.2.9\n");
            assert_eq!(found, Resolver::Reachable, "{own}");
        }
    }
}
