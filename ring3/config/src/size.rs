// SPDX-License-Identifier: GPL-2.0
//! Sizes as people write them: `64M`, `1G`, `1.5G` is not one.

use crate::ConfigError;

const UNITS: [(char, u32); 4] = [('T', 40), ('G', 30), ('M', 20), ('K', 10)];

/// Bytes of `64M`, `1G`, `512k`, `1048576`; `MiB` and `MB` both mean 2^20.
pub fn parse(text: &str) -> Result<u64, ConfigError> {
    let error = |why| ConfigError::Size {
        text: text.to_owned(),
        why,
    };
    let trimmed = text.trim();
    let digits_end = trimmed
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(digits_end);
    if digits.is_empty() {
        return Err(error("does not start with a number"));
    }
    let number: u64 = digits.parse().map_err(|_| error("is too large"))?;
    let shift = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(error("has an unknown unit")),
    };
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| error("is too large"))
}

/// The shortest exact form: 268435456 is `256M`.
pub fn format(bytes: u64) -> String {
    for (unit, shift) in UNITS {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64M", 64 << 20),
            ("64m", 64 << 20),
            ("64MiB", 64 << 20),
            (" 64 MB ", 64 << 20),
            ("1G", 1 << 30),
            ("3k", 3 << 10),
            ("7B", 7),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_wrong() {
        for (text, why) in [
            ("", "does not start with a number"),
            ("M", "does not start with a number"),
            ("-1M", "does not start with a number"),
            ("1.5G", "has an unknown unit"),
            ("64X", "has an unknown unit"),
            ("64MM", "has an unknown unit"),
            ("99999999999999999999", "is too large"),
            ("18446744073709551615G", "is too large"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
        assert_eq!(
            parse("64X").unwrap_err().to_string(),
            "size `64X` has an unknown unit: use a number with K, M or G, for example 256M"
        );
    }

    #[test]
    fn back_again() {
        for text in ["1G", "256M", "3K", "1000", "0"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
        assert_eq!(format(1536 << 20), "1536M");
    }
}
