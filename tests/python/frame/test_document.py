# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""docs/convoy-frame.md says what the code does."""

import re
import subprocess
import sys

from convoy.frame import Reason

from .conftest import ROOT

PAGE = (ROOT / "docs/convoy-frame.md").read_text()


def test_the_worked_example_is_current():
    command = [sys.executable, ROOT / "tools/frame-docs", "--print"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    assert made.stdout == PAGE, "run tools/frame-docs"


def test_the_bytes_of_the_example_are_a_golden_frame():
    example = PAGE.split("## A worked example")[1].split("```")[1]
    result = "".join(re.findall(r"^ *\d+  ((?:[0-9a-f]{2} ?)+)", example, re.MULTILINE))
    vectors = (ROOT / "tests/vectors/convoy-frame.json").read_text()
    assert f'"{result.replace(" ", "")}"' in vectors


def test_the_table_of_checks_names_every_reason():
    table = PAGE.split("## Receiving")[1].split("<!--")[0]
    named = set(re.findall(r"`([a-z_]+)`", table))
    assert named == set(Reason) - {Reason.OK}
    header = (ROOT / "dataplane/convoy/walk.c").read_text()
    assert set(re.findall(r'\] = "([a-z_]+)"', header)) == set(Reason)
