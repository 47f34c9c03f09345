# SPDX-License-Identifier: GPL-2.0
"""Nodes and programs on them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from html import escape
from types import TracebackType
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from . import _command
from ._command import ProgramError, ProgramTimeout, Result, Ring3Error, Word, ask, ask_json, words
from .config import Config, Port, unused_name
from .statistics import Event, Rates, Sample, metrics, total, watch_words
from .status import Status

#: Seconds that a program has between SIGTERM and SIGKILL.
GRACE = 5.0


class Process:
    """A program that runs on a node, with its output in pipes. It ends with the ``with`` block."""

    def __init__(self, args: Sequence[str], inner: subprocess.Popen[str]) -> None:
        self.args = list(args)
        self.inner = inner

    @property
    def pid(self) -> int:
        """The host's number of the process."""
        return self.inner.pid

    def result(self, timeout: Optional[float] = None, check: bool = True) -> Result:
        """Waits for its end; subprocess.TimeoutExpired if that takes longer than `timeout` seconds."""
        stdout, stderr = self.inner.communicate(timeout=timeout)
        return _command.judge(self.args, self.inner.returncode, stdout or "", stderr or "", check)

    def readline(self) -> str:
        """The next line of standard output, without its end."""
        assert self.inner.stdout is not None
        return self.inner.stdout.readline().rstrip("\n")

    def stop(self, grace: float = GRACE) -> None:
        """SIGTERM, and SIGKILL after `grace` seconds. What it has started in the background goes on."""
        end = time.monotonic() + grace
        if self.inner.poll() is None:
            self.inner.terminate()
        while True:
            try:
                # Not without a bound: a process that it has started may have the pipes open for ever.
                self.inner.communicate(timeout=0.05)
                break
            except subprocess.TimeoutExpired:
                if self.inner.poll() is not None:
                    break
                if time.monotonic() > end:
                    self.inner.kill()
        for pipe in (self.inner.stdin, self.inner.stdout, self.inner.stderr):
            if pipe is not None:
                pipe.close()

    def send_signal(self, number: signal.Signals) -> None:
        self.inner.send_signal(number)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.stop()


class Place:
    """Where programs can be started: a node, or one host of a network within a node."""

    #: For messages.
    name: str

    def _line(self, program: Sequence[Word]) -> list[str]:
        """The whole command line for a program."""
        raise NotImplementedError

    def run(
        self,
        *program: Word,
        check: bool = True,
        input: Union[str, bytes, None] = None,
        timeout: Optional[float] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[Word] = None,
    ) -> Result:
        """Runs a program to its end. :class:`ProgramError` if it fails and `check` is set.

        `timeout` is in seconds (:class:`ProgramTimeout`, and the program is killed), `env` adds to the environment.
        """
        named = words(program)
        status, stdout, stderr = _command.talk(self._line(program), named, input, timeout, env, cwd)
        return _command.judge(named, status, stdout, stderr, check)

    def start(
        self, *program: Word, env: Optional[Mapping[str, str]] = None, cwd: Optional[Word] = None, **popen: Any
    ) -> Process:
        """Starts a program and returns at once; use it in a ``with`` statement.

        `popen` goes to subprocess.Popen: ``stdin=subprocess.PIPE``, for example.
        """
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        inner: subprocess.Popen[str] = subprocess.Popen(
            self._line(program),
            text=True,
            env=None if env is None else {**os.environ, **env},
            cwd=cwd,
            **popen,
        )
        return Process(words(program), inner)


