// SPDX-License-Identifier: GPL-2.0
//! What `ring3 proxy` does, as its file says.
//!
//! ```toml
//! on = "web"                     # the node that listens
//! port = ["tap:web"]             # the node is the proxy's own, with these ports
//! metrics = "127.0.0.1:9100"     # Prometheus, on the host
//! log = "proxy.jsonl"            # a line for each connection; without it: standard error
//! grace = "30s"
//!
//! [[listener]]
//! listen = "tcp:80"              # PROTOCOL:[ADDRESS:]PORT, of the node
//! to = ["127.0.0.1:8080", { to = "unix:/run/app.sock", weight = 3 }, "node:db:5432"]
//! proxy_in = true
//! proxy_out = "v2"
//! connect_timeout = "3s"
//! idle = "1h"
//! limit = { connections = 100, rate = 50, bytes = "10M" }    # of each source; rate and bytes are per second
//! health = { check = "http", path = "/health", interval = "2s", fall = 3, rise = 2 }
//! ```

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use crate::error::ConfigError;
use crate::name;
use crate::port::PortSpec;

/// A client whose target does not answer is told after so long (HAProxy's documentation has 5 s, for targets elsewhere).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// nf_conntrack_udp_timeout_stream
const IDLE_DATAGRAMS: Duration = Duration::from_secs(120);
/// What systemd and docker give a service is 90 and 10 s.
const GRACE: Duration = Duration::from_secs(30);
/// The name of a proxy's own node that has none.
const OWN_NODE: &str = "proxy";
const WEIGHT_MAX: u32 = 256;
/// All are in one message to the relay (ring3-relay, proxy/wire.rs).
const LISTENERS_MAX: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    pub on: String,
    /// Of the node, if that is the proxy's own.
    pub ports: Vec<String>,
    /// Prometheus asks here, on the host.
    pub metrics: Option<SocketAddr>,
    /// Lines of JSON; `None`: on standard error.
    pub log: Option<PathBuf>,
    /// How long connections may go on after SIGTERM.
    pub grace: Duration,
    pub listeners: Vec<Listener>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    pub name: String,
    pub listen: Listen,
    pub targets: Vec<Target>,
    pub proxy_in: bool,
    pub proxy_out: Option<Version>,
    pub connect_timeout: Duration,
    /// Without a byte (a datagram) for so long it ends; `None`: never, for TCP.
    pub idle: Option<Duration>,
    pub limit: Limit,
    pub health: Option<Health>,
}

/// Of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Listen {
    pub is_stream: bool,
    /// `None`: all.
    pub address: Option<IpAddr>,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub to: To,
    pub weight: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum To {
    /// As the host reaches it.
    Host {
        host: String,
        port: u16,
    },
    Unix(PathBuf),
    /// As another node reaches it.
    Node {
        name: String,
        at: SocketAddr,
    },
}

/// Of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Version {
    #[serde(rename = "v1")]
    V1,
    #[serde(rename = "v2")]
    V2,
}

/// Of one source. `None`: there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limit {
    /// At one time.
    pub connections: Option<u32>,
    /// New ones in each second.
    pub rate: Option<u32>,
    /// In each second, both ways together.
    pub bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// `None`: a connection that is made is enough.
    pub path: Option<String>,
    pub interval: Duration,
    pub timeout: Duration,
    /// So many failures in a row, and it is down; so many successes, and it is up.
    pub fall: u32,
    pub rise: u32,
}

type Why = String;

fn port(text: &str) -> Result<u16, Why> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("`{text}` is no port: use 1 to 65535")),
    }
}

fn address(text: &str) -> Result<IpAddr, Why> {
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let parsed = bare.unwrap_or(text).parse();
    parsed.map_err(|_| format!("`{text}` is no IP address"))
}

impl FromStr for Listen {
    type Err = Why;

    fn from_str(text: &str) -> Result<Listen, Why> {
        let wrong = || format!("`{text}` is no listener: use tcp:80, udp:53 or tcp:10.0.0.1:80");
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let is_stream = match kind {
            "tcp" => true,
            "udp" => false,
            _ => return Err(wrong()),
        };
        let (place, number) = match rest.rsplit_once(':') {
            Some((place, number)) => (Some(address(place)?), number),
            None => (None, rest),
        };
        Ok(Listen {
            is_stream,
            address: place,
            port: port(number)?,
        })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_stream { "tcp" } else { "udp" };
        match self.address {
            Some(address) => write!(f, "{kind}:{}", SocketAddr::new(address, self.port)),
            None => write!(f, "{kind}:{}", self.port),
        }
    }
}

