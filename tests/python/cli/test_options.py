# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What several commands share: options that add up, and output that is as wide as it needs."""

import pytest
from rich.table import Table
from typer.testing import CliRunner

from convoy.cli import bench_paflow
from convoy.cli.console import console
from convoy.cli.main import app
from convoy.cli.options import split
from convoy.errors import InputError


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (None, None), ([], None), (["a"], ("a",)), (["a,b", "c"], ("a", "b", "c")),
        (["a", "b"], ("a", "b")), (["a, b", "a"], ("a", "b")),
    ],
)  # fmt: skip
def test_an_option_with_several_words_adds_up(texts, words):
    assert split("--only", texts) == words


def test_an_empty_word_is_refused():
    with pytest.raises(InputError, match="--only: 'a,, b': give names with commas"):
        split("--only", ["a,,", "b"])


def test_every_only_of_a_command_line_is_measured(monkeypatch):
    plans = []

    def wanted(names, devices, *more):
        plans.append((tuple(names), devices))
        raise InputError("enough")

    monkeypatch.setattr(bench_paflow.session, "wanted", wanted)
    words = "bench paflow --only ratio --only drops,latency --devices convoy --devices testpmd"
    CliRunner().invoke(app, words.split())
    expected = ("paflow-ratio", "paflow-drops", "paflow-latency")
    assert plans == [(expected, ("convoy", "testpmd"))]


def test_what_is_no_terminal_gets_each_row_on_one_line(capsys, monkeypatch):
    table = Table("a long heading " * 5, "another one " * 5)
    table.add_row("word " * 30, "value " * 30)
    monkeypatch.delenv("COLUMNS", raising=False)
    console().print(table)
    lines = capsys.readouterr().out.splitlines()
    assert sum("word" in line or "value" in line for line in lines) == 1
    assert max(map(len, lines)) < 600  # no wider than it needs
    monkeypatch.setenv("COLUMNS", "80")
    console().print(table)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
