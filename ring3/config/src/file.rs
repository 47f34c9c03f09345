// SPDX-License-Identifier: GPL-2.0
//! The TOML form of a node.
//!
//! ```toml
//! name = "web"
//! mem = "1G"
//!
//! [sysctl]
//! "net.ipv4.tcp_congestion_control" = "bbr"
//!
//! [[port]]
//! kind = "link"
//! name = "ab"
//! addr = ["10.0.0.1/24", "fd00::1/64"]
//! ```
//!
//! A port may also be one string, as on the command line:
//! `port = ["link:ab,addr=10.0.0.1/24", "passt"]`.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;

use crate::error::ConfigError;
use crate::node::{grace, NodeConfig, Restart, GRACE_DEFAULT, MEM_DEFAULT, SPIN_DEFAULT_NS};
use crate::port::{Draft, PortKind, PortSpec};
use crate::sandbox::Sandbox;
use crate::{names, size, sysctl};

/// The file's top level. The name may come from the command line instead.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    name: Option<String>,
    mem: Option<Size>,
    spin_ns: Option<u32>,
    cpus: Option<u32>,
    host_cpuid: Option<bool>,
    seed: Option<u64>,
    cmdline: Option<String>,
    grace: Option<Text>,
    restart: Option<String>,
    image: Option<PathBuf>,
    sandbox: Option<Sandbox>,
    #[serde(default)]
    sysctl: Pairs,
    #[serde(default)]
    route: Vec<String>,
    #[serde(default)]
    hosts: Named<Many>,
    #[serde(default)]
    dns: Vec<String>,
    #[serde(default)]
    wait: Vec<String>,
    #[serde(default)]
    port: Vec<Port>,
    #[serde(default)]
    program: Vec<Program>,
}

/// One of the programs that `ring3 up` starts on the node.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    command: Vec<String>,
}

impl NodeConfig {
    /// A node from the text of a node.toml. `path` is for messages, and relative paths in
    /// the file start in its folder; `name` overrules the file's.
    pub fn from_toml(path: &Path, text: &str, name: Option<&str>) -> Result<Self, ConfigError> {
        let error = |cause: String| ConfigError::File {
            path: path.to_owned(),
            cause,
        };
        let file: File = toml::from_str(text).map_err(|e| error(place(text, &e)))?;
        let name = name
            .map(str::to_owned)
            .or(file.name.clone())
            .ok_or_else(|| {
                error("no name: add name = \"...\" or give it on the command line".into())
            })?;
        let node = file.node(path, name)?;
        node.check().map_err(|e| error(e.to_string()))?;
        Ok(node)
    }
}

impl File {
    pub(crate) fn has_name(&self) -> bool {
        self.name.is_some()
    }

    /// The node that this describes, not checked as a whole yet.
    pub(crate) fn node(self, path: &Path, name: String) -> Result<NodeConfig, ConfigError> {
        let file = self;
        let error = |e: ConfigError| ConfigError::File {
            path: path.to_owned(),
            cause: e.to_string(),
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let from_folder = |relative: PathBuf| folder.join(relative);
        let mut ports: Vec<PortSpec> = file.port.into_iter().map(|port| port.0).collect();
        for port in &mut ports {
            port.pcap = port.pcap.take().map(from_folder);
            port.log = port.log.take().map(from_folder);
        }
        let mut hosts = Vec::new();
        for (host, Many(addresses)) in file.hosts.0 {
            for address in addresses {
                hosts.push(names::host(&format!("{host}={address}")).map_err(error)?);
            }
        }
        Ok(NodeConfig {
            name,
            switch: None,
            mem: file.mem.map_or(MEM_DEFAULT, |size| size.0),
            ports,
            sysctls: file.sysctl.0,
            routes: each(&file.route).map_err(error)?,
            hosts,
            dns: file
                .dns
                .iter()
                .map(|text| names::dns(text))
                .collect::<Result<_, _>>()
                .map_err(error)?,
            waits: each(&file.wait).map_err(error)?,
            spin_ns: file.spin_ns.unwrap_or(SPIN_DEFAULT_NS),
            cpus: file.cpus.unwrap_or(1),
            host_cpuid: file.host_cpuid.unwrap_or_default(),
            seed: file.seed.unwrap_or(1),
            cmdline: file.cmdline.unwrap_or_default(),
            for_one: false,
            layout: Vec::new(),
            grace: match file.grace {
                Some(Text(text)) => grace(&text).map_err(error)?,
                None => GRACE_DEFAULT,
            },
            programs: file
                .program
                .into_iter()
                .map(|it| it.command.into_iter().map(OsString::from).collect())
                .collect(),
            restart: match file.restart {
                Some(word) => word.parse().map_err(error)?,
                None => Restart::No,
            },
            image: file.image.map(from_folder),
            sandbox: file.sandbox.map(|it| it.below(folder)),
        })
    }
}

fn each<T: std::str::FromStr<Err = ConfigError>>(words: &[String]) -> Result<Vec<T>, ConfigError> {
    words.iter().map(|word| word.parse()).collect()
}

/// A table by names, in the file's order.
pub(crate) struct Named<T>(pub Vec<(String, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Named(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NamedVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedVisitor<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table by names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Named(entries))
            }
        }
        deserializer.deserialize_map(NamedVisitor(std::marker::PhantomData))
    }
}

