# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a node says against a plan, behind the line of the descriptor that it is about."""

import re
from pathlib import Path
from typing import Any

from convoy.base.problem import Loc, printable
from convoy.chain.functions import function_type
from convoy.chain.load import Loaded
from convoy.chain.open import Opened
from convoy.errors import ConvoyError, InputError

# Where a descriptor says what a plan has under another key.
_PLACES: dict[str, Loc] = {
    "convoys": ("ports",),
    "next_hops": ("next-hops",),
    "stages": ("chains",),
    "run_as": ("run-as",),
}
_OF_PLAN = re.compile(r"(?:convoyd: )?(?:the )?plan(?:: |\.)")
_OF_PORT = re.compile(r'(?:convoyd: )?port "([^"]+)": ')  # what cannot be opened now
_INDEXED = re.compile(r"(ports|functions|chains|next_hops)\[(\d+)\]")


def _named(words: str, plan: dict[str, Any]) -> tuple[str, Loc]:
    """Return words that call a member of a list by its name, and where a descriptor has that."""
    port = _OF_PORT.match(words)
    if port is not None:
        return f"ports.{port[1]}.{words[port.end() :]}", ("ports", port[1])
    match = _INDEXED.match(words)
    if match is None or int(match[2]) >= len(plan.get(match[1], [])):
        return words, ()
    loc = (match[1].replace("_", "-"), plan[match[1]][int(match[2])]["name"])
    return ".".join(loc) + words[match.end() :], loc


def _place(words: str, loaded: Loaded) -> Loc:
    functions = loaded.descriptor.functions
    key = words.partition(":")[0]
    if key in functions:
        return ("functions", key, function_type(functions[key]).replace("_", "-"))
    return _PLACES.get(key, tuple(key.split(".")))


def is_about_plan(error: ConvoyError) -> bool:
    """Return whether a node's error is about its plan: what it says, or a port that it names."""
    return isinstance(error, InputError) or _OF_PORT.match(str(error)) is not None


def with_line(words: str, file: Path, opened: Opened) -> str:
    """Return a node's words behind the file, and the line where a descriptor has one.

    What is about an option stays as it is.
    """
    if words.startswith("convoyd: --"):
        return words
    if opened.loaded is None:
        return words if words.startswith("convoyd: ") else f"{file}: {words}"
    own = _OF_PLAN.sub("", words, count=1).removeprefix("convoyd: ")
    named, loc = _named(own, opened.plan.data)
    line = opened.loaded.text.line(loc or _place(own, opened.loaded))
    return f"{printable(str(file))}:{line}: {named}"
