# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""YAML text to plain values, with the line of each.

Stricter than YAML 1.1 where it surprises: a key given twice is an error, keys are always
strings, `on`, `no`, `12:30:00` and dates are strings, and tags are refused. Text from a stranger
is safe: depth, expansion of aliases and sizes are bounded.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from convoy.chain.problem import DescriptorError, Loc, Problem, field, printable, shown

SIZE_MAX_BYTES = 16 << 20
DEPTH_MAX = 32
VALUES_MAX = 1_000_000


class _Loader(yaml.SafeLoader):
    """Resolves plain scalars as YAML 1.2's core schema does, less octal."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 -- PyYAML's own interface


def _resolvers() -> None:
    import re

    for name, pattern, first in (
        ("null", r"^(?:~|null|Null|NULL|)$", [*"~nN", ""]),
        ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
        ("int", r"^(?:[-+]?[0-9]+|0x[0-9a-fA-F]+)$", list("-+0123456789")),
        (
            "float",
            r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$",
            list("-+.0123456789"),
        ),
    ):
        _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(pattern), first)


_resolvers()


@dataclass(frozen=True)
class Text:
    """A parsed document: plain values, and where each one stands."""

    path: str
    data: Any
    lines: dict[Loc, int]

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


class _WrongError(Exception):
    def __init__(self, line: int, problem: Problem) -> None:
        self.line, self.problem = line, problem


class _Build:
    """Composed nodes to values; counts, so that aliases cannot multiply without end."""

    def __init__(self) -> None:
        self.lines: dict[Loc, int] = {}
        self.values = 0

    def value(self, node: yaml.Node, loc: Loc) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(loc, line)
        self.values += 1
        if self.values > VALUES_MAX:
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
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if kind not in ("map", "seq", "str", "null", "bool", "int", "float"):
            raise _WrongError(line, Problem(loc, f"YAML tag {shown(node.tag)}", "remove it"))
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, loc)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*loc, i)) for i, item in enumerate(node.value)]
        return self.scalar(node, loc, line)

    def mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, line = key_node.value, key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise _WrongError(line, Problem(loc, "a key must be a plain word", "quote it"))
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
            result[key] = self.value(value_node, at)
        return result

    @staticmethod
    def scalar(node: yaml.Node, loc: Loc, line: int) -> Hashable:
        text: str = node.value
        match node.tag.removeprefix("tag:yaml.org,2002:"):
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


BEGIN = "begin with ports: (see examples/)"


def parse(content: bytes, path: str, begin: str = BEGIN) -> Text:
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
        node = yaml.compose(text, _Loader)
        if node is None:
            raise fail(1, "empty", begin)
        build = _Build()
        return Text(path, build.value(node, ()), build.lines)
    except _WrongError as wrong:
        raise DescriptorError([_message(path, wrong.line, wrong.problem)]) from None
    except RecursionError:
        raise fail(1, "nested too deeply, or an alias inside itself", "flatten it") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "not YAML"
        fix = "indent with spaces" if "\\t" in what else "check indentation, colons and quotes"
        raise fail(mark.line + 1 if mark else 1, f"not YAML: {what}", fix) from None
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


def read(path: Path, begin: str = BEGIN) -> Text:
    """Read and parse a file. Raises DescriptorError, also when it cannot be read."""
    return parse(read_bytes(path), str(path), begin)
