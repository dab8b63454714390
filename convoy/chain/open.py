# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A plan from a file: made from a descriptor, or written by an earlier `convoy check --plan`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.base.problem import DescriptorError
from convoy.base.yaml_text import SIZE_MAX_BYTES, parse, read_bytes
from convoy.chain.load import BEGIN, Loaded, check_text
from convoy.chain.machine import Machine
from convoy.chain.plan import Plan, make_plan
from convoy.chain.split import Split, is_split, split


@dataclass(frozen=True)
class Opened:
    """A file that can be run."""

    plan: Plan  # of the node
    loaded: Loaded | None  # None: the file is a plan itself, which only convoyd can check
    split: Split | None = None  # the node and other parts; None: it is all there is


def open_file(
    path: Path,
    machine: Machine,
    running: dict[str, Any] | None = None,
    folder: Path | None = None,
) -> Opened:
    """Read a descriptor or a plan. Raises DescriptorError.

    running: the plan of a node that is to run it; its workers keep what they poll.
    folder: of the sockets between parts, where there may be other parts than the node.
    """
    data = read_bytes(path)
    if data.lstrip()[:1] == b"{" and b'"convoy.plan/' in data[:4096]:
        if len(data) > SIZE_MAX_BYTES:
            data = path.read_bytes()  # a program wrote it: as long as it likes
        return Opened(_plan(data, path), None)
    loaded = check_text(parse(data, str(path), BEGIN), path.parent.absolute(), machine)
    if folder is not None and is_split(loaded.descriptor):
        parts = split(loaded, machine, folder)
        return Opened(parts.node, loaded, parts)
    return Opened(make_plan(loaded, machine, running), loaded)


def _plan(data: bytes, path: Path) -> Plan:
    again = "make it again: convoy check DESCRIPTOR --plan"
    try:
        plan = json.loads(data)
    except json.JSONDecodeError as error:
        raise DescriptorError([f"{path}:{error.lineno}: not JSON: {error.msg}; {again}"]) from None
    except (ValueError, RecursionError):
        raise DescriptorError([f"{path}: not JSON in UTF-8; {again}"]) from None
    return Plan(plan)
