# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Ports of the real node."""

from pathlib import Path

import pytest

from convoy.host.programs import find


@pytest.fixture(scope="session", autouse=True)
def convoyd() -> Path:
    path = find("convoyd")
    if path is None:
        pytest.skip("convoyd is not built: make build")
    return path