/// The error on one line, with the line of the file it is about.
pub(crate) fn place(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', ", ");
    match error.span() {
        Some(span) => {
            let before = text.get(..span.start).unwrap_or(text);
            format!("line {}: {message}", before.matches('\n').count() + 1)
        }
        None => message,
    }
}

/// `"64M"` or a number of bytes.
struct Size(u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        size::parse(&text).map(Size).map_err(de::Error::custom)
    }
}

/// A string, or what is as good as one: a number or a truth value (true is 1).
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }

            fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Text, E> {
                Ok(Text(u8::from(truth).to_string()))
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

/// The `[sysctl]` table, in the file's order. `"net.x.y" = 1` and `net.x.y = 1`, which TOML
/// reads as a table in a table, mean the same.
#[derive(Default)]
struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Table(entries) = Table::deserialize(deserializer)?;
        let mut pairs = Vec::new();
        flatten("", entries, &mut pairs);
        for (key, value) in &pairs {
            sysctl::pair(key, value).map_err(de::Error::custom)?;
        }
        Ok(Pairs(pairs))
    }
}

fn flatten(prefix: &str, entries: Vec<(String, Setting)>, pairs: &mut Vec<(String, String)>) {
    for (key, setting) in entries {
        let key = format!("{prefix}{key}");
        match setting {
            Setting::Value(Text(value)) => pairs.push((key, value)),
            Setting::Table(Table(entries)) => flatten(&format!("{key}."), entries, pairs),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, a number or true or false")]
enum Setting {
    Value(Text),
    Table(Table),
}

struct Table(Vec<(String, Setting)>);

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TableVisitor;
        impl<'de> Visitor<'de> for TableVisitor {
            type Value = Table;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of sysctls, for example net.ipv4.ip_forward = 1")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Table(entries))
            }
        }
        deserializer.deserialize_map(TableVisitor)
    }
}

/// One value or a list of them.
pub(crate) struct Many(pub Vec<String>);

impl<'de> Deserialize<'de> for Many {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ManyVisitor;
        impl<'de> Visitor<'de> for ManyVisitor {
            type Value = Many;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value or a list of values")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Many, E> {
                Ok(Many(vec![text.to_owned()]))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Many, E> {
                Ok(Many(vec![number.to_string()]))
            }

            fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Many, E> {
                Ok(Many(vec![if truth { "yes" } else { "no" }.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Many, A::Error> {
                let mut values = Vec::new();
                while let Some(Text(value)) = seq.next_element()? {
                    values.push(value);
                }
                Ok(Many(values))
            }
        }
        deserializer.deserialize_any(ManyVisitor)
    }
}

/// A port: one string as on the command line, or a table.
struct Port(PortSpec);

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PortVisitor;
        impl<'de> Visitor<'de> for PortVisitor {
            type Value = Port;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port: a table with a kind, or one string")
            }

            fn visit_str<E: de::Error>(self, spec: &str) -> Result<Port, E> {
                spec.parse().map(Port).map_err(de::Error::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Port, A::Error> {
                let (mut kind, mut name) = (None, None);
                let mut keys: Vec<(String, Many)> = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "kind" => kind = Some(map.next_value::<String>()?),
                        "name" => name = Some(map.next_value::<String>()?),
                        _ => keys.push((key, map.next_value()?)),
                    }
                }
                let kind = kind.ok_or_else(|| de::Error::missing_field("kind"))?;
                draft(&kind, name.as_deref(), &keys).map_err(|cause| {
                    let spec = match &name {
                        Some(name) => format!("{kind}:{name}"),
                        None => kind.clone(),
                    };
                    de::Error::custom(ConfigError::Port { spec, cause })
                })
            }
        }
        deserializer.deserialize_any(PortVisitor)
    }
}

