# SPDX-License-Identifier: GPL-2.0
"""Linux's own network stack inside unmodified programs.

    import ring3

    with ring3.Node(ports=[ring3.Port("link", "ab", addr="10.0.0.1/24")]) as a, \\
         ring3.Node(ports=[ring3.Port("link", "ab", addr="10.0.0.2/24")]) as b:
        with a.start("python3", "-m", "http.server"):
            a.wait("tcp", 8000)
            print(b.run("curl", "-s", "http://10.0.0.1:8000/").stdout)

:mod:`ring3.aio` has nodes for asyncio, :mod:`ring3.net` networks of many hosts on one node, and
:mod:`ring3.pytest_plugin` the fixtures of pytest. All of it runs the ``ring3`` command.
"""

from . import aio
from ._command import ProgramError, ProgramTimeout, Result, Ring3Error, command
from .config import Config, Port
from .net import Host, Net
from .node import Node, Process, compose, nodes, run
from .scenario import Run, Scenario, Sweep, sweep
from .simulation import Results, simulate
from .statistics import Event, Rates, Sample, frame, metrics
from .status import Calls, Memory, PortStatus, Program, Status

__all__ = [
    "Calls",
    "Config",
    "Event",
    "Host",
    "Memory",
    "Net",
    "Node",
    "Port",
    "PortStatus",
    "Process",
    "Program",
    "ProgramError",
    "ProgramTimeout",
    "Rates",
    "Result",
    "Results",
    "Ring3Error",
    "Run",
    "Sample",
    "Scenario",
    "Status",
    "Sweep",
    "aio",
    "command",
    "compose",
    "frame",
    "metrics",
    "nodes",
    "run",
    "simulate",
    "sweep",
]
