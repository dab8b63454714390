# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Tutorials, followed without a hand on them: every command in its order, in one shell.

A page that is followed says how to begin in a block below `<!-- enter -->`; its other commands
begin with `$ `. What they print is compared without its numbers.
"""

import re
import shlex
import shutil
import subprocess

import pytest

from .pages import ROOT, name
from .sessions import ENTER, blocks, is_followed, run

FOLLOWED = [page for page in sorted((ROOT / "docs/tutorials").glob("*.md")) if is_followed(page)]
# Where a shell of a tutorial begins; ends what it left in the background.
BEGIN = (
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
)


def words(text: list[str]) -> list[str]:
    """Return lines without numbers: times, counters, addresses."""
    plain = (re.sub(r"[\d.,:]*\d\w*", "N", " ".join(line.split())) for line in text)
    return [line for line in plain if line and not line.startswith("note: memory: ")]


@pytest.mark.alone
@pytest.mark.parametrize("page", FOLLOWED, ids=name)
def test_a_tutorial_is_followed(page, tmp_path):
    if subprocess.run([*BEGIN, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no user namespaces here")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (begin,) = (block.text for block in blocks(page) if block.note == ENTER)
    assert set(shlex.split(begin[0])) <= {*BEGIN, "bash"}
    steps = [
        step
        for block in blocks(page)
        if block.kind == "" and any(line.startswith("$ ") for line in block.text)
        for step in block.session()
    ]
    results = run([command for command, _ in steps], tmp_path, BEGIN)
    assert len(results) == len(steps), results[-1]
    for (command, shown), (status, printed) in zip(steps, results, strict=True):
        assert status == 0, f"{command}\n" + "\n".join(printed)
        assert words(printed) == words(shown or []), command


def test_tutorials_are_followed():
    """One that loses its mark is noticed."""
    assert {page.stem for page in FOLLOWED} >= {
        "home-gateway", "service-edge-open-vswitch", "encrypted-site-to-site",
    }  # fmt: skip
