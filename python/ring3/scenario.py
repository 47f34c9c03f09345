# SPDX-License-Identifier: GPL-2.0
"""Scenarios of ``ring3 sim`` made by a program, and sweeps over them on all cores."""

from __future__ import annotations

import json
import os
import tempfile
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Iterable, Mapping, Optional, Sequence, Union

from ._command import Ring3Error, Word
from .simulation import Results, simulate

if TYPE_CHECKING:
    import pandas


class Scenario:
    """A simulated network. The keys are those of a scenario's file (docs/sim.md), and so are the units.

        scenario = ring3.Scenario("5 s")
        scenario.link("client", "server", rate="10 Mbit", delay="20 ms")
        scenario.process("server", "iperf3", "-s", expected="running")
        scenario.process("client", "iperf3", "-c", "server", "-t", "3", start="1 s")
        results = scenario.run("out")
    """

    def __init__(self, stop_time: str, *, sample: Optional[str] = None, ipv6: bool = False, **general: Any) -> None:
        self.general: dict[str, Any] = {"stop_time": stop_time, **general}
        self.settings: dict[str, Any] = {"ipv6": ipv6}
        if sample is not None:
            self.settings["sample"] = sample
        self.hosts: dict[str, dict[str, Any]] = {}
        self.links: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        #: Other keys of the file: ``scenario.others["network"] = {"graph": {"type": "1_gbit_switch"}}``.
        self.others: dict[str, Any] = {}

    def host(self, name: str, **keys: Any) -> None:
        """A host with these keys (``router=True``, ``sysctls={...}``); more of them for one that is there already."""
        self.hosts.setdefault(name, {}).update(keys)

    def process(
        self,
        host: str,
        program: Word,
        *args: Word,
        start: Optional[str] = None,
        shutdown: Optional[str] = None,
        expected: Union[None, str, int] = None,
        environment: Optional[Mapping[str, str]] = None,
    ) -> None:
        """A program on a host. `expected` is ``"running"`` or an exit status; without it, 0."""
        process: dict[str, Any] = {"path": os.fspath(program), "args": [os.fspath(arg) for arg in args]}
        if start is not None:
            process["start_time"] = start
        if shutdown is not None:
            process["shutdown_time"] = shutdown
        if expected is not None:
            process["expected_final_state"] = {"exited": expected} if isinstance(expected, int) else expected
        if environment is not None:
            process["environment"] = dict(environment)
        self.hosts.setdefault(host, {}).setdefault("processes", []).append(process)

    def link(self, one: str, other: str, **keys: Any) -> None:
        """A link of two hosts, which are made where there are none: ``rate="10 Mbit", delay="20 ms", loss=0.01``."""
        for name in (one, other):
            self.hosts.setdefault(name, {})
        self.links.append({"between": [one, other], **keys})

    def event(self, at: str, **what: Any) -> None:
        """``event("3 s", down="client-server")``, ``event("1 s", partition=[["a"], ["b"]])``."""
        self.events.append({"at": at, **what})

    def topology(self, kind: str, **keys: Any) -> None:
        """Links and routers by name: ``topology("dumbbell", left=2, right=2)``."""
        self.others["topology"] = {"type": kind, **keys}

    def as_dict(self) -> dict[str, Any]:
        """What the file says."""
        parts = {"hosts": self.hosts, "links": self.links, "events": self.events}
        return {"general": self.general, "sim": self.settings, **{k: v for k, v in parts.items() if v}, **self.others}

    def write(self, file: Word) -> None:
        """Writes the scenario's file, for ``ring3 sim``. It is JSON, which is YAML, too."""
        Path(file).write_text(json.dumps(self.as_dict(), indent=1) + "\n")

    def run(
        self, data_directory: Word, *, seed: Optional[int] = None, real_time: bool = False, check: bool = True
    ) -> Results:
        """Runs it: see :func:`simulate`."""
        with tempfile.TemporaryDirectory(prefix="ring3-") as folder:
            file = Path(folder) / "scenario.yaml"
            self.write(file)
            return simulate(file, data_directory, seed=seed, real_time=real_time, check=check)


@dataclass(frozen=True)
class Run:
    """One run of a sweep."""

    #: What the scenario was made of.
    point: dict[str, Any]
    results: Results


class Sweep(Sequence[Run]):
    """The runs of a sweep, in the order of their points."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = list(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, index: Any) -> Any:
        return self._runs[index]

    def rows(self, measure: Callable[[Results], Mapping[str, Any]]) -> list[dict[str, Any]]:
        """For each run its point and what `measure` finds in its results."""
        return [{**run.point, **measure(run.results)} for run in self._runs]

    def frame(self, measure: Callable[[Results], Mapping[str, Any]]) -> pandas.DataFrame:
        """:meth:`rows` as a data frame. Needs pandas."""
        try:
            import pandas
        except ImportError:
            raise Ring3Error("data frames need pandas: pip install pandas") from None
        return pandas.DataFrame(self.rows(measure))


def sweep(
    make: Callable[..., Scenario],
    points: Iterable[Mapping[str, Any]],
    folder: Word,
    *,
    jobs: Optional[int] = None,
    check: bool = True,
    executor: Optional[Executor] = None,
) -> Sweep:
    """Runs ``make(**point)`` for each point, several at a time: as many as there are CPUs, or `jobs`.

    A key ``seed`` of a point is the run's seed; `make` does not get it. Results go to ``folder/0``, ``folder/1`` and so on.
    The first run that fails ends the sweep, after those that are under way.

    An `executor` takes the place of threads of this process: ``dask.distributed.Client(address).get_executor()`` for the
    workers of a Dask cluster. Each of them needs ring3 and this package, and the same `folder`. A point gives the same
    files on all of them.
    """
    top = Path(folder).absolute()
    top.mkdir(parents=True)

    def one(number: int, point: Mapping[str, Any]) -> Run:
        keys = dict(point)
        seed = keys.pop("seed", None)
        return Run(dict(point), make(**keys).run(top / str(number), seed=seed, check=check))

    if executor is None:
        threads: ContextManager[Executor] = ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0)))
    else:
        threads = nullcontext(executor)
    with threads as pool:
        waiting = [pool.submit(one, number, point) for number, point in enumerate(points)]
        try:
            return Sweep([future.result() for future in waiting])
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
