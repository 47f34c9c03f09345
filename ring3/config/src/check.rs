// SPDX-License-Identifier: GPL-2.0
//! What has to hold whatever a person writes: no input panics, every error is one line, and
//! what parses prints as itself. Called by the coverage-guided fuzzers of tests/fuzz, and with
//! their corpora and inputs made of the syntaxes' own pieces by the tests here.

use std::path::Path;

use crate::{name, size, sysctl, NodeConfig, PortSpec};

/// A port as on the command line.
pub fn port(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match text.parse::<PortSpec>() {
        Ok(port) => {
            assert_eq!(port.to_string().parse(), Ok(port.clone()), "{text:?}");
            assert!(port.mtu.is_none_or(|mtu| (68..=65521).contains(&mtu)));
            if let Some(name) = port.kind.name() {
                assert!(!name.is_empty() && !name.contains(['/', '\0', '\n', ' ']));
            }
        }
        Err(error) => one_line(&error.to_string()),
    }
}

/// The text of a node.toml.
pub fn node(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match NodeConfig::from_toml(Path::new("folder/node.toml"), text, None) {
        Ok(node) => {
            assert_eq!(node.check(), Ok(()));
            assert_eq!(name::node(&node.name), Ok(()), "{text:?}");
            for port in &node.ports {
                assert_eq!(port.to_string().parse().as_ref(), Ok(port), "{text:?}");
            }
            for (key, _) in &node.sysctls {
                stays_below(key);
            }
        }
        Err(error) => one_line(&error.to_string()),
    }
}

/// Sizes, sysctls and names.
pub fn small(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match size::parse(text) {
        Ok(bytes) => assert_eq!(size::parse(&size::format(bytes)), Ok(bytes)),
        Err(error) => one_line(&error.to_string()),
    }
    match sysctl::parse(text) {
        Ok((key, value)) => {
            stays_below(&key);
            assert!(!value.contains(['\n', '\0']));
        }
        Err(error) => one_line(&error.to_string()),
    }
    if name::node(text).is_ok() {
        assert!(!text.is_empty() && !text.contains(['/', '\0', '\n']) && !text.starts_with('.'));
    }
}

/// A sysctl's path stays below /proc/sys.
fn stays_below(key: &str) {
    let path = sysctl::path(key);
    assert!(!path.starts_with('/'), "{key}");
    let climbs = |part: &str| matches!(part, "" | "." | "..");
    assert!(!path.split('/').any(climbs), "{key}");
}

fn one_line(message: &str) {
    assert!(!message.is_empty());
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// What the fuzzers have kept.
    fn corpus(name: &str, judge: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus");
        let mut inputs = 0;
        // Miri takes some thousand times as long.
        let step = if cfg!(miri) { 8 } else { 1 };
        for entry in std::fs::read_dir(folder.join(name)).unwrap().step_by(step) {
            judge(&std::fs::read(entry.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs * step > 3, "{name}: {inputs} inputs");
    }

    #[test]
    fn corpora() {
        corpus("port", super::port);
        corpus("node", super::node);
        corpus("small", super::small);
    }
}
