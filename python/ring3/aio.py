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
from typing import Any, AsyncIterator, Mapping, Optional, Union

from . import _command
from ._command import Result, Word, words
from .config import Config, unused_name
from .statistics import Event, Rates
from .status import Status


async def _talk(
    line: list[str], input: Union[str, bytes, None], timeout: Optional[float], env: Optional[Mapping[str, str]]
) -> tuple[int, str, str]:
    """Runs a command line to its end. A timeout or a cancellation kills it."""
    process = await asyncio.create_subprocess_exec(
        *line,
        stdin=asyncio.subprocess.DEVNULL if input is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=None if env is None else {**os.environ, **env},
    )
    try:
        sent = input.encode(errors="surrogateescape") if isinstance(input, str) else input
        stdout, stderr = await asyncio.wait_for(process.communicate(sent), timeout)
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    assert process.returncode is not None
    return process.returncode, stdout.decode(errors="surrogateescape"), stderr.decode(errors="surrogateescape")


async def ask(*line: Word) -> str:
    """Runs the command and returns its standard output, or raises what it has said."""
    status, stdout, stderr = await _talk([_command.command(), *words(line)], None, None, None)
    if status != 0:
        raise _command.failure(stderr, status)
    return stdout


class Node:
    """A node, for ``async with``."""

    def __init__(self, name: Optional[str] = None, **options: Any) -> None:
        self.config = Config(name or unused_name("py"), **options)
        self.name = self.config.name

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
    ) -> Result:
        """Runs a program to its end; asyncio.TimeoutError after `timeout` seconds, and the program is killed."""
        status, stdout, stderr = await _talk(self._line(*program), input, timeout, env)
        return _command.judge(words(program), status, stdout, stderr, check)

    async def start(self, *program: Word, **options: Any) -> asyncio.subprocess.Process:
        """Starts a program; `options` go to asyncio.create_subprocess_exec."""
        return await asyncio.create_subprocess_exec(*self._line(*program), **options)

    async def wait(self, protocol: str = "", port: int = 0, timeout: float = 30.0) -> None:
        socket = [protocol, str(port)] if protocol else []
        await ask("wait", "--timeout", str(timeout), self.name, *socket)

    async def status(self) -> Status:
        return Status.read(json.loads(await ask("stat", self.name, "--json")))

    async def events(self, level: Optional[int] = None) -> list[Event]:
        line = ["log", self.name] + ([] if level is None else ["--level", str(level)])
        return Event.read_all(await ask(*line))

    async def watch(self, every: float = 1.0) -> AsyncIterator[Rates]:
        """Rates, each `every` seconds, until the node goes down."""
        line = [_command.command(), "stat", self.name, f"--watch={every}", "--json"]
        process = await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            async for text in process.stdout:
                yield Rates.read(json.loads(text))
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
