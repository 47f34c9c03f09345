# SPDX-License-Identifier: GPL-2.0
"""What a node is made of, and the command line for it."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union

from ._command import Word, words

_numbers = itertools.count(1)


def unused_name(prefix: str) -> str:
    """A name that no other process of this user takes by itself."""
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"


@dataclass(frozen=True)
class Port:
    """A port of a node: ``Port("link", "ab", addr="10.0.0.1/24")``. Keys are those of ``ring3 run --help``."""

    kind: str
    name: Optional[str] = None
    #: Addresses of the node's end.
    addr: Union[str, Sequence[str]] = ()
    #: Default gateways.
    gw: Union[str, Sequence[str]] = ()
    #: Capture what crosses the port to this file.
    pcap: Optional[Word] = None
    mtu: Optional[int] = None
    mac: Optional[str] = None
    #: ``tap``: address of the host's end.
    host: Optional[str] = None
    #: ``host``, ``passt``: the gateway's address leads to 127.0.0.1 of the host.
    loopback: bool = False

    def __str__(self) -> str:
        def several(value: Union[str, Sequence[str]]) -> Sequence[str]:
            return [value] if isinstance(value, str) else value

        spec = [self.kind if self.name is None else f"{self.kind}:{_double(self.name)}"]
        spec += [f"addr={it}" for it in several(self.addr)]
        spec += [f"gw={it}" for it in several(self.gw)]
        for key in ("host", "mtu", "mac"):
            value = getattr(self, key)
            if value is not None:
                spec.append(f"{key}={value}")
        if self.pcap is not None:
            spec.append(f"pcap={_double(os.fspath(self.pcap))}")
        if self.loopback:
            spec.append("loopback=yes")
        return ",".join(spec)


def _double(text: str) -> str:
    """A comma within a name is written twice."""
    return text.replace(",", ",,")


@dataclass
class Config:
    """Options of ``ring3 up``; what is None or empty is left to the command."""

    name: str
    ports: Sequence[Union[Port, str]] = ()
    sysctls: Mapping[str, Any] = field(default_factory=dict)
    routes: Sequence[str] = ()
    hosts: Mapping[str, Union[str, Sequence[str]]] = field(default_factory=dict)
    dns: Sequence[str] = ()
    mem: Optional[str] = None
    cpus: Optional[int] = None
    image: Optional[Word] = None
    seed: Optional[int] = None
    grace: Optional[float] = None
    cmdline: Optional[str] = None
    file: Optional[Word] = None
    restart: Optional[str] = None
    wait: Sequence[str] = ()
    command: Sequence[Word] = ()

    def line(self) -> list[str]:
        """The arguments of ``ring3``."""
        line: list[Word] = ["up", self.name]
        for port in self.ports:
            line += ["--port", str(port)]
        for key, value in self.sysctls.items():
            line += ["--sysctl", f"{key}={value}"]
        for route in self.routes:
            line += ["--route", route]
        for name, addresses in self.hosts.items():
            for address in [addresses] if isinstance(addresses, str) else addresses:
                line += ["--add-host", f"{name}={address}"]
        for address in self.dns:
            line += ["--dns", address]
        for key in ("mem", "cpus", "image", "seed", "grace", "cmdline", "file"):
            value = getattr(self, key)
            if value is not None:
                line += [f"--{key}", value if isinstance(value, os.PathLike) else str(value)]
        if self.restart is not None:
            line.append(f"--restart={self.restart}")
        for socket in self.wait:
            line += ["--wait", socket]
        if self.command:
            line += ["--", *self.command]
        return words(line)
