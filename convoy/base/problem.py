# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is wrong with a descriptor, said so that a person can fix it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from convoy.errors import InputError

Loc = tuple[str | int, ...]
"""Where in a document: keys and list indexes from the top."""

SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and its fix. The line is looked up when it is shown."""

    loc: Loc
    what: str
    fix: str = ""
    value: str = ""  # as the user wrote it, shortened; empty: the place says enough


class DescriptorError(InputError):
    """A descriptor is wrong: one line of text per problem."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = tuple(lines)


def printable(text: str) -> str:
    """Return a text that cannot steer a terminal: what does not print becomes a question mark."""
    return "".join(c if c.isprintable() else "?" for c in text)


def shown(value: object) -> str:
    """Return a value as a person would recognise it, on one line and not too long."""
    text = value if isinstance(value, str) else str(value)
    text = printable(text[: 4 * SHOWN_CHARACTERS])
    if len(text) > SHOWN_CHARACTERS:
        text = text[: SHOWN_CHARACTERS - 1] + "…"
    return f"'{text}'" if isinstance(value, str) else text


def field(loc: Loc) -> str:
    """Return a place as people write it: chains.web.path[0]."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + shown(part)[1:-1]
    return text


def known(noun: str, wanted: object, names: Iterable[str]) -> str:
    """Return the fix for a name that does not exist: the nearest one, and all of them."""
    names = sorted(names)
    if not names:
        return f"there are no {noun}"
    near = get_close_matches(str(wanted), names, n=1)
    listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return (f"did you mean '{near[0]}'? " if near else "") + f"{noun}: {listed}"
