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
    assert re.search(r"^ExecStartPre=.*RUNTIME_DIRECTORY/plan;.* check --plan ", unit, re.M)
    assert re.search(
        r"^ExecStart=.*convoyd --state \$\{STATE_DIRECTORY\} --keep-flows ", unit, re.M
    )
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


def shell_of(key: str) -> list[str]:
    """Return the command of a line that systemd gives to a shell."""
    line = re.search(rf"^{key}=/bin/sh -c '(.*)'(?: sh (\S+))?$", UNIT.read_text("utf-8"), re.M)
    assert line is not None
    return ["/bin/sh", "-c", line[1], "sh"]


@pytest.mark.usefixtures("runtime_directory")
def test_the_descriptor_is_read_but_after_a_crash(tmp_path):
    descriptor, plan = tmp_path / "edge.yaml", Path(os.environ["RUNTIME_DIRECTORY"]) / "plan.json"
    descriptor.write_text(CHAIN)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "convoy").write_text("#!/bin/sh\necho read >>$READ; cat $3; test ! -e $FAILS\n")
    (programs / "convoy").chmod(0o755)
    read = tmp_path / "read"
    environment = os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "READ": str(read),
        "FAILS": str(tmp_path / "fails"),
    }

    def start() -> int:
        command = [*shell_of("ExecStartPre"), str(descriptor)]
        return subprocess.run(command, env=environment, check=False, timeout=60).returncode

    def stop(result: str) -> None:
        environment["SERVICE_RESULT"] = result
        subprocess.run(shell_of("ExecStopPost"), env=environment, check=True, timeout=60)

    def times() -> int:
        return len(read.read_text().splitlines())

    assert (start(), times(), plan.read_text()) == (0, 1, CHAIN)
    for result, expected in (("signal", 1), ("watchdog", 1), ("success", 2), ("exit-code", 3)):
        stop(result)
        assert (start(), times()) == (0, expected), result
    stop("core-dump")
    os.utime(descriptor, ns=(plan.stat().st_mtime_ns + 1, plan.stat().st_mtime_ns + 1))
    assert (start(), times()) == (0, 4)  # it was edited since
    stop("success")
    (tmp_path / "fails").touch()
    assert (start(), plan.exists()) == (1, False)
