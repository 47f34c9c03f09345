# SPDX-License-Identifier: GPL-2.0
"""Fixtures of pytest: a node, or a network of hosts, for each test, without privilege.

Installing this package makes them known to pytest. Each test has its own, with names that no other process has, so
that ``pytest -n 8`` (pytest-xdist) needs nothing further.
"""

from __future__ import annotations

from typing import Any, Iterator

import pytest

from .net import Net
from .node import Node
from .presets import lay_out


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ring3(preset, **options): the fixture `net` is a network of this name")


@pytest.fixture
def ring3_options() -> dict[str, Any]:
    """Options of the test's :class:`ring3.Node`; redefine this fixture to change them for a module or a project."""
    return {"mem": "256M"}



@pytest.fixture
def node(ring3_options: dict[str, Any]) -> Iterator[Node]:
    """A node that is up. It goes down, with its programs, after the test."""
    with Node(**ring3_options) as node:
        yield node


@pytest.fixture
def net(request: pytest.FixtureRequest, ring3_options: dict[str, Any]) -> Iterator[Net]:
    """A network to lay out, or that of the mark: ``@pytest.mark.ring3("nat-symmetric")``.

    It starts with the first program of one of its hosts, and goes down after the test.
    """
    options = dict(ring3_options)
    mark = request.node.get_closest_marker("ring3")
    if mark is not None:
        options.update(mark.kwargs)
    with Net(**options) as net:
        if mark is not None and mark.args:
            lay_out(net, mark.args[0])
        yield net
