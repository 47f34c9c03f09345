// SPDX-License-Identifier: GPL-2.0
//! Numbers for Prometheus: a snapshot of what the supervisor and the relay have counted.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{text, DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use ring3_relay::proxy::wire::{Counts, End, Told, RETRANSMIT_BOUNDS, RTT_BOUNDS};

use crate::reload::Open;

/// Round trips are told in us, and Prometheus has seconds.
const US: f64 = 1e6;

#[derive(Debug, Default)]
pub struct Snapshot {
    pub listeners: Vec<(String, Counts)>,
    /// By listener and end.
    pub ends: BTreeMap<(String, End), u64>,
    pub targets: Vec<TargetNumbers>,
    pub told: Told,
    pub reloads: [u64; 2],
    pub is_draining: bool,
}

#[derive(Debug)]
pub struct TargetNumbers {
    pub listener: String,
    pub target: String,
    pub is_up: bool,
    pub active: u64,
    pub served: u64,
    pub failed: u64,
}

/// Of one listener's targets.
pub fn numbers(open: &Open) -> impl Iterator<Item = TargetNumbers> + '_ {
    open.targets.iter().map(|it| TargetNumbers {
        listener: open.config.name.clone(),
        target: it.spec.to.to_string(),
        is_up: it.is_up(),
        active: it.active,
        served: it.served,
        failed: it.failed,
    })
}

type Labels<'a> = Vec<(&'a str, &'a str)>;
type Samples<'a> = Vec<(Labels<'a>, u64)>;

fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    samples: &Samples<'_>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in samples {
        ConstCounter::new(*value).encode(family.encode_family(labels)?)?;
    }
    Ok(())
}

fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    samples: &Samples<'_>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in samples {
        let value = i64::try_from(*value).unwrap_or(i64::MAX);
        ConstGauge::new(value).encode(family.encode_family(labels)?)?;
    }
    Ok(())
}

fn histogram(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    (bounds, unit): (&[u64], f64),
    (parts, sum): (&[u64], u64),
) -> fmt::Result {
    let upper = bounds.iter().map(|bound| *bound as f64 / unit);
    let upper = upper.chain([f64::INFINITY]);
    let buckets: Vec<_> = upper.zip(parts.iter().copied()).collect();
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    let count = parts.iter().sum();
    metric.encode_histogram::<[(&str, &str); 0]>(sum as f64 / unit, count, &buckets, None)
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.of_listeners(&mut encoder)?;
        self.of_targets(&mut encoder)?;
        let encoder = &mut encoder;
        histogram(
            encoder,
            (
                "ring3_proxy_client_rtt_seconds",
                "Round trip time of clients' connections as they ended",
            ),
            (&RTT_BOUNDS, US),
            (&self.told.rtt, self.told.rtt_sum),
        )?;
        histogram(
            encoder,
            (
                "ring3_proxy_client_retransmits",
                "Segments that were sent again in clients' connections",
            ),
            (&RETRANSMIT_BOUNDS, 1.0),
            (&self.told.retransmits, self.told.retransmits_sum),
        )?;
        let reloads = vec![
            (vec![("outcome", "done")], self.reloads[0]),
            (vec![("outcome", "refused")], self.reloads[1]),
        ];
        counters(
            encoder,
            ("ring3_proxy_reloads", "Configurations that were read again"),
            &reloads,
        )?;
        let drains = vec![(vec![], u64::from(self.is_draining))];
        gauges(
            encoder,
            ("ring3_proxy_draining", "1: no clients are taken any more"),
            &drains,
        )
    }
}

impl Snapshot {
    fn of_listeners(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let each = |pick: fn(&Counts) -> u64| -> Samples<'_> {
            let all = self.listeners.iter();
            all.map(|(name, counts)| (vec![("listener", name.as_str())], pick(counts)))
                .collect()
        };
        counters(
            encoder,
            (
                "ring3_proxy_connections",
                "Connections and flows that began",
            ),
            &each(|it| it.began),
        )?;
        gauges(
            encoder,
            (
                "ring3_proxy_connections_active",
                "Connections and flows that there are",
            ),
            &each(|it| it.active),
        )?;
        let sent = self.listeners.iter().flat_map(|(name, counts)| {
            let labels = |way| vec![("listener", name.as_str()), ("from", way)];
            [
                (labels("client"), counts.sent),
                (labels("target"), counts.received),
            ]
        });
        counters(
            encoder,
            (
                "ring3_proxy_bytes",
                "Bytes of TCP connections, by who sent them",
            ),
            &sent.collect(),
        )?;
        let ends = self.ends.iter().map(|((listener, end), count)| {
            (
                vec![("listener", listener.as_str()), ("end", end.word())],
                *count,
            )
        });
        counters(
            encoder,
            (
                "ring3_proxy_ends",
                "Connections and flows that are over, by how they ended",
            ),
            &ends.collect(),
        )
    }

    fn of_targets(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let each = |pick: fn(&TargetNumbers) -> u64| -> Samples<'_> {
            self.targets
                .iter()
                .map(|it| {
                    let labels = vec![
                        ("listener", it.listener.as_str()),
                        ("target", it.target.as_str()),
                    ];
                    (labels, pick(it))
                })
                .collect()
        };
        gauges(
            encoder,
            (
                "ring3_proxy_target_up",
                "1: it answers health checks, or has none",
            ),
            &each(|it| u64::from(it.is_up)),
        )?;
        gauges(
            encoder,
            ("ring3_proxy_target_active", "Connections that it has"),
            &each(|it| it.active),
        )?;
        counters(
            encoder,
            (
                "ring3_proxy_target_connections",
                "Connections that it was given",
            ),
            &each(|it| it.served),
        )?;
        counters(
            encoder,
            (
                "ring3_proxy_target_failures",
                "Connections that it did not answer",
            ),
            &each(|it| it.failed),
        )
    }

    /// In Prometheus' text format.
    pub fn text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut said = String::new();
        // Fails only where the string does.
        let _ = text::encode(&mut said, &registry);
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_their_labels() {
        let mut snapshot = Snapshot {
            listeners: vec![(
                "http".into(),
                Counts {
                    began: 3,
                    active: 1,
                    sent: 10,
                    received: 20,
                },
            )],
            ..Snapshot::default()
        };
        snapshot.ends.insert(("http".into(), End::Done), 2);
        snapshot.told.rtt = vec![0; RTT_BOUNDS.len() + 1];
        snapshot.told.rtt[1] = 2;
        snapshot.told.rtt_sum = 160;
        let text = snapshot.text();
        for line in [
            "# TYPE ring3_proxy_connections counter",
            "ring3_proxy_connections_total{listener=\"http\"} 3",
            "ring3_proxy_connections_active{listener=\"http\"} 1",
            "ring3_proxy_bytes_total{listener=\"http\",from=\"target\"} 20",
            "ring3_proxy_ends_total{listener=\"http\",end=\"done\"} 2",
            "ring3_proxy_client_rtt_seconds_count 2",
            "ring3_proxy_client_rtt_seconds_bucket{le=\"0.0001\"} 2",
            "ring3_proxy_client_rtt_seconds_bucket{le=\"+Inf\"} 2",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
        }
    }
}
