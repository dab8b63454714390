# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Standard output that is full, closed, or read by somebody who had enough."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from convoy.host.programs import need

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = "from convoy.cli.main import main; main()"
COMMANDS = (
    ["check", "examples/three-functions.yaml"],
    ["check", "no-such-file.yaml", "--json"],
    ["check", "--schema"],
    ["check", "--help"],
)
each = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)


def convoy(words: list[str], to: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a shell's redirection of its standard output."""
    line = f'exec "$0" -c "$1" "${{@:2}}" {to}'
    command = ["bash", "-c", line, sys.executable, PROGRAM, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@each
def test_a_full_disk_is_one_line(words):
    done = convoy(words, ">/dev/full")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "convoy: standard output: No space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "convoyd --help",
        "convoyd --functions",
        "convoyd --check PLAN",
        "convoy-gen --help",
        "convoy-gen --version",
    ],
)
def test_a_full_disk_is_one_line_of_the_programs_too(command, tmp_path):
    plan = tmp_path / "plan.json"
    if "PLAN" in command:
        plan.write_text(convoy(["check", "examples/nat64.yaml", "--plan"], "").stdout, "utf-8")
    program, *options = command.replace("PLAN", str(plan)).split()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [need(program), *options], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == f"{program}: standard output: No space left on device\n"


@each
def test_who_had_enough_is_told_nothing(words):
    read, write = os.pipe()
    os.close(read)
    try:
        command = [sys.executable, "-c", PROGRAM, *words]
        done = subprocess.run(
            command, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(write)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "pipe" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", ">&- <&- 2>&-"])
def test_closed_ones_are_as_if_they_led_nowhere(closed):
    for words, code in ((["check", "--schema"], 0), (["check", "no-such-file.yaml", "--json"], 2)):
        done = convoy(words, closed)
        assert done.returncode == code
        assert "Traceback" not in done.stderr
