# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""tools/check-words: words that the field's terms have replaced do not come back."""

import runpy
import subprocess
import sys

import pytest

from convoy.host.programs import CHECKOUT

mistakes = runpy.run_path(str(CHECKOUT / "tools/check-words"))["mistakes"]


def test_the_tree_has_none():
    done = subprocess.run(
        [sys.executable, CHECKOUT / "tools/check-words"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("path", "text", "word"),
    [
        ("dataplane/a.c", "enum cv_hop_drop why;", "cv_hop_drop"),
        ("dataplane/a.h", "// Closes the open frame.", "open frame"),
        ("docs/a.md", "They travel together.", "travel together"),
        ("nf/a.c", "// Judges a packet.", "Judges"),
        ("daemon/a.c", 'set(object, "turns", 1);', '"turns"'),
    ],
)
def test_a_word_is_refused(path: str, text: str, word: str):
    (line,) = mistakes(path, f"\n{text}\n")
    assert line.startswith(f'{path}:2: "{word}"')


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nf/a.c", "// The hop limit is less by one; a next hop has no route."),
        ("dataplane/a.c", "// One after the other, in turn; a group of sockets."),
        ("docs/a.md", "Functions are judged by their drops."),
        ("convoy/a.py", "judge(trial)"),
    ],
)
def test_ordinary_words_pass(path: str, text: str):
    assert not mistakes(path, text)
