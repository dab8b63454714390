# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The systemd unit: valid, with few rights; and what its lines do, as systemd would run them."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from convoy.host.node import Node
from convoy.host.programs import need

ROOT = Path(__file__).resolve().parents[3]
UNIT = ROOT / "packaging/systemd/convoy@.service"
MOST_EXPOSED = 20  # tenths, of 100
CHAIN = """
ports: {a: {memif: a.sock}, b: {memif: b.sock}}
functions: {limit: {ttl-limit: {min: 2}}}
chains: {all: {from: a, to: b, path: [limit]}}
memory: {mb: 64}
"""


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze: apt-get install systemd")
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, check=False, timeout=60
    )


def test_systemd_takes_the_unit(tmp_path):
    text = UNIT.read_text("utf-8").replace("/usr/bin/convoyd", str(need("convoyd")))
    (tmp_path / UNIT.name).write_text(text.replace("/usr/bin/convoy ", "/bin/true "))
    done = analyze("verify", "--man=no", str(tmp_path / "convoy@edge.service"))
    assert (done.returncode, done.stderr) == (0, "")


def test_it_has_few_rights():
    done = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(UNIT))
    assert done.returncode == 0, done.stdout


@pytest.fixture
def runtime_directory(monkeypatch):
    with tempfile.TemporaryDirectory() as folder:  # sockets' paths must be short
        monkeypatch.setenv("RUNTIME_DIRECTORY", folder)
        yield


@pytest.mark.usefixtures("runtime_directory")
def test_starting_and_reloading_it(tmp_path):
    unit = UNIT.read_text("utf-8")
    assert re.search(r"^ExecStartPre=.* check --plan .*RUNTIME_DIRECTORY/plan.json", unit, re.M)
    assert re.search(r"^ExecStart=.*convoyd --state \$\{STATE_DIRECTORY\} ", unit, re.M)
    assert re.search(r"^StateDirectory=convoy/%i$", unit, re.M)
    assert re.search(r"^ExecReload=/usr/bin/convoy apply --reload --pid \$MAINPID ", unit, re.M)
    descriptor = tmp_path / "edge.yaml"
    descriptor.write_text(CHAIN)

    def convoy(*words: object) -> str:
        done = subprocess.run(
            [sys.executable, "-c", "from convoy.cli.main import main; main()", *map(str, words)],
            capture_output=True, text=True, check=False, timeout=120, cwd=ROOT, env=os.environ,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    with Node(json.loads(convoy("check", "--plan", descriptor))) as node:
        pid = node.process.pid
        descriptor.write_text(CHAIN.replace("min: 2", "min: 3"))
        assert f"convoyd {pid} runs it now" in convoy("apply", "--reload", "--pid", pid, descriptor)
        node.stop()