impl FromStr for To {
    type Err = Why;

    fn from_str(text: &str) -> Result<To, Why> {
        let wrong = || {
            format!("`{text}` is no target: use ADDRESS:PORT, NAME:PORT, unix:/PATH or node:NAME:[ADDRESS:]PORT")
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') {
                true => Ok(To::Unix(path.into())),
                false => Err(format!("`{text}`: the path of a unix socket begins with /")),
            };
        }
        if let Some(rest) = text.strip_prefix("node:") {
            let (node, place) = rest.split_once(':').ok_or_else(wrong)?;
            name::node(node).map_err(|why| why.to_string())?;
            let (ip, number) = match place.rsplit_once(':') {
                Some((ip, number)) => (address(ip)?, number),
                None => (IpAddr::from([127, 0, 0, 1]), place),
            };
            return Ok(To::Node {
                name: node.to_owned(),
                at: SocketAddr::new(ip, port(number)?),
            });
        }
        let (host, number) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        if host.is_empty() || (bare.is_none() && host.contains(':')) {
            return Err(wrong());
        }
        if bare.is_some() {
            address(host)?;
        }
        Ok(To::Host {
            host: bare.unwrap_or(host).to_owned(),
            port: port(number)?,
        })
    }
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            To::Host { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            To::Host { host, port } => write!(f, "{host}:{port}"),
            To::Unix(path) => write!(f, "unix:{}", path.display()),
            To::Node { name, at } => write!(f, "node:{name}:{at}"),
        }
    }
}

impl Target {
    pub fn new(to: To) -> Target {
        Target { to, weight: 1 }
    }
}

impl Listener {
    /// With what a file that says no more has.
    pub fn new(listen: Listen, targets: Vec<Target>) -> Listener {
        Listener {
            name: listen.to_string(),
            listen,
            targets,
            proxy_in: false,
            proxy_out: None,
            connect_timeout: CONNECT_TIMEOUT,
            idle: (!listen.is_stream).then_some(IDLE_DATAGRAMS),
            limit: Limit::default(),
            health: None,
        }
    }
}

mod text {
    //! Strings of the file, as what they mean: an error has its place.

    use serde::{de, Deserialize, Deserializer};
    use std::time::Duration;

    pub struct Parsed<T>(pub T);

    impl<'de, T: std::str::FromStr<Err = String>> Deserialize<'de> for Parsed<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            text.parse().map(Parsed).map_err(de::Error::custom)
        }
    }

    /// `"500ms"`, `"3s"`, `"5m"`, `"1h"`
    pub struct Time(pub Duration);

    impl std::str::FromStr for Time {
        type Err = String;

        fn from_str(text: &str) -> Result<Time, String> {
            let wrong = || format!("`{text}` is no time: use 500ms, 3s, 5m or 1h");
            let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
            let number: u64 = text[..at].parse().map_err(|_| wrong())?;
            let ms = match &text[at..] {
                "ms" => 1,
                "s" => 1000,
                "m" => 60_000,
                "h" => 3_600_000,
                _ => return Err(wrong()),
            };
            let ms = number.checked_mul(ms).filter(|ms| *ms > 0);
            ms.map(|ms| Time(Duration::from_millis(ms)))
                .ok_or_else(wrong)
        }
    }

    /// `"10M"`
    pub struct Bytes(pub u64);

    impl std::str::FromStr for Bytes {
        type Err = String;

        fn from_str(text: &str) -> Result<Bytes, String> {
            let size = crate::size::parse(text);
            size.map(Bytes).map_err(|why| why.to_string())
        }
    }
}

use text::{Bytes, Parsed, Time};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    on: Option<String>,
    #[serde(default)]
    port: Vec<PortText>,
    metrics: Option<SocketAddr>,
    log: Option<PathBuf>,
    grace: Option<Parsed<Time>>,
    #[serde(default)]
    listener: Vec<ListenerText>,
}

