// SPDX-License-Identifier: GPL-2.0
//! Quantities with units: `10 ms`, `1 Gbit`, `64 KiB`. The units are those of Shadow's files, which
//! distinguish case (`1 gbit` is taken as well, since `tc` has it so); a space between number and unit is optional, and a plural `s` is
//! allowed.

use std::fmt;
use std::time::Duration;

use crate::yaml::{Node, Result, Value};
use crate::Fault;

/// What a number without a unit stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bare {
    Seconds,
    Milliseconds,
}

/// Bits per second.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Rate(pub u64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            r if r >= 1_000_000_000 && r % 1_000_000_000 == 0 => (r / 1_000_000_000, "Gbit"),
            r if r >= 1_000_000 && r % 1_000_000 == 0 => (r / 1_000_000, "Mbit"),
            r if r >= 1_000 && r % 1_000 == 0 => (r / 1_000, "Kbit"),
            r => (r, "bit"),
        };
        write!(f, "{value} {unit}")
    }
}

/// Number and unit of `10 ms`.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (!number.is_empty()).then_some((number, unit.trim()))
}

/// `number` times `scale`, exactly where it is a whole number.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let number = number.replace('_', "");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale);
    }
    let (whole, part) = number.split_once('.')?;
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let digits = part.len().min(18);
    let part: u128 = part.get(..digits)?.parse().ok()?;
    let part = part * u128::from(scale) / 10u128.pow(digits as u32);
    whole
        .checked_mul(scale)?
        .checked_add(u64::try_from(part).ok()?)
}

fn time_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" | "nanosecond" | "nanoseconds" => 1,
        "us" | "μs" | "µs" | "microsecond" | "microseconds" => 1_000,
        "ms" | "millisecond" | "milliseconds" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000_000_000,
        _ => return None,
    })
}

pub fn time(text: &str, bare: Bare) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let scale = match (unit, bare) {
        ("", Bare::Seconds) => 1_000_000_000,
        ("", Bare::Milliseconds) => 1_000_000,
        _ => time_unit(unit)?,
    };
    scaled(number, scale).map(Duration::from_nanos)
}

/// Nanoseconds of `1.5 s` or `-2 s`.
pub fn step(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    i64::try_from(time(rest, Bare::Seconds)?.as_nanos())
        .ok()
        .map(|nanos| sign * nanos)
}

/// What Linux lets a clock be corrected by, in parts of a million.
const DRIFT_MAX: f64 = 500.0;

/// Parts of a thousand million of `100 ppm` or `-20.5`.
pub fn drift(text: &str) -> Option<i64> {
    let number = text.trim().trim_end_matches("ppm").trim_end();
    let ppm: f64 = number.parse().ok()?;
    (ppm.abs() <= DRIFT_MAX).then(|| (ppm * 1e3).round() as i64)
}

/// The scale of a unit that ends with one of `bases`, which count 1, or that is a prefix alone (`10 M`).
fn prefixed(unit: &str, bases: &[&str]) -> Option<u64> {
    let prefix = bases
        .iter()
        .find_map(|base| unit.strip_suffix(base))
        .unwrap_or(unit);
    Some(match prefix {
        "" => 1,
        "K" | "k" | "kilo" => 1_000,
        "Ki" | "kibi" => 1 << 10,
        "M" | "mega" => 1_000_000,
        "Mi" | "mebi" => 1 << 20,
        "G" | "giga" => 1_000_000_000,
        "Gi" | "gibi" => 1 << 30,
        "T" | "tera" => 1_000_000_000_000,
        "Ti" | "tebi" => 1 << 40,
        _ => return None,
    })
}

/// `100 Mbit`; a number alone is bits per second.
pub fn rate(text: &str) -> Option<Rate> {
    let (number, unit) = split(text)?;
    let unit = unit.strip_suffix("/s").unwrap_or(unit);
    let unit = unit.strip_suffix("ps").unwrap_or(unit);
    let scale = match unit {
        "" => 1,
        // As tc has them: nobody means thousandths of a bit.
        "kbit" => 1_000,
        "mbit" => 1_000_000,
        "gbit" => 1_000_000_000,
        _ => prefixed(unit, &["bits", "bit"])?,
    };
    scaled(number, scale).filter(|bits| *bits > 0).map(Rate)
}

/// `64 KiB`; a number alone is bytes.
pub fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let scale = match unit {
        "" => 1,
        _ => prefixed(unit, &["bytes", "byte", "B"])?,
    };
    scaled(number, scale)
}

/// `1 %`, `0.01`: a share from 0 to 1.
pub fn share(text: &str) -> Option<f64> {
    let text = text.trim();
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse::<f64>().ok()?,
    };
    (0.0..=1.0).contains(&value).then_some(value)
}

