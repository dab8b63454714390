# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Commands that pages show print what the pages say, or a comment there says why nobody runs them.

A page that shows something else than what came is mended, not this test.
"""

import shutil

import pytest
import typer

from convoy.cli import main

from .pages import PAGES, ROOT, name
from .sessions import Block, blocks, differences, is_followed, plain, run

VERBS = set(getattr(typer.main.get_command(main.app), "commands", {}))
# For users: measurements and decisions say what was done once.
FOR_USERS = [
    page
    for page in PAGES
    if page.parent in (ROOT, ROOT / "docs", ROOT / "docs/tutorials")
    and (page.parent != ROOT or page.name == "README.md")
    and not is_followed(page)
]
SHOWN = {page: [block for block in blocks(page) if block.has_commands(VERBS)] for page in FOR_USERS}
RUN = [page for page in FOR_USERS if any(block.why_not is None for block in SHOWN[page])]


@pytest.mark.parametrize("page", RUN, ids=name)
def test_commands_print_what_is_shown(page, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for block in blocks(page):
        if block.file:
            (tmp_path / block.file).write_text("\n".join(block.text) + "\n", "utf-8")
        if block not in SHOWN[page] or block.why_not:
            continue
        results = run([command for command, _ in block.session()], tmp_path)
        assert len(results) == len(block.session()), block
        for (command, shown), (status, printed) in zip(block.session(), results, strict=True):
            refused = any(line.startswith("convoy: ") for line in shown or [])
            assert status == (2 if refused else 0), f"{block}: {command}\n" + "\n".join(printed)
            if shown is not None:
                assert not differences(shown, printed), f"{block}: {command}"


def test_a_note_is_on_a_block_that_has_commands():
    for page in FOR_USERS:
        for block in blocks(page):
            if block.why_not:
                assert block in SHOWN[page], block


def test_pages_run_what_they_show():
    """The blocks that are run: a page that loses its commands, or a fence, is noticed."""
    assert {name(page) for page in RUN} >= {"README.md", "docs/descriptor.md", "docs/running.md"}


def test_a_change_of_words_is_a_difference():
    shown = ["rtr   router   781  382666   53.8  not_ip 3", "core 1"]
    assert not differences(shown, ["rtr  router  781  382666  9.5  not_ip 3", "", "core 7"])
    assert differences(shown, ["rtr  router  781  382666  9.5  no_ip 3", "core 1"])
    assert differences(shown, ["rtr  router  780  382666  9.5  not_ip 3", "core 1"])
    assert differences(shown, shown[:1])
    assert differences(shown[:1], shown)
    assert plain("     0     1  13.2 %           152.6 us") == "0 N N % N us"


def test_blocks_are_read(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- file: a.yaml -->\n```yaml\na: 1\n```\n\n<!-- not run: hours -->\n```\nmake x\n```\n"
        "```\n$ echo one; exit 3\none\n```\n",
        "utf-8",
    )
    first, second, third = blocks(page)
    assert (first.file, first.has_commands(VERBS)) == ("a.yaml", False)
    assert (second.why_not, second.has_commands(VERBS)) == ("hours", True)
    assert (third.why_not, third.session()) == (None, [("echo one; exit 3", ["one"])])
    assert isinstance(third, Block)
