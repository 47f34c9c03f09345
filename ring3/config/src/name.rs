// SPDX-License-Identifier: GPL-2.0
//! Names: of nodes, of links, of host interfaces.

use crate::error::PortError;
use crate::ConfigError;

/// A node's name is its hostname and a folder's name: at most 63 characters.
const NODE_NAME_MAX: usize = 63;

/// A host interface's name: IFNAMSIZ of <linux/if.h>, less the NUL.
const IFNAME_MAX: usize = 15;

fn check(name: &str, max: usize) -> Result<(), &'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() {
        Err("is empty")
    } else if name.len() > max {
        Err("is too long")
    } else if !name.chars().all(allowed) {
        Err("has a character that is not allowed")
    } else if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        Err("does not start with a letter or digit")
    } else {
        Ok(())
    }
}

/// Is this a name for a node?
pub fn node(name: &str) -> Result<(), ConfigError> {
    check(name, NODE_NAME_MAX).map_err(|why| ConfigError::Name {
        name: name.to_owned(),
        why,
    })
}

/// Is this a name for a link? It becomes a file's name, as a node's does.
pub(crate) fn link(name: &str) -> Result<(), PortError> {
    check(name, NODE_NAME_MAX).map_err(|why| PortError::BadName {
        name: name.to_owned(),
        why,
    })
}

/// Bytes of a unix socket's path: sun_path of <linux/un.h>, less the NUL.
const SOCKET_PATH_MAX: usize = 107;

/// Can a unix socket have this path?
pub(crate) fn socket(path: &str) -> Result<(), PortError> {
    let why = if path.len() > SOCKET_PATH_MAX {
        "is too long for a socket: at most 107 bytes"
    } else if path.ends_with('/') {
        "is a folder's: a socket's own path is needed"
    } else if path.contains('\0') {
        "has a character that a path must not have"
    } else {
        return Ok(());
    };
    Err(PortError::BadName {
        name: path.to_owned(),
        why,
    })
}

/// Is this a name that the host's kernel takes for an interface (dev_valid_name())?
pub(crate) fn interface(name: &str) -> Result<(), PortError> {
    let why = if name.is_empty() {
        "is empty"
    } else if name.len() > IFNAME_MAX {
        "is too long for an interface: at most 15 characters"
    } else if name == "." || name == ".." {
        "is no interface name"
    } else if name
        .bytes()
        .any(|b| b == b'/' || b == b':' || !b.is_ascii_graphic())
    {
        "has a character that an interface name must not have"
    } else {
        return Ok(());
    };
    Err(PortError::BadName {
        name: name.to_owned(),
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes() {
        for good in ["a", "web-1", "a.b_c", "0", &"x".repeat(63)] {
            assert_eq!(node(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", "is empty"),
            (".", "does not start with"),
            ("..", "does not start with"),
            ("-f", "does not start with"),
            ("a/b", "is not allowed"),
            ("a b", "is not allowed"),
            ("ä", "is not allowed"),
            ("a\0", "is not allowed"),
            (&"x".repeat(64), "is too long"),
        ] {
            let error = node(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn interfaces() {
        for good in ["eth0", "r3tap0", "a.b@c", "123456789012345"] {
            assert_eq!(interface(good), Ok(()), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a:b", "a b", "1234567890123456"] {
            assert!(interface(bad).is_err(), "{bad}");
        }
    }
}