const SIGNALS: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

/// `SIGTERM` or 15.
pub fn signal(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return (1..=31).contains(&number).then_some(number);
    }
    let word = text.strip_prefix("SIG")?;
    SIGNALS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, n)| *n)
}

pub fn signal_name(number: i32) -> String {
    match SIGNALS.iter().find(|(_, n)| *n == number) {
        Some((name, _)) => format!("SIG{name}"),
        None => format!("signal {number}"),
    }
}

const TIME: &str = "a time, such as `10 ms`, `2 min` or `1.5 s`,";
const RATE: &str = "a rate, such as `100 Mbit` or `1 Gbit`,";
const BYTES: &str = "a size, such as `64 KiB` or `1 MB`,";
const STEP: &str = "a time forward or back, such as `1.5 s` or `-200 ms`,";
const DRIFT: &str = "parts of a million from -500 to 500, such as `100 ppm`,";
const SHARE: &str = "a share, such as `1 %` or 0.01,";

fn quantity<T>(
    node: &Node,
    path: &str,
    wanted: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T> {
    let text = match &node.value {
        Value::Text(text) => text.clone(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => f.to_string(),
        _ => return Err(node.wrong(path, wanted)),
    };
    read(&text).ok_or_else(|| {
        Fault::at(
            node.place,
            format!("{path}: {wanted} is needed, this is `{text}`"),
        )
    })
}

pub fn time_of(node: &Node, path: &str) -> Result<Duration> {
    quantity(node, path, TIME, |text| time(text, Bare::Seconds))
}

pub fn step_of(node: &Node, path: &str) -> Result<i64> {
    quantity(node, path, STEP, step)
}

pub fn drift_of(node: &Node, path: &str) -> Result<i64> {
    quantity(node, path, DRIFT, drift)
}

pub fn rate_of(node: &Node, path: &str) -> Result<Rate> {
    quantity(node, path, RATE, rate)
}

pub fn bytes_of(node: &Node, path: &str) -> Result<u64> {
    quantity(node, path, BYTES, bytes)
}

pub fn share_of(node: &Node, path: &str) -> Result<f64> {
    quantity(node, path, SHARE, share)
}

pub fn signal_of(node: &Node, path: &str) -> Result<i32> {
    quantity(node, path, "a signal, such as `SIGTERM` or 15,", signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let ms = Duration::from_millis;
        for (text, want) in [
            ("10 ms", ms(10)),
            ("10ms", ms(10)),
            ("2 hr", ms(7_200_000)),
            ("10 minutes", ms(600_000)),
            ("1.5 s", ms(1500)),
            ("30", ms(30_000)),
            ("0.25 us", Duration::from_nanos(250)),
            ("7 μs", Duration::from_micros(7)),
        ] {
            assert_eq!(time(text, Bare::Seconds), Some(want), "{text}");
        }
        for text in [
            "",
            "ms",
            "10 MS",
            "ten s",
            "-1 s",
            "1 Mbit",
            "99999999999999999999 h",
        ] {
            assert_eq!(time(text, Bare::Seconds), None, "{text}");
        }
    }

    #[test]
    fn rates_and_sizes() {
        assert_eq!(rate("1 Gbit"), Some(Rate(1_000_000_000)));
        assert_eq!(rate("10 kilobits"), Some(Rate(10_000)));
        assert_eq!(rate("977 Kibit"), Some(Rate(977 * 1024)));
        assert_eq!(rate("100 Mbits"), Some(Rate(100_000_000)));
        assert_eq!(rate("0 bit"), None);
        assert_eq!(rate("1 gbit"), Some(Rate(1_000_000_000)));
        assert_eq!(rate("10mbit"), Some(Rate(10_000_000)));
        assert_eq!(rate("10 M"), Some(Rate(10_000_000)));
        assert_eq!(rate("10 MB"), None);
        assert_eq!(rate("10 m"), None);
        assert_eq!(bytes("64 Ki"), Some(64 << 10));
        assert_eq!(bytes("1024 Mbytes"), Some(1_024_000_000));
        assert_eq!(bytes("30 MiB"), Some(30 << 20));
        assert_eq!(bytes("20 B"), Some(20));
        assert_eq!(Rate(1_500_000).to_string(), "1500 Kbit");
    }

    #[test]
    fn shares_and_signals() {
        assert_eq!(share("1 %"), Some(0.01));
        assert_eq!(share("0.5"), Some(0.5));
        assert_eq!(share("2"), None);
        assert_eq!(signal("SIGTERM"), Some(15));
        assert_eq!(signal("9"), Some(9));
        assert_eq!(signal("TERM"), None);
        assert_eq!(signal("64"), None);
    }
}
