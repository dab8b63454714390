# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""YAML text to plain values, with the line of each.

Stricter than YAML 1.1 where it surprises: a key given twice is an error, keys are always
strings, `on`, `no`, `12:30:00` and dates are strings, and tags are refused. Untrusted text
is safe: depth, expansion of aliases and sizes are bounded.
"""

import contextlib
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from convoy.base.problem import DescriptorError, Loc, Problem, field, printable, shown

BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # between lines, as YAML 1.1 has them
SIZE_MAX_BYTES = 16 << 20
DEPTH_MAX = 32
VALUES_MAX = 1_000_000

# libyaml, where PyYAML was built with it: twenty times as fast. It refuses a key without a value
# before a comma ({a:, b: 1}), which PyYAML takes: what it refuses is read again by PyYAML.
PARSERS: list[Any] = [*([yaml.CSafeLoader] if yaml.__with_libyaml__ else []), yaml.SafeLoader]


# YAML 1.2's core schema, less octal: by a plain scalar's first character.
_PLAIN: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
for _kind, _pattern, _first in (
    ("null", r"(?:~|null|Null|NULL|)", [*"~nN", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", [*"tTfF"]),
    ("int", r"(?:[-+]?[0-9]+|0x[0-9a-fA-F]+)", [*"-+0123456789"]),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?",
        [*"-+.0123456789"],
    ),
):
    for _one in _first:
        _PLAIN.setdefault(_one, []).append((_kind, re.compile(_pattern)))


def _kind_of(event: Any) -> str:
    """Return what a node is: str, int ...; its tag, where it was written with one."""
    if event.tag is not None and event.tag != "!":
        return str(event.tag).removeprefix("tag:yaml.org,2002:")
    if isinstance(event, yaml.MappingStartEvent):
        return "map"
    if isinstance(event, yaml.SequenceStartEvent):
        return "seq"
    if event.tag is None and event.implicit[0]:  # plain, neither quoted nor tagged
        for kind, pattern in _PLAIN.get(event.value[:1], ()):
            if pattern.fullmatch(event.value):
                return kind
    return "str"


@dataclass(frozen=True)
class Text:
    """A parsed document: plain values, and where each one stands."""

    path: str
    data: Any
    lines: dict[Loc, int]

    @classmethod
    def of_data(cls, data: Mapping[str, Any], path: str) -> "Text":
        """Return values that no file has, as if each stood on its line 1."""
        lines: dict[Loc, int] = {}

        def plain(value: Any, loc: Loc) -> Any:
            lines[loc] = 1
            if isinstance(value, Mapping):
                return {str(key): plain(one, (*loc, str(key))) for key, one in value.items()}
            if isinstance(value, list | tuple):
                return [plain(one, (*loc, i)) for i, one in enumerate(value)]
            return value

        return cls(path, plain(data, ()), lines)

    def line(self, loc: Loc) -> int:
        """Return the line (from 1) of a place, or of the nearest place around it."""
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return self.lines.get(loc, 1)

    def error(self, problems: list[Problem]) -> DescriptorError:
        """Return the exception for these problems, in the order of their lines."""
        return DescriptorError(
            [
                _message(self.path, self.line(p.loc), p)
                for p in sorted(problems, key=lambda p: self.line(p.loc))
            ]
        )


def _message(path: str, line: int, problem: Problem) -> str:
    parts = [f"{path}:{line}"]
    parts += [field(problem.loc)] if problem.loc else []
    parts += [problem.value] if problem.value else []
    line_text = ": ".join([*parts, problem.what]) + (f"; {problem.fix}" if problem.fix else "")
    return printable(line_text)


class _EmptyError(Exception):
    """There is no document."""


class _WrongError(Exception):
    def __init__(self, line: int, problem: Problem) -> None:
        self.line, self.problem = line, problem


class _Build:
    """Parser events to values, as they come: nothing is nested deeper than the document is right.

    Counts values, so that aliases cannot multiply without end.
    """

    def __init__(self, parser: Any) -> None:
        self.lines: dict[Loc, int] = {}
        self._parser = parser
        self._values = 0
        self._anchors: dict[str, list[Any] | None] = {}  # a node's events; None: it has not ended
        self._recorded: list[list[Any]] = []  # of nodes with anchors that have not ended
        self._replayed: list[Iterator[Any]] = []  # of aliases, the innermost last

    def document(self) -> Any:
        """Return the value of the only document; None: there is nothing in the text."""
        self._parser.get_event()  # the stream begins
        if self._parser.check_event(yaml.StreamEndEvent):
            raise _EmptyError
        self._parser.get_event()  # the document begins
        value = self.value(self._next(), ())
        self._parser.get_event()  # it ends
        if not self._parser.check_event(yaml.StreamEndEvent):
            line = self._parser.get_event().start_mark.line + 1
            what = "not YAML: a second document"
            raise _WrongError(line, Problem((), what, "keep one of them in this file"))
        return value

    def _next(self) -> Any:
        event = next(self._replayed[-1]) if self._replayed else self._parser.get_event()
        for events in self._recorded:
            events.append(event)
        return event

    def value(self, event: Any, loc: Loc) -> Any:
        """Return the value of the node that begins with this event."""
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, loc, line)
        self.lines.setdefault(loc, line)
        self._values += 1
        if self._values > VALUES_MAX:
            raise _WrongError(
                line,
                Problem(
                    loc,
                    f"more than {VALUES_MAX} values once aliases are expanded",
                    "put long lists of routes or rules into a file of their own",
                ),
            )
        if len(loc) > DEPTH_MAX:
            raise _WrongError(
                line, Problem(loc, f"nested deeper than {DEPTH_MAX} levels", "flatten it")
            )
        if event.anchor is None or self._replayed:
            return self._node(event, loc, line)
        self._anchors[event.anchor] = None
        self._recorded.append(events := [event])
        value = self._node(event, loc, line)
        self._recorded.remove(events)
        self._anchors[event.anchor] = events
        return value

    def _alias(self, event: Any, loc: Loc, line: int) -> Any:
        """Return the anchored node's value once more, at another place."""
        if event.anchor not in self._anchors:
            what = f"not YAML: found undefined alias '{event.anchor}'"
            raise _WrongError(line, Problem((), what, CHECK))
        events = self._anchors[event.anchor]
        if events is None:
            raise _WrongError(line, Problem((), "an alias inside itself", "flatten it"))
        # What it stands for is recorded in its place, by whoever records.
        for recorded in self._recorded:
            recorded.pop()
        self._replayed.append(iter(events))
        value = self.value(self._next(), loc)
        self._replayed.pop()
        return value

    def _node(self, event: Any, loc: Loc, line: int) -> Any:
        kind = _kind_of(event)
        if kind not in ("map", "seq", "str", "null", "bool", "int", "float"):
            raise _WrongError(line, Problem(loc, f"YAML tag {shown(event.tag)}", "remove it"))
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(loc)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Any] = []
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                items.append(self.value(event, (*loc, len(items))))
            return items
        return self._scalar(event.value, kind, loc, line)

    def _mapping(self, loc: Loc) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            line = event.start_mark.line + 1
            key = self._key(event, loc, line)
            at = (*loc, key)
            if key in result:
                raise _WrongError(
                    line,
                    Problem(
                        at,
                        f"given twice; the first is on line {self.lines[at]}",
                        "remove or rename one",
                    ),
                )
            self.lines[at] = line
            result[key] = self.value(self._next(), at)
        return result

    def _key(self, event: Any, loc: Loc, line: int) -> str:
        if isinstance(event, yaml.AliasEvent):
            events = self._anchors.get(str(event.anchor)) or [event]
            event = events[0]
        if not isinstance(event, yaml.ScalarEvent):
            raise _WrongError(line, Problem(loc, "a key must be a plain word", "quote it"))
        if event.anchor is not None:
            self._anchors[event.anchor] = [event]
        return str(event.value)

    @staticmethod
    def _scalar(text: str, kind: str, loc: Loc, line: int) -> Hashable:
        match kind:
            case "str":
                return text
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                if len(text) > 20:
                    raise _WrongError(
                        line, Problem(loc, "a number too large for anything here", "", shown(text))
                    )
                return int(text, 16 if text.startswith("0x") else 10)
            case "float":
                return float(text)
        raise _WrongError(line, Problem(loc, "a list or mapping tagged as something else"))