class Node(Place):
    """A virtual host with its own network stack. In a ``with`` statement it is up inside of the block.

    ``ports`` are :class:`Port` objects or specifications as ``ring3 up --port`` takes them. Every other option is one
    of ``ring3 up``: see ``ring3 up --help``, and :class:`Config` for the types. Without a name it has one of its own.
    """

    def __init__(self, name: Optional[str] = None, **options: Any) -> None:
        self.config = Config(name or unused_name("py"), **options)
        self.name = self.config.name

    @staticmethod
    def attach(name: str) -> Node:
        """A node that is up already."""
        node = Node(name)
        node.status()
        return node

    def up(self) -> Node:
        """Starts it; returns when programs can join."""
        ask(*self.config.line())
        return self

    def down(self) -> None:
        """Takes it down with its programs; returns when its process is gone."""
        ask("down", self.name)

    def begin_down(self) -> subprocess.Popen[str]:
        """The same without waiting: the command that does it, whose status tells how it went."""
        line = [_command.command(), "down", self.name]
        return subprocess.Popen(line, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> Node:
        return self.up()

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            self.down()
        except Ring3Error:
            # An error of the block says more than one of the end.
            if error is None:
                raise

    def _line(self, program: Sequence[Word]) -> list[str]:
        return [_command.command(), "exec", self.name, "--", *words(program)]

    def wait(self, protocol: str = "", port: int = 0, timeout: float = 30.0) -> None:
        """Waits until the node is up, or until a program listens: ``node.wait("tcp", 8000)``. `timeout` in seconds."""
        socket = [protocol, str(port)] if protocol else []
        ask("wait", "--timeout", str(timeout), self.name, *socket)

    def connect(self, host: str, port: int) -> socket.socket:
        """A TCP connection from the node to a name or address as seen from there, as a socket of this process.

        :class:`Ring3Error` says why there is none, when the node's kernel has refused it or given up.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            inner = subprocess.Popen(
                [_command.command(), "connect", "--verbose", self.name, host, str(port)],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                text=True,
            )
        assert inner.stderr is not None
        said = ""
        with inner.stderr:
            for line in inner.stderr:
                if line.startswith("ring3: connected to "):
                    return ours
                said += line
        ours.close()
        raise _command.failure(said, inner.wait())

    @contextmanager
    def socks(self) -> Iterator[str]:
        """A SOCKS5 and HTTP CONNECT proxy on the host's loopback; the value is its ``ADDRESS:PORT``."""
        line = [_command.command(), "socks", self.name, "--listen", "127.0.0.1:0"]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as inner:
            assert inner.stdout is not None and inner.stderr is not None
            address = inner.stdout.readline().strip()
            if not address:
                raise _command.failure(inner.stderr.read(), inner.wait())
            try:
                yield address
            finally:
                inner.terminate()

    def add_port(self, port: Union[Port, str]) -> str:
        """Gives the node a port while it is up: ``node.add_port(Port("switch", "lan", addr="10.0.0.4/24"))``.

        The name of its interface on the node, by which :meth:`remove_port` takes it away.
        """
        return ask("port", "add", self.name, str(port)).strip()

    def remove_port(self, interface: str) -> None:
        """Takes a port away by its interface's name."""
        ask("port", "del", self.name, interface)

    def status(self) -> Status:
        return Status.read(ask_json("stat", self.name, "--json"))

    def metrics(self) -> list[Sample]:
        """What the node's kernel counts, under node_exporter's names."""
        return metrics(self.name)

    def counter(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name: ``node.counter("node_netstat_Tcp_RetransSegs")``."""
        return total(self.metrics(), self.name, name, labels)

    def watch(self, every: float = 1.0) -> Iterator[Rates]:
        """Rates, each `every` seconds (0.1 or more, or ValueError), until the node goes down."""
        line = [_command.command(), *watch_words(self.name, every)]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as inner:
            assert inner.stdout is not None
            try:
                for text in inner.stdout:
                    yield Rates.read(json.loads(text))
            finally:
                inner.terminate()

    def events(self, level: Optional[int] = None) -> list[Event]:
        """The kernel's log; `level` (0 to 7) leaves out what is less urgent."""
        line = ["log", self.name] + ([] if level is None else ["--level", str(level)])
        return Event.read_all(ask(*line))

    def __repr__(self) -> str:
        ports = ", ".join(str(port) for port in self.config.ports)
        return f"Node({self.name!r}{', ports: ' + ports if ports else ''})"

    def _repr_html_(self) -> str:
        try:
            return self.status()._repr_html_()
        except Ring3Error as error:
            return f"<p>{escape(str(error))}</p>"


def nodes() -> list[Status]:
    """This user's nodes."""
    return [Status.read(it) for it in ask_json("ls", "--json")]


def run(*program: Word, check: bool = True, input: Union[str, bytes, None] = None, timeout: Optional[float] = None,
        ports: Sequence[Any] = (), **options: Any) -> Result:
    """Runs a program on a node of its own, which ends with it: ``ring3.run("curl", URL, ports=["host"])``."""
    config = Config("", ports=ports, **options)
    # All but `up` and the empty name.
    named = words(program)
    line = [_command.command(), "run", *config.line()[2:], "--", *named]
    status, stdout, stderr = _command.talk(line, named, input, timeout)
    return _command.judge(named, status, stdout, stderr, check)


@contextmanager
def compose(file: Word) -> Iterator[dict[str, Node]]:
    """The nodes of a file of ``ring3 compose``, by name, up inside of the ``with`` block."""
    statuses = json.loads(ask("compose", "up", "--json", file))
    try:
        yield {it["name"]: Node(it["name"]) for it in statuses}
    finally:
        ask("compose", "down", file)


__all__ = ["Node", "Place", "Process", "ProgramError", "ProgramTimeout", "Result", "compose", "nodes", "run"]
