// SPDX-License-Identifier: GPL-2.0
//! Many measurements as a few figures.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub quartiles: [f64; 2],
    pub min: f64,
    pub max: f64,
    /// Of so many values.
    pub n: usize,
}

impl Spread {
    /// Of at least one value.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * (sorted.len() - 1) as f64;
            let (low, high) = (place.floor() as usize, place.ceil() as usize);
            round(sorted[low] + (sorted[high] - sorted[low]) * place.fract())
        };
        Spread {
            median: at(0.5),
            quartiles: [at(0.25), at(0.75)],
            min: at(0.0),
            max: at(1.0),
            n: values.len(),
        }
    }
}

/// One to the other, round by round: what else the machine did in a round hit both.
pub fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| round(of / to)).collect()
}

/// To three digits behind the point.
pub fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::{Spread, ratios};

    #[test]
    fn interpolates() {
        let spread = Spread::of(&[4.0, 1.0, 2.0, 3.0]);
        assert_eq!(spread.median, 2.5);
        assert_eq!(spread.quartiles, [1.75, 3.25]);
        assert_eq!((spread.min, spread.max, spread.n), (1.0, 4.0, 4));
    }

    /// The ratio of the medians would be 1.
    #[test]
    fn compares_within_a_round() {
        let ratios = ratios(&[2.0, 4.0, 8.0], &[4.0, 8.0, 2.0]);
        assert_eq!(ratios, [0.5, 0.5, 4.0]);
        assert_eq!(Spread::of(&ratios).median, 0.5);
    }
}
