# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What several commands share: options that add up, and output that is as wide as it needs."""

import json
import subprocess
import sys

import pytest
import typer
from rich.table import Table
from typer.testing import CliRunner

from convoy.cli import bench_paflow
from convoy.cli.console import console
from convoy.cli.main import COMMANDS, GROUPS, app, main
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


def test_the_list_of_commands_says_what_their_help_says():
    commands = typer.main.get_command(app).commands
    for name, summary in ((n, text) for group in GROUPS.values() for n, text in group.items()):
        assert commands[name].help.startswith(summary[:-1]), name
    assert len(set(COMMANDS)) == len(COMMANDS)


def test_the_list_of_commands_imports_none():
    program = (
        "import sys\n"
        "sys.modules['yaml'] = None  # nor needs it what a command lacks\n"
        "from convoy.cli.main import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print(*(name for name in sys.modules if name.startswith('convoy.cli.')))\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=True
    )
    *listed, imported = shown.stdout.splitlines()
    assert all(f" {name} " in "".join(listed) for name in COMMANDS)
    assert set(imported.split()) == {
        f"convoy.cli.{own}" for own in ("main", "console", "examples", "result")
    }


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("chek", "No such command 'chek'. Did you mean 'check'?; convoy --help says what there is"),
        ("run", "run: Missing argument 'file'; convoy run --help says what there is"),
        ("sim run --json x --seed y", "sim run: --seed: 'y': must be a valid integer, "),
        ("why --json --count 0", "why: --count: '0': must be "),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_one_line(words, line, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["convoy", *words.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert err.startswith(f"convoy: {line}")
    assert err.count("\n") == 1
    if "--json" in words:
        assert json.loads(out)["errors"] == [err.removeprefix("convoy: ").rstrip("\n")]
    else:
        assert not out
