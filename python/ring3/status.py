# SPDX-License-Identifier: GPL-2.0
"""What a node says of itself: ``ring3 stat --json`` as objects."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from html import escape
from typing import Any, Optional, TypeVar, cast

T = TypeVar("T")


def _make(kind: type[T], values: dict[str, Any]) -> T:
    """Keys that this version does not know are left out: the command may be newer than this package."""
    known = {it.name for it in fields(cast(Any, kind))}
    return kind(**{key: value for key, value in values.items() if key in known})


@dataclass(frozen=True)
class Memory:
    #: Bytes that the node may use.
    size: int
    #: Bytes of the host's memory that it holds now.
    resident: int


@dataclass(frozen=True)
class Calls:
    """System calls of the node's programs."""

    #: By a site that was rewritten to a jump.
    rewritten: int
    #: By a trap.
    trapped: int
    #: Of both: passed to the host as they came.
    host: int


@dataclass(frozen=True)
class PortStatus:
    #: ``link``, ``switch``, ``tap``, ``host``, ``passt``, ``packet`` or ``xdp``.
    kind: str
    #: Interface on the node.
    ifname: str
    name: Optional[str] = None
    ifindex: int = 0
    addrs: list[str] = field(default_factory=list)
    gw: list[str] = field(default_factory=list)
    mtu: Optional[int] = None
    pcap: Optional[str] = None
    #: A link's other end: the node that has it now; None: nobody.
    peer: Optional[str] = None


@dataclass(frozen=True)
class Program:
    #: The host's number of the process.
    pid: int
    threads: int
    command: str


@dataclass(frozen=True)
class Status:
    name: str
    #: ``booting``, ``up``, ``poisoned`` or ``down``.
    state: str
    #: Why it is poisoned or why it does not answer.
    poison: Optional[str] = None
    #: The keeper's process.
    pid: Optional[int] = None
    uptime_ns: int = 0
    version: str = ""
    mem: Memory = Memory(0, 0)
    calls: Calls = Calls(0, 0, 0)
    ports: list[PortStatus] = field(default_factory=list)
    procs: list[Program] = field(default_factory=list)

    @staticmethod
    def read(values: dict[str, Any]) -> Status:
        """From one object of ``ring3 stat --json`` or ``ring3 ls --json``."""
        values = dict(values)
        values.setdefault("state", "silent")
        values.setdefault("poison", values.get("error"))
        if "mem" in values:
            values["mem"] = _make(Memory, values["mem"])
        if "calls" in values:
            values["calls"] = _make(Calls, values["calls"])
        values["ports"] = [_make(PortStatus, it) for it in values.get("ports", [])]
        values["procs"] = [_make(Program, it) for it in values.get("procs", [])]
        return _make(Status, values)

    def _repr_html_(self) -> str:
        ports = ", ".join(f"{it.ifname} ({it.kind}) {' '.join(it.addrs)}" for it in self.ports)
        rows = [
            ("state", self.state),
            ("up for", f"{self.uptime_ns / 1e9:.1f} s"),
            ("memory", f"{self.mem.resident >> 20} of {self.mem.size >> 20} MiB"),
            ("ports", ports or "none"),
            ("programs", ", ".join(f"{it.command} ({it.pid})" for it in self.procs) or "none"),
        ]
        body = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in rows)
        return f"<table><caption>node {escape(self.name)}</caption>{body}</table>"
