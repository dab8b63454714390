# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""YAML to values, as the parser's events come: anchors, tags, lines, and what never was text."""

from pathlib import Path

import pytest

from convoy.base.problem import DescriptorError
from convoy.base.yaml_text import Text, parse
from convoy.chain.load import check_text
from convoy.chain.machine import Machine

MACHINE = Machine(dict.fromkeys(range(8), 0), Path("/run/convoy"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: 0x10\nc: -2\nd: 1.5\ne: 1e3\n",
         {"a": 1, "b": 16, "c": -2, "d": 1.5, "e": 1000.0}),
        ("a: true\nb: no\nc: '1'\nd: ~\ne:\n",
         {"a": True, "b": "no", "c": "1", "d": None, "e": None}),
        ("a: 12:30:00\nb: 2026-01-01\nc: 010\n", {"a": "12:30:00", "b": "2026-01-01", "c": 10}),
        ("a: &x {p: [1, 2]}\nb: *x\nc: [*x, *x]\n",
         {"a": {"p": [1, 2]}, "b": {"p": [1, 2]}, "c": [{"p": [1, 2]}, {"p": [1, 2]}]}),
        ("a: &x [&y 1, 2]\nb: &z [*x, *y]\nc: *z\n",
         {"a": [1, 2], "b": [[1, 2], 1], "c": [[1, 2], 1]}),
        ("&k a: 1\nb: *k\n", {"a": 1, "b": "a"}),
        ("a: !!str 1\nb: ! 2\n", {"a": "1", "b": "2"}),
        ("- 1\n- [2, {a: }]\n", [1, [2, {"a": None}]]),
        ("a: {b:, c: 1}\n", {"a": {"b": None, "c": 1}}),
    ],
)  # fmt: skip
def test_values(text, value):
    assert parse(text.encode(), "x").data == value


def test_each_value_has_its_line_and_an_alias_those_of_its_anchor():
    lines = parse(b"a: &x\n  p: 1\n\nb:\n  - *x\n  - q\n", "x").lines
    assert (lines["a",], lines["a", "p"], lines["b",]) == (1, 2, 4)
    assert (lines["b", 0, "p"], lines["b", 1]) == (2, 6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\n---\nb: 2\n", "x:2: not YAML: a second document; keep one of them"),
        ("a: &x {b: *x}\n", "x:1: an alias inside itself; flatten it"),
        ("a: !!python/none 1\n", "x:1: a: YAML tag '"),
        ("? [a]\n: 1\n", "x:1: a key must be a plain word; quote it"),
        ("a: !!map 1\n", "x:1: a: a list or mapping tagged as something else"),
        ("", "x:1: empty; give a value"),
        ("# nothing\n", "x:1: empty; give a value"),
        ("b0: &b0 [1, 2]\n" + "".join(f"b{i + 1}: &b{i + 1} [*b{i}, *b{i}]\n" for i in range(40)),
         "more than 1000000 values once aliases are expanded"),
    ],
)  # fmt: skip
def test_what_is_refused(text, words):
    with pytest.raises(DescriptorError) as error:
        parse(text.encode(), "x")
    assert words in str(error.value)


def test_a_hundred_thousand_rules_are_read_with_their_lines():
    rules = "".join(f"- deny: {{proto: udp, dport: {1 + i % 60000}}}\n" for i in range(100_000))
    text = parse(f"a: 1\nrules:\n{rules}".encode(), "x")
    assert len(text.data["rules"]) == 100_000
    assert text.lines["rules", 99_999, "deny", "dport"] == 100_002


def test_values_of_a_program_are_checked_as_a_file_is():
    data = {
        "ports": {"a": {"null": None}, "b": {"null": None}},
        "chains": {"w": {"from": "a", "to": "c"}},
        "workers": {"cores": (1,)},
    }
    with pytest.raises(DescriptorError, match=r"benchmark:1: chains.w.to: 'c': "):
        check_text(Text.of_data(data, "benchmark"), Path("/nowhere"), MACHINE)
    data["chains"]["w"]["to"] = "b"
    result = check_text(Text.of_data(data, "benchmark"), Path("/nowhere"), MACHINE)
    assert result.descriptor.workers.cores == [1]
