// SPDX-License-Identifier: GPL-2.0
//! Everything that can be wrong with a configuration, each with its remedy.

use std::path::PathBuf;

use crate::port::{KEYS, KINDS};

/// A configuration that cannot be used. Always the user's to mend: exit status 2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("port `{spec}`: {cause}")]
    Port { spec: String, cause: PortError },

    #[error("{}: {cause}", path.display())]
    File { path: PathBuf, cause: String },

    #[error(
        "node name `{name}` {why}: use 1 to 63 of a-z A-Z 0-9 . _ -, the first a letter or digit"
    )]
    Name { name: String, why: &'static str },

    #[error("size `{text}` {why}: use a number with K, M or G, for example 256M")]
    Size { text: String, why: &'static str },

    #[error("memory of {got} is out of range: use {min} to {max}")]
    Memory {
        got: String,
        min: String,
        max: String,
    },

    #[error("sysctl `{text}` {why}: use KEY=VALUE, for example net.ipv4.ip_forward=1")]
    Sysctl { text: String, why: &'static str },

    #[error("route `{text}` {why}: for example 10.2.0.0/16 via 10.0.0.1, or default via fd00::1")]
    Route { text: String, why: &'static str },

    #[error("host `{text}` {why}: for example db=10.0.0.2")]
    Host { text: String, why: &'static str },

    #[error("name server `{text}` is no IP address: for example 10.0.2.3")]
    Dns { text: String },

    #[error("`{text}` is nothing to wait for: use tcp PORT or udp PORT, for example tcp 8000")]
    WaitFor { text: String },

    #[error("`{text}` is nothing to wait for: use NODE tcp PORT or NODE udp PORT, for example `web tcp 8000`")]
    WaitForNode { text: String },

    #[error("kernel command line {why}")]
    Cmdline { why: &'static str },

    #[error("spin of {got} ns is out of range: use 0 to {max}")]
    Spin { got: u32, max: u32 },

    #[error("a node cannot have {got} vCPUs: use 1 to {max}")]
    Cpus { got: u32, max: u32 },

    #[error("a grace of `{got}` is none: use seconds, 0 to {max}, for example 10 or 0.5")]
    Grace { got: String, max: u64 },

    #[error("{key} = {got} of a sandbox is out of range: use {min} to {max}")]
    Limit {
        key: &'static str,
        got: u64,
        min: u64,
        max: u64,
    },

    #[error("restart `{got}` is unknown: use no, on-failure or always")]
    Restart { got: String },

    #[error("a program's command is empty: use command = [\"NAME\", \"ARGUMENT\"]")]
    NoProgram,

    #[error("{count} ports are too many: a node has at most {max}")]
    TooManyPorts { count: usize, max: usize },

    #[error("two ports are `{kind}:{name}`: a node may name it once")]
    SamePort { kind: &'static str, name: String },

    #[error("two ports have the address {address}: give each its own")]
    SameAddress { address: String },

    #[error("two ports have pcap={}: give each a file of its own", path.display())]
    SamePcap { path: PathBuf },
}

/// What is wrong with one port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    #[error("is empty; {}", syntax())]
    Empty,

    #[error("unknown kind `{0}`; the kinds are {kinds}", kinds = KINDS.join(", "))]
    UnknownKind(String),

    #[error("unknown key `{0}`; the keys are {keys}", keys = KEYS.join(", "))]
    UnknownKey(String),

    #[error("`{0}` is not key=value; the keys are {keys}", keys = KEYS.join(", "))]
    NotKeyValue(String),

    #[error("key `{0}` has no value")]
    NoValue(&'static str),

    #[error("key `{0}` is given twice")]
    Twice(&'static str),

    #[error("{kind} needs a name: {kind}:{example}")]
    NeedsName {
        kind: &'static str,
        example: &'static str,
    },

    #[error("{kind} takes no name, but `{name}` was given")]
    TakesNoName { kind: &'static str, name: String },

    #[error("name `{name}` {why}")]
    BadName { name: String, why: &'static str },

    #[error("key `{key}` is for {of} ports only, this one is {kind}")]
    Only {
        key: &'static str,
        of: &'static str,
        kind: &'static str,
    },

    #[error("{key}={text}: {why}, as in {key}=8080:80, {key}=127.0.0.1@8000-8010:80-90")]
    Publish {
        key: &'static str,
        text: String,
        why: &'static str,
    },

    #[error(
        "{key}={text}: {why}, as in {key}=192.0.2.0/24, {key}=*:443, {key}=[2001:db8::1]:80-90"
    )]
    Rule {
        key: &'static str,
        text: String,
        why: &'static str,
    },

    #[error("{key}={text}: use yes or no")]
    YesOrNo { key: &'static str, text: String },

    #[error("malformed address `{text}` in {key}: {why}, for example {example}")]
    Address {
        key: &'static str,
        text: String,
        why: &'static str,
        example: &'static str,
    },

    #[error("gateway {0} is on no subnet of this port: add an addr= whose network contains it")]
    GatewayOffLink(String),

    #[error("{key} {address} is given twice")]
    SameAddress { key: &'static str, address: String },

    #[error("addr and host are both {0}: the two ends of a tap need one each")]
    SameBothEnds(String),

    #[error("mtu `{text}` {why}: use {min} to {max}")]
    Mtu {
        text: String,
        why: &'static str,
        min: u32,
        max: u32,
    },

    #[error("mtu {mtu} is too small for the IPv6 address {address}: use at least 1280")]
    MtuForIpv6 { mtu: u32, address: String },

    #[error("mtu {mtu} is too large: an xdp port takes at most {max}, a frame has to fit into half a page")]
    MtuForXdp { mtu: u32, max: u32 },

    #[error("mac `{text}` {why}: use six pairs of hex digits, for example 02:00:00:00:00:01")]
    Mac { text: String, why: &'static str },
}

fn syntax() -> String {
    format!(
        "a port is KIND[:NAME][,key=value]..., the kinds are {}",
        KINDS.join(", ")
    )
}