CHECK = "check indentation, colons and quotes"


def _read(text: str, path: str) -> Text:
    for parser in PARSERS[:-1]:
        with contextlib.suppress(yaml.YAMLError):
            build = _Build(parser(text))
            return Text(path, build.document(), build.lines)
    build = _Build(PARSERS[-1](text))
    return Text(path, build.document(), build.lines)


def parse(content: bytes, path: str, begin: str = "give a value") -> Text:
    """Parse a document. path names it in errors; begin says what an empty one lacks.

    Raises DescriptorError.
    """

    def fail(line: int, what: str, fix: str = "", loc: Loc = ()) -> DescriptorError:
        return DescriptorError([_message(path, line, Problem(loc, what, fix))])

    if len(content) > SIZE_MAX_BYTES:
        raise fail(
            1,
            f"{len(content)} bytes, more than {SIZE_MAX_BYTES}",
            "put long lists of routes or rules into a file of their own",
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise fail(line, "not UTF-8 text", "save the file as UTF-8") from None
    try:
        return _read(text, path)
    except _EmptyError:
        raise fail(1, "empty", begin) from None
    except _WrongError as wrong:
        raise DescriptorError([_message(path, wrong.line, wrong.problem)]) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "not YAML"
        if mark and BREAK.split(text)[mark.line][mark.column : mark.column + 1] == "\t":
            raise fail(mark.line + 1, "not YAML: a tab", "indent with spaces") from None
        raise fail(mark.line + 1 if mark else 1, f"not YAML: {what}", CHECK) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise fail(line, "not YAML: a control character", "remove it") from None
    except (yaml.YAMLError, ValueError) as error:
        raise fail(1, f"not YAML: {shown(str(error))}", "check the file") from None


def read_bytes(path: Path) -> bytes:
    """Return what a file holds, one byte more than parse takes at most. Raises DescriptorError."""
    try:
        with path.open("rb") as file:
            return file.read(SIZE_MAX_BYTES + 1)
    except OSError as error:
        raise DescriptorError([f"{path}: {error.strerror}; give the path of a YAML file"]) from None
    except ValueError as error:
        raise DescriptorError([f"{shown(str(path))}: {error}"]) from None


def read(path: Path, begin: str = "give a value") -> Text:
    """Read and parse a file. Raises DescriptorError, also when it cannot be read."""
    return parse(read_bytes(path), str(path), begin)
