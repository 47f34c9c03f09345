// SPDX-License-Identifier: GPL-2.0
//! What a proxy's relay counts, until it is asked.

use std::collections::BTreeMap;

use ring3_node::task::{Fd, Task};

use super::wire::{Counts, ListenerId, Told, RETRANSMIT_BOUNDS, RTT_BOUNDS};

#[derive(Debug)]
pub struct Tally {
    listeners: BTreeMap<ListenerId, Counts>,
    rtt: Vec<u64>,
    rtt_sum: u64,
    retransmits: Vec<u64>,
    retransmits_sum: u64,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            listeners: BTreeMap::new(),
            rtt: vec![0; RTT_BOUNDS.len() + 1],
            rtt_sum: 0,
            retransmits: vec![0; RETRANSMIT_BOUNDS.len() + 1],
            retransmits_sum: 0,
        }
    }
}

impl Tally {
    /// A listener is there.
    pub fn begin(&mut self, id: ListenerId) {
        self.listeners.entry(id).or_default();
    }

    /// A listener is there no more. Its connections may be, and are not counted any longer.
    pub fn forget(&mut self, id: ListenerId) {
        self.listeners.remove(&id);
    }

    pub fn began(&mut self, id: ListenerId) {
        if let Some(counts) = self.listeners.get_mut(&id) {
            counts.began += 1;
            counts.active += 1;
        }
    }

    pub fn over(&mut self, id: ListenerId) {
        if let Some(counts) = self.listeners.get_mut(&id) {
            counts.active = counts.active.saturating_sub(1);
        }
    }

    pub fn passed(&mut self, id: ListenerId, sent: u64, received: u64) {
        if let Some(counts) = self.listeners.get_mut(&id) {
            counts.sent += sent;
            counts.received += received;
        }
    }

    /// At a connection's end: how it was.
    pub fn look_back(&mut self, task: &mut Task, fd: Fd) {
        let Ok(info) = task.tcp_info(fd) else { return };
        let place = |bounds: &[u64], value: u64| bounds.partition_point(|bound| *bound < value);
        let (rtt, again) = (u64::from(info.rtt_us), u64::from(info.retransmits));
        self.rtt[place(&RTT_BOUNDS, rtt)] += 1;
        self.rtt_sum += rtt;
        self.retransmits[place(&RETRANSMIT_BOUNDS, again)] += 1;
        self.retransmits_sum += again;
    }

    pub fn told(&self) -> Told {
        Told {
            listeners: self.listeners.iter().map(|(id, it)| (*id, *it)).collect(),
            rtt: self.rtt.clone(),
            rtt_sum: self.rtt_sum,
            retransmits: self.retransmits.clone(),
            retransmits_sum: self.retransmits_sum,
        }
    }
}
