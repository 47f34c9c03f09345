# SPDX-License-Identifier: GPL-2.0
"""Fixtures of pytest: a node, or a network of hosts, for each test, without privilege.

Installing this package makes them known to pytest. Each test has its own, with names that no other process has, so
that ``pytest -n 8`` (pytest-xdist) needs nothing further.
"""

from __future__ import annotations

import subprocess
import warnings
from typing import Any, Iterator

import pytest

from .net import Net
from .node import Node
from .presets import lay_out


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ring3(preset, **options): the fixture `net` is a network of this name")


class Ring3Warning(UserWarning):
    """A node of a test did not go down."""


class Ending:
    """The node of the last test, which goes down while the next test is set up: half of what a fixture costs."""

    def __init__(self) -> None:
        self.last: tuple[str, subprocess.Popen[str]] | None = None

    def begin(self, test: str, node: Node) -> None:
        self.finish()
        self.last = (test, node.begin_down())

    def finish(self) -> None:
        if self.last is None:
            return
        (test, command), self.last = self.last, None
        said = command.communicate()[1].strip()
        if command.returncode != 0:
            warnings.warn(f"the node of {test} did not go down: {said}", Ring3Warning, stacklevel=2)


@pytest.fixture(scope="session")
def _ring3_ending() -> Iterator[Ending]:
    ending = Ending()
    yield ending
    ending.finish()


@pytest.fixture
def ring3_options() -> dict[str, Any]:
    """Options of the test's :class:`ring3.Node`; redefine this fixture to change them for a module or a project."""
    return {"mem": "256M"}


@pytest.fixture
def node(
    request: pytest.FixtureRequest, ring3_options: dict[str, Any], _ring3_ending: Ending
) -> Iterator[Node]:
    """A node that is up. It goes down, with its programs, after the test."""
    node = Node(**ring3_options).up()
    yield node
    _ring3_ending.begin(request.node.nodeid, node)


@pytest.fixture
def net(
    request: pytest.FixtureRequest, ring3_options: dict[str, Any], _ring3_ending: Ending
) -> Iterator[Net]:
    """A network to lay out, or that of the mark: ``@pytest.mark.ring3("nat-symmetric")``.

    It starts with the first program of one of its hosts, and goes down after the test.
    """
    options = dict(ring3_options)
    mark = request.node.get_closest_marker("ring3")
    if mark is not None:
        options.update(mark.kwargs)
    net = Net(**options)
    if mark is not None and mark.args:
        lay_out(net, mark.args[0])
    yield net
    if net.is_up:
        _ring3_ending.begin(request.node.nodeid, net.node)
