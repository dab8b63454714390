# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Each attack meets every target; one that survived meets the next attack too."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .targets import TARGETS, Target


class Pool:
    """The target that runs: starting one takes longer than most attacks."""

    def __init__(self) -> None:
        self._name = ""
        self._running: Target | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def get(self, name: str) -> Target:
        """Return a target that is well; start it unless it runs, and end the one before."""
        if self._running is None or name != self._name:
            self.drop()
            # Not pytest's: a socket's path has 107 bytes at most.
            self._folder = tempfile.TemporaryDirectory(prefix="hostile-")
            self._name, self._running = name, TARGETS[name](Path(self._folder.name))
            self._running.until_it_carries()
        return self._running

    def drop(self) -> None:
        """Stop what runs."""
        target, self._running = self._running, None
        folder, self._folder = self._folder, None
        if target is not None:
            target.close()
        if folder is not None:
            folder.cleanup()


@pytest.fixture(scope="package")  # what polls for ever is gone when other tests begin
def pool() -> Iterator[Pool]:
    targets = Pool()
    yield targets
    targets.drop()


@pytest.fixture(scope="session", params=TARGETS)
def kind(request: pytest.FixtureRequest) -> str:
    """Return a target's name. pytest does all tests of one before it goes on to the next."""
    return str(request.param)


@pytest.fixture
def target(kind: str, pool: Pool) -> Iterator[Target]:
    """Return a program to attack. A test that marks `kind` says which, others meet all."""
    one = pool.get(kind)
    yield one
    try:
        one.calm()
        one.assert_well(16)
    except BaseException:
        pool.drop()
        raise
