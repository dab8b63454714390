# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoyd --check: what only the node can tell (function tables, capture files, devices)."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.client import Difference
from convoy.errors import ConvoyError, InputError
from convoy.host.command import CommandError, run
from convoy.host.folders import make_for_sockets

CHECK_DEADLINE_S = 120.0


@dataclass(frozen=True)
class NodeFlows:
    """Flows of stateful functions that share a look-up, as convoyd would make room for them."""

    functions: str  # names, joined by +
    max: int  # IPv4
    max_ipv6: int
    bytes: int


def check_plan(
    convoyd: Path, plan: dict[str, Any], file: Path | None = None
) -> tuple[NodeFlows, ...]:
    """Let convoyd check a plan; nothing is started. Raises InputError with convoyd's words.

    Returns what its flows will take.
    file: where the plan was read from, if a person could have changed it: convoyd reads it itself.
    """
    checked = _check(convoyd, plan, file)
    return tuple(
        NodeFlows(name, each["max"], each["max_ipv6"], each["bytes"])
        for name, each in checked["flows"].items()
    )


def check_differences(
    convoyd: Path, plan: Mapping[str, Any], running: Mapping[str, Any]
) -> list[Difference]:
    """Let convoyd check a plan beside the one that a node runs; return what differs.

    Raises InputError with convoyd's words.
    """
    with tempfile.NamedTemporaryFile("w") as text:
        json.dump(running, text)
        text.flush()
        checked = _check(convoyd, plan, None, "--instead-of", text.name)
    return [Difference(**one) for one in checked["differences"]]


def _check(
    convoyd: Path, plan: Mapping[str, Any], file: Path | None, *options: str
) -> dict[str, Any]:
    make_for_sockets(plan)
    command: list[str | Path] = [convoyd, "--check", *options, "-" if file is None else file]
    try:
        ended = run(command, CHECK_DEADLINE_S, json.dumps(plan) if file is None else "")
    except CommandError as error:
        raise ConvoyError(f"{error}; build it again: make build") from None
    if ended.exit_code == 0:
        return dict(json.loads(ended.stdout))
    message = about_plan(last_words(ended.stderr)) or f"convoyd --check: {ended.lines()[-1]}"
    raise (InputError if ended.exit_code == 2 else ConvoyError)(message)


def last_words(stderr: str) -> str:
    """Return what convoyd said last about why it ended."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("convoyd:")]
    return (own or lines or [""])[-1]


def about_plan(words: str, name: str = "the plan") -> str:
    """Return convoyd's words with a better name for the plan that it read from us."""
    return words.replace("convoyd: stdin: ", f"convoyd: {name}: ", 1)
