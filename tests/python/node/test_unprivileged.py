# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Without privileges and without hugepages: an ordinary user runs a chain."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from .conftest import ROOT

NOBODY = 65534
COMMAND = [sys.executable, "-c", "from convoy.cli.main import main; main()"]


def as_nobody(folder, *arguments, **variables):
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    return subprocess.run(
        [
            "setpriv",
            f"--reuid={NOBODY}",
            f"--regid={NOBODY}",
            "--clear-groups",
            *COMMAND,
            *arguments,
        ],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def folder():
    """A folder that another user may enter and write (pytest's own are private)."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user; as an ordinary user all tests show this")
    with tempfile.TemporaryDirectory(prefix="convoy-nobody-") as name:
        path = Path(name)
        path.chmod(0o777)
        if as_nobody(path, "--version").returncode != 0:
            pytest.skip("another user cannot read this checkout: chmod -R o+rX, its parents too")
        yield path


@pytest.mark.parametrize("with_runtime_dir", [True, False])
def test_a_chain_runs(folder, with_runtime_dir):
    variables = {"XDG_RUNTIME_DIR": str(folder)} if with_runtime_dir else {"TMPDIR": str(folder)}
    example = str(ROOT / "examples/bridge.yaml")
    done = as_nobody(folder, "run", "--json", "--duration", "0.2", example, **variables)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hugepages"] is False
    assert "without hugepages" in done.stderr
    sockets = folder / ("convoy" if with_runtime_dir else f"convoy-{NOBODY}")
    assert sockets.is_dir()
    assert sockets.stat().st_mode & 0o777 == 0o700
    assert sockets.stat().st_uid == NOBODY


def test_what_needs_rights_says_so(folder):
    text = "ports: {a: {af_packet: lo}}\nchains: {w: {from: a, to: a}}\n"
    (folder / "lo.yaml").write_text(text)
    done = as_nobody(folder, "run", "lo.yaml", XDG_RUNTIME_DIR=str(folder))
    assert done.returncode in (1, 2)
    assert "cap_net_raw" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
