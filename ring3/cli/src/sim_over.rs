// SPDX-License-Identifier: GPL-2.0
//! Options of `ring3 sim` that stand for a key of the scenario. They have the names that Shadow gives them.
//!
//! A value is checked here, so that a mistake is one of the command line; it then takes the place of what the file says.

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgMatches, Command, Error, FromArgMatches};
use ring3_sim::read::Override;
use ring3_sim::units::{self, Bare};
use ring3_sim::yaml::Value;

const HEADING: &str = "In the place of the file's keys (as Shadow)";
const LEVELS: [&str; 5] = ["error", "warning", "info", "debug", "trace"];

#[derive(Clone, Copy)]
enum Kind {
    Time,
    /// Or `null`.
    MaybeTime,
    Size,
    Bool,
    Count,
    /// A path, or `null`.
    MaybePath,
    Level,
}

struct Key {
    long: &'static str,
    short: Option<char>,
    at: [&'static str; 2],
    kind: Kind,
    help: &'static str,
}

const fn key(long: &'static str, at: [&'static str; 2], kind: Kind, help: &'static str) -> Key {
    Key {
        long,
        short: None,
        at,
        kind,
        help,
    }
}

const fn short(mut key: Key, letter: char) -> Key {
    key.short = Some(letter);
    key
}

const KEYS: &[Key] = &[
    key(
        "stop-time",
        ["general", "stop_time"],
        Kind::Time,
        "When the simulation ends",
    ),
    short(
        key(
            "template-directory",
            ["general", "template_directory"],
            Kind::MaybePath,
            "A folder whose copy the data directory becomes",
        ),
        'e',
    ),
    key(
        "heartbeat-interval",
        ["general", "heartbeat_interval"],
        Kind::MaybeTime,
        "How often samples are taken; `null`: never",
    ),
    key(
        "bootstrap-end-time",
        ["general", "bootstrap_end_time"],
        Kind::Time,
        "Until then rates have no limit and nothing is lost",
    ),
    key(
        "use-shortest-path",
        ["network", "use_shortest_path"],
        Kind::Bool,
        "Whether packets take the shortest way of the graph, or edges only",
    ),
    key(
        "pcap-enabled",
        ["host_option_defaults", "pcap_enabled"],
        Kind::Bool,
        "Whether hosts' interfaces are captured, unless a host says otherwise",
    ),
    key(
        "pcap-capture-size",
        ["host_option_defaults", "pcap_capture_size"],
        Kind::Size,
        "How much of a packet is captured",
    ),
    short(
        key(
            "parallelism",
            ["general", "parallelism"],
            Kind::Count,
            "Without effect: one simulation runs on one core",
        ),
        'p',
    ),
    short(
        key(
            "log-level",
            ["general", "log_level"],
            Kind::Level,
            "Without effect",
        ),
        'l',
    ),
    key(
        "host-log-level",
        ["host_option_defaults", "log_level"],
        Kind::Level,
        "Without effect",
    ),
    key(
        "progress",
        ["general", "progress"],
        Kind::Bool,
        "Without effect: progress is shown after two seconds",
    ),
    key(
        "model-unblocked-syscall-latency",
        ["general", "model_unblocked_syscall_latency"],
        Kind::Bool,
        "Without effect: calls cost virtual time always",
    ),
];

/// Of Shadow's `experimental`: as in the file, where most have no effect.
const EXPERIMENTAL: &[&str] = &[
    "interface-qdisc",
    "max-unapplied-cpu-latency",
    "native-preemption-enabled",
    "native-preemption-native-interval",
    "native-preemption-sim-interval",
    "report-errors-to-stderr",
    "runahead",
    "scheduler",
    "socket-recv-autotune",
    "socket-recv-buffer",
    "socket-send-autotune",
    "socket-send-buffer",
    "strace-logging-mode",
    "unblocked-syscall-latency",
    "unblocked-vdso-latency",
    "use-cpu-pinning",
    "use-dynamic-runahead",
    "use-memory-manager",
    "use-new-tcp",
    "use-object-counters",
    "use-preload-libc",
    "use-preload-openssl-crypto",
    "use-preload-openssl-rng",
    "use-sched-fifo",
    "use-syscall-counters",
    "use-worker-spinning",
];

/// What the command line says in the place of the file.
#[derive(Debug, Clone, Default)]
pub struct Overrides(pub Vec<Override>);

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Time | Kind::MaybeTime => "TIME",
            Kind::Size => "BYTES",
            Kind::Bool => "BOOL",
            Kind::Count => "N",
            Kind::MaybePath => "DIR",
            Kind::Level => "LEVEL",
        }
    }

    fn parser(self) -> ValueParser {
        match self {
            Kind::Time => ValueParser::new(time),
            Kind::MaybeTime => ValueParser::new(|text: &str| match text {
                "null" => Ok(text.to_owned()),
                _ => time(text),
            }),
            Kind::Size => ValueParser::new(|text: &str| match units::bytes(text) {
                Some(_) => Ok(text.to_owned()),
                None => Err("a size is needed, such as `64 KiB`"),
            }),
            Kind::Bool => PossibleValuesParser::new(["true", "false"]).into(),
            Kind::Count => {
                ValueParser::new(|text: &str| text.parse::<u32>().map(|_| text.to_owned()))
            }
            Kind::MaybePath => ValueParser::string(),
            Kind::Level => PossibleValuesParser::new(LEVELS).into(),
        }
    }

    fn value(self, text: &str) -> Value {
        match (self, text) {
            (Kind::MaybeTime | Kind::MaybePath, "null") => Value::Null,
            (Kind::Bool, _) => Value::Bool(text == "true"),
            (Kind::Count, _) => Value::Int(text.parse().unwrap_or_default()),
            _ => Value::Text(text.to_owned()),
        }
    }
}

fn time(text: &str) -> Result<String, &'static str> {
    match units::time(text, Bare::Seconds) {
        Some(_) => Ok(text.to_owned()),
        None => Err("a time is needed, such as `10 ms` or `2 min`; a number alone is seconds"),
    }
}

impl clap::Args for Overrides {
    fn augment_args(command: Command) -> Command {
        let made = KEYS.iter().fold(command, |command, key| {
            command.arg(
                Arg::new(key.long)
                    .long(key.long)
                    .short(key.short)
                    .value_name(key.kind.name())
                    .value_parser(key.kind.parser())
                    .help_heading(HEADING)
                    .help(key.help),
            )
        });
        EXPERIMENTAL.iter().fold(made, |command, name| {
            command.arg(Arg::new(*name).long(*name).value_name("VALUE").hide(true))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Overrides {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Overrides, Error> {
        let given = |name: &str| matches.get_one::<String>(name);
        let mut list: Vec<Override> = Vec::new();
        for key in KEYS {
            list.extend(
                given(key.long)
                    .map(|text| (key.at.map(str::to_owned).to_vec(), key.kind.value(text))),
            );
        }
        for name in EXPERIMENTAL {
            let value = given(name).map(|text| Value::Text(text.clone()));
            list.extend(
                value.map(|value| (vec!["experimental".into(), name.replace('-', "_")], value)),
            );
        }
        Ok(Overrides(list))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Overrides::from_arg_matches(matches)?;
        Ok(())
    }
}
