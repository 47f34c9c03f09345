# SPDX-License-Identifier: GPL-2.0
"""The ``ring3`` command: where it is, how it is run, what its failures become.

Nothing of ring3 is implemented here a second time: each function of this package runs the command, and reads
what it prints with ``--json`` where there is that.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Union

#: What may stand for a word of a command line.
Word = Union[str, "os.PathLike[str]"]

#: Status of ``ring3 run`` and ``ring3 exec`` when ring3 itself has failed, not the program.
RING3_FAILED = 125


class Ring3Error(Exception):
    """The command has failed. The text is its message: what happened, to what, what to do."""


class ProgramError(Ring3Error):
    """A program on a node has failed; :attr:`result` has all that is known of it."""

    def __init__(self, result: Result) -> None:
        self.result = result
        said = result.stderr.strip() or result.stdout.strip()
        super().__init__(f"`{shlex.join(result.args)}` {_ended(result.status)}: {said or 'it said nothing'}")


class ProgramTimeout(Ring3Error, subprocess.TimeoutExpired):
    """A program did not end in time, and was killed; what it had said is in `stdout` and `stderr`.

    Or it did (`has_ended`), and a process that it has started kept its output open.
    """

    def __init__(self, line: Sequence[str], expired: subprocess.TimeoutExpired, has_ended: bool) -> None:
        subprocess.TimeoutExpired.__init__(self, list(line), expired.timeout, expired.stdout, expired.stderr)
        self.has_ended = has_ended

    def __str__(self) -> str:
        if self.has_ended:
            return (
                f"`{shlex.join(self.cmd)}` has ended, but what it has started kept its output open for {self.timeout:g} s: "
                "give it more by timeout=, or send that output elsewhere"
            )
        return f"`{shlex.join(self.cmd)}` did not end in {self.timeout:g} s, and was killed: give it more by timeout="


def _ended(status: int) -> str:
    """How a program ended, for a message."""
    try:
        name = signal.Signals(status - 128).name
    except ValueError:
        return f"ended with status {status}"
    return f"was ended by {name} (status {status})"


class Result:
    """What a program on a node has printed, and how it ended."""

    def __init__(self, args: Sequence[str], status: int, stdout: str, stderr: str) -> None:
        self.args = list(args)
        #: Exit status; 128+N if signal N has ended it.
        self.status = status
        self.stdout = stdout
        self.stderr = stderr

    @property
    def ok(self) -> bool:
        return self.status == 0

    def json(self) -> Any:
        """Standard output, read as JSON: ``node.run("ip", "-j", "addr").json()``."""
        return json.loads(self.stdout)

    def __repr__(self) -> str:
        return f"Result({' '.join(self.args)!r}, status={self.status}, {len(self.stdout)} characters)"

    def _repr_html_(self) -> str:
        from html import escape

        text = escape(self.stdout + self.stderr)
        mark = "" if self.ok else f" <b>status {self.status}</b>"
        return f"<code>{escape(' '.join(self.args))}</code>{mark}<pre>{text}</pre>"


def command() -> str:
    """The path of the command: ``$RING3``, else ``ring3`` beside this Python's scripts, else on ``$PATH``."""
    named = os.environ.get("RING3")
    if named:
        return named
    places = [sysconfig.get_path("scripts")]
    if os.name in sysconfig.get_scheme_names() or "posix_user" in sysconfig.get_scheme_names():
        places.append(sysconfig.get_path("scripts", "posix_user"))
    # `pip install --target DIR` puts scripts below it, beside the package.
    places.append(str(Path(__file__).parent.parent / "bin"))
    for place in places:
        path = Path(place) / "ring3"
        if os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("ring3")
    if found is None:
        raise Ring3Error("no command `ring3`: install the wheel or the package, or name it in the variable RING3")
    return found


def words(line: Sequence[Word]) -> list[str]:
    return [os.fspath(word) for word in line]


def failure(stderr: str, status: int) -> Ring3Error:
    """What the command has said on standard error, without its own name in front."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    last = lines[-1] if lines else f"ring3 ended with status {status} and said nothing"
    return Ring3Error(last[len("ring3: ") :] if last.startswith("ring3: ") else last)


def ask(*line: Word, env: Mapping[str, str] | None = None, input: str | None = None) -> str:
    """Runs the command and returns its standard output, or raises what it has said."""
    done = subprocess.run(
        [command(), *words(line)],
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=None if env is None else {**os.environ, **env},
    )
    if done.returncode != 0:
        raise failure(done.stderr, done.returncode)
    return done.stdout


def ask_json(*line: Word) -> Any:
    return json.loads(ask(*line))


def talk(
    line: Sequence[Word],
    named: Sequence[str],
    input: Union[str, bytes, None],
    timeout: Optional[float],
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[Word] = None,
) -> tuple[int, str, str]:
    """Runs a command line to its end: status and output. `named` is the program, for messages.

    Bytes that are no UTF-8 come and go as surrogates: ``text.encode(errors="surrogateescape")`` has them.
    """
    with subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="surrogateescape",
        env=None if env is None else {**os.environ, **env},
        cwd=cwd,
    ) as process:
        try:
            stdout, stderr = process.communicate(
                input.decode(errors="surrogateescape") if isinstance(input, bytes) else input, timeout
            )
        except subprocess.TimeoutExpired as expired:
            has_ended = process.poll() is not None
            process.kill()
            raise ProgramTimeout(named, expired, has_ended) from None
        except BaseException:
            process.kill()
            raise
    return process.returncode, stdout, stderr


def judge(line: Sequence[str], status: int, stdout: str, stderr: str, check: bool) -> Result:
    """The result of ``ring3 run`` or ``exec``."""
    status = 128 - status if status < 0 else status
    if status == RING3_FAILED and stderr.startswith("ring3: "):
        raise failure(stderr, status)
    result = Result(line, status, stdout, stderr)
    if check and not result.ok:
        raise ProgramError(result)
    return result
