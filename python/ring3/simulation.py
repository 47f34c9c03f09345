# SPDX-License-Identifier: GPL-2.0
"""``ring3 sim`` and the files that it leaves."""

from __future__ import annotations

import csv
import json
import subprocess
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _command
from ._command import Ring3Error, Word, words

if TYPE_CHECKING:
    import pandas


def number(text: str) -> Union[str, int, float]:
    """A field of a table as what it is."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


class Results:
    """The data directory of a simulation: ``Results("dumbbell.data")``."""

    def __init__(self, folder: Word) -> None:
        self.folder = Path(folder)
        path = self.folder / "result.json"
        if not path.is_file():
            raise Ring3Error(f"no results in {self.folder}: result.json is missing")
        #: result.json as it is.
        self.summary: dict[str, Any] = json.loads(path.read_text())

    @property
    def report(self) -> Path:
        """The page with plots."""
        return self.folder / "report.html"

    def tables(self) -> list[str]:
        """Names of the tables that there are, for :meth:`frame`."""
        return sorted(path.stem for path in self.folder.glob("*.csv"))

    def frame(self, table: str) -> pandas.DataFrame:
        """A table of samples as a data frame: ``results.frame("interfaces")``. Needs pandas."""
        try:
            import pandas
        except ImportError:
            raise Ring3Error("data frames need pandas: pip install pandas") from None
        path = self.folder / f"{table}.csv"
        if not path.is_file():
            raise Ring3Error(f"no table {table} in {self.folder}: there are {', '.join(self.tables()) or 'none'}")
        return pandas.read_csv(path)

    def rows(self, table: str) -> list[dict[str, Union[str, int, float]]]:
        """A table of samples as a list: ``results.rows("tcp")[0]["rtt_us"]``. Times are in seconds."""
        path = self.folder / f"{table}.csv"
        if not path.is_file():
            raise Ring3Error(f"no table {table} in {self.folder}: there are {', '.join(self.tables()) or 'none'}")
        with path.open(newline="") as file:
            return [{key: number(text) for key, text in row.items()} for row in csv.DictReader(file)]

    def unexpected(self) -> str:
        """Which processes did not end as expected, in one line; empty: none."""
        return ", ".join(
            f"{process['host']}: {process['process']} was to be `{process['expected']}` and is `{process['state']}`"
            for process in self.summary["processes"]
            if not process["ok"]
        )

    def output(self, host: str, program: str) -> str:
        """Standard output of a host's programs whose file begins with this name."""
        found = sorted((self.folder / "hosts" / host).glob(f"{program}*.stdout"))
        if not found:
            raise Ring3Error(f"no program {program} of host {host} in {self.folder}")
        return "".join(path.read_text() for path in found)

    def __repr__(self) -> str:
        return f"Results({str(self.folder)!r}, tables: {', '.join(self.tables())})"

    def _repr_html_(self) -> str:
        text = escape(json.dumps(self.summary, indent=1)[:2000])
        return f"<p>{escape(str(self.folder))}</p><pre>{text}</pre>"


def simulate(
    file: Word, data_directory: Word, *, seed: Optional[int] = None, real_time: bool = False, check: bool = True
) -> Results:
    """Runs a scenario. `data_directory` must not exist yet. `check`: a program that ends unexpectedly is an error."""
    line: list[Word] = [_command.command(), "sim", "--json", "--data-directory", data_directory]
    if seed is not None:
        line += ["--seed", str(seed)]
    if real_time:
        line.append("--real-time")
    done = subprocess.run(words([*line, file]), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0 and not (Path(data_directory) / "result.json").is_file():
        raise _command.failure(done.stderr, done.returncode)
    results = Results(data_directory)
    if check and done.returncode != 0:
        raise Ring3Error(f"{results.unexpected()}; its results are in {data_directory}")
    return results
