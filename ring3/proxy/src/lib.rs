// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the supervisor of `ring3 proxy`
//!
//! It has the configuration and the host's sockets; its child, the relay (ring3_relay::proxy), has the clients and nothing
//! else. No packet of a client reaches this process: what comes from the relay are small messages (ring3_relay::proxy::wire),
//! of which each is a wish that the configuration bounds.
//!
//! | module | concept |
//! | --- | --- |
//! | [`supervisor`] | the loop: the relay, signals, commands |
//! | [`child`] | the relay's process |
//! | [`wants`] | what the relay asks for, and what it was given |
//! | [`reading`], [`reload`] | another configuration: read beside the loop, and taken over as a whole |
//! | [`targets`] | which target is next, and a socket that connects to it |
//! | [`health`] | whether a target answers |
//! | [`control`] | `ring3 proxy reload` |
//! | [`journal`] | lines of JSON |
//! | [`metrics`], [`scrape`] | numbers for Prometheus, and who asks for them |
#![deny(unsafe_code)]

mod child;
mod control;
mod error;
#[cfg(test)]
mod fake;
mod health;
mod journal;
mod metrics;
mod reading;
mod reload;
mod scrape;
mod supervisor;
mod targets;
mod wants;

use std::path::{Path, PathBuf};

use ring3_config::ProxyConfig;

pub use control::reload;
pub use error::{Error, Result};
pub use supervisor::run;

/// Where the configuration is from, so that it can be read again.
#[derive(Debug, Clone)]
pub enum Source {
    File { path: PathBuf, on: Option<String> },
    Words(ProxyConfig),
}

impl Source {
    pub fn read(&self) -> Result<ProxyConfig> {
        match self {
            Source::File { path, on } => {
                let text = std::fs::read_to_string(path).map_err(|why| Error::Unreadable {
                    path: path.clone(),
                    why,
                })?;
                Ok(ProxyConfig::from_toml(path, &text, on.as_deref())?)
            }
            Source::Words(config) => Ok(config.clone()),
        }
    }
}

/// What `ring3 proxy` is told besides.
#[derive(Debug)]
pub struct Orders<'a> {
    pub source: Source,
    /// For `ring3 proxy reload`; by default the node's.
    pub name: Option<String>,
    /// The hidden verb of the command that becomes the relay.
    pub verb: &'a str,
    /// Once it serves.
    pub ready: fn(),
    /// The node's own numbers, in Prometheus' format.
    pub node_metrics: fn(&str) -> String,
}

/// A path as others see it.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
