# SPDX-License-Identifier: GPL-2.0
"""The same for asyncio::

    async with ring3.aio.Node(ports=["link:ab,addr=10.0.0.1/24"]) as a:
        result = await a.run("ip", "addr")

Names and arguments are those of :class:`ring3.Node`.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator, Mapping, Optional, Sequence, Union

from . import _command
from ._command import Result, Word, words
from .config import Config, Port, unused_name
from .statistics import Event, Rates, Sample, read_metrics, total, watch_words
from .status import Status


async def _talk(
    line: list[str],
    named: Sequence[str],
    input: Union[str, bytes, None] = None,
    timeout: Optional[float] = None,
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[Word] = None,
) -> tuple[int, str, str]:
    """Runs a command line to its end. A timeout or a cancellation kills it. `named` is the program, for messages."""
    process = await asyncio.create_subprocess_exec(
        *line,
        stdin=asyncio.subprocess.DEVNULL if input is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=None if env is None else {**os.environ, **env},
        cwd=cwd,
    )
    try:
        sent = input.encode(errors="surrogateescape") if isinstance(input, str) else input
        stdout, stderr = await asyncio.wait_for(process.communicate(sent), timeout)
    except BaseException as error:
        has_ended = process.returncode is not None
        if not has_ended:
            process.kill()
        # A child of the program's may keep the pipes, and up to Python 3.12 wait() waits for their ends, too.
        process._transport.close()  # type: ignore[attr-defined]
        await process.wait()
        if timeout is not None and isinstance(error, asyncio.TimeoutError):
            raise _command.ProgramTimeout(named, subprocess.TimeoutExpired(line, timeout), has_ended) from None
        raise
    assert process.returncode is not None
    return process.returncode, stdout.decode(errors="surrogateescape"), stderr.decode(errors="surrogateescape")


async def ask(*line: Word) -> str:
    """Runs the command and returns its standard output, or raises what it has said."""
    whole = [_command.command(), *words(line)]
    status, stdout, stderr = await _talk(whole, whole)
    if status != 0:
        raise _command.failure(stderr, status)
    return stdout


class Node:
    """A node, for ``async with``."""

    def __init__(self, name: Optional[str] = None, **options: Any) -> None:
        self.config = Config(name or unused_name("py"), **options)
        self.name = self.config.name

    @staticmethod
    async def attach(name: str) -> Node:
        """A node that is up already."""
        node = Node(name)
        await node.status()
        return node

    async def up(self) -> Node:
        await ask(*self.config.line())
        return self

    async def down(self) -> None:
        await ask("down", self.name)

    async def __aenter__(self) -> Node:
        return await self.up()

    async def __aexit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        try:
            await self.down()
        except _command.Ring3Error:
            if error is None:
                raise

    def _line(self, *program: Word) -> list[str]:
        return [_command.command(), "exec", self.name, "--", *words(program)]

    async def run(
        self,
        *program: Word,
        check: bool = True,
        input: Union[str, bytes, None] = None,
        timeout: Optional[float] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[Word] = None,
    ) -> Result:
        """Runs a program to its end. Arguments and errors are those of :meth:`ring3.Node.run`."""
        named = words(program)
        status, stdout, stderr = await _talk(self._line(*program), named, input, timeout, env, cwd)
        return _command.judge(named, status, stdout, stderr, check)

    async def start(self, *program: Word, **options: Any) -> asyncio.subprocess.Process:
        """Starts a program; `options` go to asyncio.create_subprocess_exec."""
        return await asyncio.create_subprocess_exec(*self._line(*program), **options)

    async def wait(self, protocol: str = "", port: int = 0, timeout: float = 30.0) -> None:
        socket = [protocol, str(port)] if protocol else []
        await ask("wait", "--timeout", str(timeout), self.name, *socket)

    async def connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A TCP connection from the node, as asyncio.open_connection() gives one; see :meth:`ring3.Node.connect`."""
        ours, theirs = socket.socketpair()
        with theirs:
            inner = await asyncio.create_subprocess_exec(
                *[_command.command(), "connect", "--verbose", self.name, host, str(port)],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=asyncio.subprocess.PIPE,
            )
        assert inner.stderr is not None
        said = ""
        try:
            async for line in inner.stderr:
                if line.startswith(b"ring3: connected to "):
                    return await asyncio.open_connection(sock=ours)
                said += line.decode(errors="surrogateescape")
        except BaseException:
            inner.kill()
            ours.close()
            raise
        ours.close()
        raise _command.failure(said, await inner.wait())

    @asynccontextmanager
    async def socks(self) -> AsyncIterator[str]:
        """A SOCKS5 and HTTP CONNECT proxy on the host's loopback; the value is its ``ADDRESS:PORT``."""
        inner = await asyncio.create_subprocess_exec(
            *[_command.command(), "socks", self.name, "--listen", "127.0.0.1:0"],
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert inner.stdout is not None and inner.stderr is not None
        try:
            address = (await inner.stdout.readline()).decode().strip()
            if not address:
                raise _command.failure((await inner.stderr.read()).decode(errors="replace"), await inner.wait())
            yield address
        finally:
            if inner.returncode is None:
                inner.terminate()
            await inner.wait()

    async def add_port(self, port: Union[Port, str]) -> str:
        """Gives the node a port while it is up; the name of its interface there."""
        return (await ask("port", "add", self.name, str(port))).strip()

    async def remove_port(self, interface: str) -> None:
        """Takes a port away by its interface's name."""
        await ask("port", "del", self.name, interface)

    async def metrics(self) -> list[Sample]:
        """What the node's kernel counts, under node_exporter's names."""
        return [it for it in read_metrics(await ask("metrics")) if it.node == self.name]

    async def counter(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name."""
        return total(await self.metrics(), self.name, name, labels)

    async def status(self) -> Status:
        return Status.read(json.loads(await ask("stat", self.name, "--json")))

    async def events(self, level: Optional[int] = None) -> list[Event]:
        line = ["log", self.name] + ([] if level is None else ["--level", str(level)])
        return Event.read_all(await ask(*line))

    async def watch(self, every: float = 1.0) -> AsyncIterator[Rates]:
        """Rates, each `every` seconds (0.1 or more, or ValueError), until the node goes down."""
        line = [_command.command(), *watch_words(self.name, every)]
        process = await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            async for text in process.stdout:
                yield Rates.read(json.loads(text))
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