/// A port, which is read when the node is made.
struct PortText(String);

impl<'de> Deserialize<'de> for PortText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse::<PortSpec>() {
            Ok(_) => Ok(PortText(text)),
            Err(why) => Err(serde::de::Error::custom(format!("port `{text}`: {why}"))),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListenerText {
    name: Option<String>,
    listen: Parsed<Listen>,
    to: Vec<TargetText>,
    #[serde(default)]
    proxy_in: bool,
    proxy_out: Option<Version>,
    connect_timeout: Option<Parsed<Time>>,
    idle: Option<Parsed<Time>>,
    #[serde(default)]
    limit: LimitText,
    health: Option<HealthText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetTable {
    to: Parsed<To>,
    weight: Option<u32>,
}

/// `"127.0.0.1:80"` or a table.
struct TargetText(Target);

impl<'de> Deserialize<'de> for TargetText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> serde::de::Visitor<'de> for Either {
            type Value = TargetText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a target: a string, or { to = \"...\", weight = 2 }")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<TargetText, E> {
                let to = text.parse().map_err(E::custom)?;
                Ok(TargetText(Target::new(to)))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<TargetText, A::Error> {
                let table = serde::de::value::MapAccessDeserializer::new(map);
                let table = TargetTable::deserialize(table)?;
                Ok(TargetText(Target {
                    to: table.to.0,
                    weight: table.weight.unwrap_or(1),
                }))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitText {
    connections: Option<u32>,
    rate: Option<u32>,
    bytes: Option<Parsed<Bytes>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Check {
    Tcp,
    Http,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HealthText {
    check: Check,
    path: Option<String>,
    interval: Option<Parsed<Time>>,
    timeout: Option<Parsed<Time>>,
    fall: Option<u32>,
    rise: Option<u32>,
}

impl HealthText {
    fn health(self) -> Result<Health, Why> {
        let path = match (self.check, self.path) {
            (Check::Tcp, None) => None,
            (Check::Tcp, Some(_)) => return Err("path is for check = \"http\"".into()),
            (Check::Http, path) => Some(path.unwrap_or_else(|| "/".into())),
        };
        let is_path =
            |path: &String| path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic());
        if path.as_ref().is_some_and(|path| !is_path(path)) {
            return Err("the path of a health check begins with / and has no spaces".into());
        }
        let (fall, rise) = (self.fall.unwrap_or(3), self.rise.unwrap_or(2));
        if fall == 0 || rise == 0 {
            return Err("fall and rise are 1 or more".into());
        }
        let seconds = |time: Option<Parsed<Time>>, other| {
            time.map_or(Duration::from_secs(other), |Parsed(Time(it))| it)
        };
        Ok(Health {
            path,
            interval: seconds(self.interval, 2),
            timeout: seconds(self.timeout, 1),
            fall,
            rise,
        })
    }
}

impl ListenerText {
    fn listener(self) -> Result<Listener, Why> {
        let targets: Vec<Target> = self.to.into_iter().map(|TargetText(it)| it).collect();
        let listen = self.listen.0;
        let mut made = Listener::new(listen, targets);
        made.name = self.name.unwrap_or(made.name);
        made.proxy_in = self.proxy_in;
        made.proxy_out = self.proxy_out;
        if let Some(Parsed(Time(time))) = self.connect_timeout {
            made.connect_timeout = time;
        }
        made.idle = self.idle.map(|Parsed(Time(it))| it).or(made.idle);
        made.limit = Limit {
            connections: self.limit.connections,
            rate: self.limit.rate,
            bytes: self.limit.bytes.map(|Parsed(Bytes(it))| it),
        };
        made.health = self.health.map(HealthText::health).transpose()?;
        made.check()?;
        Ok(made)
    }
}

impl Listener {
    fn check(&self) -> Result<(), Why> {
        let fail = |why: &str| Err(format!("listener `{}`: {why}", self.name));
        if self.targets.is_empty() {
            return fail("it has no target: to = [\"127.0.0.1:8080\"]");
        }
        if self
            .targets
            .iter()
            .any(|it| it.weight == 0 || it.weight > WEIGHT_MAX)
        {
            return fail("a weight is 1 to 256");
        }
        let limit = &self.limit;
        let is_zero =
            limit.connections == Some(0) || limit.rate == Some(0) || limit.bytes == Some(0);
        if is_zero {
            return fail("a limit of 0 lets nobody in: leave the listener out");
        }
        if !self.listen.is_stream {
            if self.proxy_in || self.proxy_out.is_some() {
                return fail("the PROXY protocol is for tcp here");
            }
            if limit.bytes.is_some() {
                return fail("a limit of bytes is for tcp");
            }
            if self.health.is_some() {
                return fail("health checks are for tcp");
            }
            if self
                .targets
                .iter()
                .any(|it| !matches!(it.to, To::Host { .. }))
            {
                return fail("datagrams go to ADDRESS:PORT");
            }
        }
        Ok(())
    }
}

impl ProxyConfig {
    /// From a file's text. `path` is for messages, and the log's path starts in its folder; `on` overrules the file's.
    pub fn from_toml(
        path: &Path,
        text: &str,
        on: Option<&str>,
    ) -> Result<ProxyConfig, ConfigError> {
        let error = |cause: String| ConfigError::File {
            path: path.to_owned(),
            cause,
        };
        let file: File = toml::from_str(text).map_err(|why| error(place(text, &why)))?;
        let own = (!file.port.is_empty()).then(|| OWN_NODE.to_owned());
        let on = on.map(str::to_owned).or(file.on).or(own).ok_or_else(|| {
            error("no node: add on = \"NODE\" or port = [\"...\"], or give --on NODE".into())
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let listeners = file.listener.into_iter().map(ListenerText::listener);
        let config = ProxyConfig {
            on,
            ports: file.port.into_iter().map(|PortText(it)| it).collect(),
            metrics: file.metrics,
            log: file.log.map(|log| folder.join(log)),
            grace: file.grace.map_or(GRACE, |Parsed(Time(it))| it),
            listeners: listeners.collect::<Result<_, _>>().map_err(error)?,
        };
        config.check().map_err(error)?;
        Ok(config)
    }

    /// From the command line: each listener has all targets.
    pub fn from_words(on: &str, listen: &[Listen], to: &[To]) -> Result<ProxyConfig, Why> {
        let targets: Vec<Target> = to.iter().cloned().map(Target::new).collect();
        let listeners = listen.iter().map(|it| Listener::new(*it, targets.clone()));
        let config = ProxyConfig {
            on: on.to_owned(),
            ports: Vec::new(),
            metrics: None,
            log: None,
            grace: GRACE,
            listeners: listeners.collect(),
        };
        config.listeners.iter().try_for_each(Listener::check)?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), Why> {
        name::node(&self.on).map_err(|why| why.to_string())?;
        if self.listeners.is_empty() {
            return Err("nothing to listen on: add a [[listener]]".into());
        }
        if self.listeners.len() > LISTENERS_MAX {
            return Err(format!("more than {LISTENERS_MAX} listeners"));
        }
        let (mut places, mut names) = (HashSet::new(), HashSet::new());
        for listener in &self.listeners {
            if !places.insert(listener.listen) {
                return Err(format!("two listeners are {}", listener.listen));
            }
            if !names.insert(&listener.name) {
                return Err(format!("two listeners are called `{}`", listener.name));
            }
        }
        if self.others().contains(&self.on) {
            return Err(format!(
                "a target is on node {}, which listens: a proxy passes clients to other nodes or to the host",
                self.on
            ));
        }
        Ok(())
    }

    /// The other nodes that targets are on.
    pub fn others(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .listeners
            .iter()
            .flat_map(|it| &it.targets)
            .filter_map(|it| match &it.to {
                To::Node { name, .. } => Some(name.clone()),
                _ => None,
            })
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Seconds and such, as the command line has them.
pub fn time(text: &str) -> Result<Duration, Why> {
    text.parse().map(|Time(time)| time)
}

/// The error on one line, with its place in the file.
fn place(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', ", ");
    let Some(span) = error.span() else {
        return message;
    };
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    format!("line {line}, column {column}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ProxyConfig, String> {
        let parsed = ProxyConfig::from_toml(Path::new("/etc/proxy.toml"), text, None);
        parsed.map_err(|why| why.to_string())
    }

    #[test]
    fn the_whole_file() {
        let config = parse(
            r#"
on = "web"
metrics = "127.0.0.1:9100"
log = "proxy.jsonl"
grace = "5s"

[[listener]]
name = "http"
listen = "tcp:10.0.0.1:80"
to = ["localhost:8080", { to = "unix:/run/app.sock", weight = 3 }, "node:db:5432", "[::1]:81"]
proxy_in = true
proxy_out = "v2"
connect_timeout = "500ms"
idle = "1h"
limit = { connections = 100, rate = 50, bytes = "10M" }
health = { check = "http", path = "/health" }

[[listener]]
listen = "udp:53"
to = ["127.0.0.1:53"]
"#,
        )
        .unwrap();
        assert_eq!(config.log, Some("/etc/proxy.jsonl".into()));
        assert_eq!(config.others(), ["db"]);
        let [http, dns] = &config.listeners[..] else {
            panic!("two listeners")
        };
        let words: Vec<String> = http.targets.iter().map(|it| it.to.to_string()).collect();
        let expected = [
            "localhost:8080",
            "unix:/run/app.sock",
            "node:db:127.0.0.1:5432",
            "[::1]:81",
        ];
        assert_eq!(words, expected);
        assert_eq!(http.targets[1].weight, 3);
        assert_eq!(http.connect_timeout, Duration::from_millis(500));
        assert_eq!(http.limit.bytes, Some(10 << 20));
        assert_eq!(
            http.health.as_ref().unwrap().path.as_deref(),
            Some("/health")
        );
        assert_eq!(dns.listen.to_string(), "udp:53");
        assert_eq!(dns.idle, Some(IDLE_DATAGRAMS));
    }

    /// The example, and the file of the page.
    #[test]
    fn what_is_shown_is_right() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = std::fs::read_to_string(root.join("examples/proxy.toml")).unwrap();
        assert_eq!(parse(&text).unwrap().listeners.len(), 2);
        let page = std::fs::read_to_string(root.join("docs/proxy.md")).unwrap();
        let block = page.split("```toml\n").nth(1).unwrap();
        let text = block.split("```").next().unwrap();
        assert_eq!(parse(text).unwrap().others(), ["db"]);
    }

    #[test]
    fn errors_have_their_place() {
        for (text, why) in [
            (
                "on = 'a'\nlisten = 1\n",
                "line 2, column 1: unknown field `listen`",
            ),
            (
                "on = 'a'\n[[listener]]\nlisten = 'tcp:0'\nto = []\n",
                "line 3, column 10: `0` is no port",
            ),
            (
                "on = 'a'\n[[listener]]\nlisten = 'tcp:80'\nto = ['x']\n",
                "line 4, column 7: `x` is no target",
            ),
            (
                "on = 'a'\n[[listener]]\nlisten = 'tcp:80'\nto = []\n",
                "has no target",
            ),
            (
                "on = 'a'\n[[listener]]\nlisten = 'tcp:80'\nto = [{to = 'a:1', weight = 0}]\n",
                "a weight is",
            ),
            (
                "on = 'a'\n[[listener]]\nlisten = 'tcp:80'\nto = ['a:1']\nidle = '5'\n",
                "line 5, column 8: `5` is no time",
            ),
            (
                "on = 'a'\n[[listener]]\nlisten = 'udp:80'\nto = ['a:1']\nproxy_in = true\n",
                "PROXY protocol",
            ),
            (
                "on = 'a'\n[[listener]]\nlisten = 'udp:80'\nto = ['a:1']\nlimit = { bytes = '1M' }\n",
                "a limit of bytes is for tcp",
            ),
            (
                "on = 'a'\n[[listener]]\nlisten = 'tcp:80'\nto = ['node:a:1']\n",
                "a target is on node a, which listens",
            ),
            ("on = 'a'\n", "nothing to listen on"),
            ("[[listener]]\nlisten = 'tcp:80'\nto = ['a:1']\n", "no node"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        let twice = "[[listener]]\nlisten = 'tcp:80'\nto = ['a:1']\n".repeat(2);
        let said = parse(&format!("on = 'a'\n{twice}")).unwrap_err();
        assert!(said.contains("two listeners are tcp:80"), "{said}");
    }
}
