# SPDX-License-Identifier: GPL-2.0
"""What nodes count and what their kernels say, as objects and as data frames."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional

from ._command import Ring3Error, ask

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Rates:
    """A line of ``ring3 stat --watch``. Rates are per second, of all interfaces but loopback."""

    received_bytes: float
    received_packets: float
    sent_bytes: float
    sent_packets: float
    dropped_packets: float
    tcp_retransmitted: float
    #: System calls of the node's programs.
    calls: float
    #: TCP and UDP sockets now.
    sockets: int
    #: Bytes of the host's memory now.
    memory: int

    @staticmethod
    def read(values: dict[str, Any]) -> Rates:
        return Rates(**{it.name: values[it.name] for it in fields(Rates)})


def watch_words(name: str, every: float) -> list[str]:
    """The command's words for a node's rates. ValueError: more often than each tenth of a second."""
    if every < 0.1:
        raise ValueError(f"{every} s is too short a time between two looks: 0.1 or more")
    return ["stat", name, f"--watch={every}", "--json"]


@dataclass(frozen=True)
class Event:
    """A line of a node's kernel log."""

    text: str
    #: Seconds since the node's start, where the kernel writes them (``--cmdline printk.time=1``).
    time: Optional[float] = None

    @staticmethod
    def read(line: str) -> Event:
        match = re.match(r"\[\s*(\d+\.\d+)\] ?(.*)", line)
        return Event(match[2], float(match[1])) if match else Event(line)

    @staticmethod
    def read_all(text: str) -> list[Event]:
        return [Event.read(line) for line in text.splitlines()]


@dataclass(frozen=True)
class Sample:
    """A counter or gauge of ``ring3 metrics``, under node_exporter's names."""

    name: str
    node: str
    labels: dict[str, str]
    value: float


_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)\{(.*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def _unescape(value: str) -> str:
    return re.sub(r"\\(.)", lambda it: "\n" if it[1] == "n" else it[1], value)


def read_metrics(text: str) -> list[Sample]:
    """Reads Prometheus' text format as ``ring3 metrics`` writes it."""
    samples = []
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match is None:
            continue
        labels = {key: _unescape(value) for key, value in _LABEL.findall(match[2])}
        node = labels.pop("node", "")
        samples.append(Sample(match[1], node, labels, float(match[3])))
    return samples


def metrics(node: Optional[str] = None) -> list[Sample]:
    """What all of this user's nodes count now, or one of them."""
    samples = read_metrics(ask("metrics"))
    return [it for it in samples if node is None or it.node == node]


def total(samples: Iterable[Sample], node: str, name: str, labels: Mapping[str, str]) -> float:
    """The sum of a node's samples of this name that have these labels."""
    found = [it for it in samples if it.name == name and labels.items() <= it.labels.items()]
    if not found:
        raise Ring3Error(f"node `{node}` counts nothing of the name {name}: see `ring3 metrics`")
    return sum(it.value for it in found)


def frame(things: Iterable[Any]) -> pandas.DataFrame:
    """A data frame of :class:`Rates`, :class:`Event` or :class:`Sample` objects, a row each, in their order.

    A sample's labels become columns of their own. Needs pandas.
    """
    try:
        import pandas
    except ImportError:
        raise Ring3Error("data frames need pandas: pip install pandas") from None
    rows = []
    for thing in things:
        row = asdict(thing)
        row.update(row.pop("labels", {}))
        rows.append(row)
    table: pandas.DataFrame = pandas.DataFrame(rows)
    return table
