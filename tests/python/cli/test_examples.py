# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The end of each command's help: examples that its options are in, whole on a narrow terminal."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from convoy.cli.examples import EXAMPLES
from convoy.cli.main import COMMANDS, app

ROOT: Any = typer.main.get_command(app)


def leaves(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield words, command
    for name, one in (below or {}).items():
        if not one.hidden:
            yield from leaves(one, f"{words} {name}")


LEAVES = {
    words: command for name in COMMANDS for words, command in leaves(ROOT.commands[name], name)
}


def parsed(words: str, line: str) -> dict[str, Any]:
    """Return what a command line gives its command; raises for an option that there is not."""
    command = LEAVES[words]
    given = shlex.split(line.partition(" > ")[0], comments=True)
    assert given[: 1 + len(words.split())] == ["convoy", *words.split()]
    context = command.context_class(command)
    return command.make_parser(context).parse_args(given[1 + len(words.split()) :])[0]


def test_each_command_has_some():
    assert set(EXAMPLES) == set(LEAVES)
    assert all(EXAMPLES.values())


@pytest.mark.parametrize("words", EXAMPLES)
def test_they_have_options_that_there_are(words):
    for line in EXAMPLES[words]:
        of = "confirm" if line.startswith("convoy confirm") else words
        values = parsed(of, line)
        needed = {one.name for one in LEAVES[of].params if one.required}
        assert needed <= {name for name, value in values.items() if value}, line


def test_one_with_an_option_that_there_is_not_would_be_found():
    with pytest.raises(Exception, match="No such option: --nonsense"):
        parsed("check", "convoy check chain.yaml --nonsense")


@pytest.mark.parametrize("words", EXAMPLES)
def test_a_narrow_terminal_shows_them_whole(words, monkeypatch):
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    shown = CliRunner().invoke(app, [*words.split(), "--help"]).output
    shown = "\n".join(line.strip() for line in shown.splitlines())
    for example in EXAMPLES[words]:
        assert "\n".join(line.strip() for line in example.splitlines()) in shown
    assert "Exit codes: 0 done" in shown


def test_a_manual_page_has_them_on_lines_of_their_own(monkeypatch):
    monkeypatch.setattr(typer.core, "HAS_RICH", False)
    shown = CliRunner().invoke(app, ["apply", "--help"]).output
    assert "\n    convoy apply chain.yaml --confirm 30s\n    convoy confirm" in shown