fn draft(
    kind: &str,
    name: Option<&str>,
    keys: &[(String, Many)],
) -> Result<Port, crate::error::PortError> {
    let mut draft = Draft::new(PortKind::new(kind, name)?);
    for (key, Many(values)) in keys {
        for value in values {
            draft.set(key, value)?;
        }
    }
    draft.finish().map(Port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Result<NodeConfig, ConfigError> {
        NodeConfig::from_toml(Path::new("/etc/node.toml"), text, None)
    }

    #[test]
    fn everything() {
        let node = node(
            r#"
            name = "web"
            mem = "64M"
            spin_ns = 0
            host_cpuid = true
            cmdline = "loglevel=7"
            image = "other.image"
            port = ["passt", { kind = "tap", name = "t0", addr = "10.1.0.2/24", mtu = 9000 }]
            [sysctl]
            "net.ipv4.tcp_congestion_control" = "bbr"
            net.ipv4.ip_forward = true
            "net.core.somaxconn" = 4096
            "#,
        )
        .unwrap();
        let mut expected = NodeConfig::new("web");
        expected.mem = 64 << 20;
        expected.spin_ns = 0;
        expected.host_cpuid = true;
        expected.cmdline = "loglevel=7".into();
        expected.image = Some("/etc/other.image".into());
        expected.ports = vec![
            "passt".parse().unwrap(),
            "tap:t0,addr=10.1.0.2/24,mtu=9000".parse().unwrap(),
        ];
        expected.sysctls = [
            ("net.ipv4.tcp_congestion_control", "bbr"),
            ("net.ipv4.ip_forward", "1"),
            ("net.core.somaxconn", "4096"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
        assert_eq!(node, expected);
    }

    #[test]
    fn a_sandbox() {
        let text =
            "name = 'a'\n[sandbox]\nrw = ['work', '/srv']\nproc_mem = '1G'\npolicy = 'p.nft'";
        let sandbox = node(text).unwrap().sandbox.unwrap();
        assert_eq!(sandbox.rw, [Path::new("/etc/work"), Path::new("/srv")]);
        assert_eq!(sandbox.policy.as_deref(), Some(Path::new("/etc/p.nft")));
        assert_eq!(sandbox.proc_mem.as_deref(), Some("1G"));
        assert_eq!(
            node("name = 'a'\n[sandbox]").unwrap().sandbox,
            Some(Sandbox::default())
        );
        assert_eq!(node("name = 'a'").unwrap().sandbox, None);
        for (line, why) in [
            ("pids = 0", "out of range"),
            ("files = 64", "out of range"),
            ("min_free = 'much'", "size"),
            ("mem = '1G'", "unknown field"),
        ] {
            let error = node(&format!("name = 'a'\n[sandbox]\n{line}")).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn tables_of_ports() {
        let node = node(
            "name = 'a'\n[[port]]\nkind = 'link'\nname = 'ab'\n\
             addr = ['10.0.0.1/24', 'fd00::1/64']\npcap = 'x.pcap'\n[[port]]\nkind = 'passt'\n",
        )
        .unwrap();
        assert_eq!(
            node.ports[0].to_string(),
            "link:ab,addr=10.0.0.1/24,addr=fd00::1/64,pcap=/etc/x.pcap"
        );
        assert_eq!(node.ports[1].kind, PortKind::Passt);
    }

    #[test]
    fn the_name_may_come_from_outside() {
        let path = Path::new("n.toml");
        let node = NodeConfig::from_toml(path, "name = 'a'", Some("b")).unwrap();
        assert_eq!(node.name, "b");
        let error = NodeConfig::from_toml(path, "", None).unwrap_err();
        assert!(error.to_string().contains("n.toml: no name"), "{error}");
    }

    #[test]
    fn what_is_wrong() {
        for (text, words) in [
            ("name = ", "line 1: "),
            (
                "name = 'a'\nmen = '1G'",
                "line 2: unknown field `men`, expected one of",
            ),
            (
                "name = 'a'\nmem = '1X'",
                "line 2: size `1X` has an unknown unit",
            ),
            ("name = 'a'\nmem = '1M'", "memory of 1M is out of range"),
            ("name = 'a/b'", "node name `a/b`"),
            (
                "name = 'a'\nport = ['tun:x']",
                "unknown kind `tun`; the kinds are",
            ),
            ("name = 'a'\n[[port]]\nname = 'ab'", "missing field `kind`"),
            ("name = 'a'\n[[port]]\nkind = 'link'", "link needs a name"),
            (
                "name = 'a'\n[[port]]\nkind = 'link'\nname = 'ab'\nadr = '10.0.0.1/8'",
                "port `link:ab`: unknown key `adr`; the keys are",
            ),
            (
                "name = 'a'\n[[port]]\nkind = 'link'\nname = 'ab'\naddr = '10.0.0.1'",
                "malformed address `10.0.0.1` in addr",
            ),
            ("name = 'a'\nport = 'passt'", "expected a sequence"),
            (
                "name = 'a'\n[sysctl]\nnet.x = [1]",
                "expected a string, a number",
            ),
            ("name = 'a'\n[sysctl]\nx = 1", "has a key of one part"),
        ] {
            let error = node(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text:?}: {error}");
            assert!(error.starts_with("/etc/node.toml: "), "{error}");
            assert!(!error.contains('\n'), "one line: {error}");
        }
    }
}
