# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""make audit: what it says of what pip-audit says, which is a stub here."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FINE = {"name": "rich", "version": "15.0.0", "vulns": []}
BAD = {"name": "jinja2", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
SKIPPED = {"name": "typer", "skip_reason": "Dependency not found on PyPI"}


def audit(folder: Path, said: str, code: int, locks: int = 1) -> subprocess.CompletedProcess[str]:
    (folder / "said").write_text(said)
    stub = folder / "pip-audit"
    stub.write_text(f"#!/bin/sh\ncat {folder}/said\necho 'ERROR: no route' >&2\nexit {code}\n")
    stub.chmod(0o755)
    return subprocess.run(
        [sys.executable, ROOT / "tools/audit", stub, *["x.lock"] * locks],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("packages", "code", "words"),
    [
        ([FINE], 0, "x.lock: 1 packages, no known vulnerability"),
        ([FINE, BAD], 1, "x.lock: jinja2 1: PYSEC-1; fixed: 2"),
        ([FINE, SKIPPED], 2, "1 of 2 packages not audited, typer for one"),
        ([BAD, SKIPPED], 1, "PYSEC-1"),
        ([], 2, ""),
    ],
)
def test_what_it_says(tmp_path, packages, code, words):
    done = audit(tmp_path, json.dumps({"dependencies": packages}), 1 if BAD in packages else 0)
    assert done.returncode == code
    assert words in done.stdout + done.stderr


def test_offline_nothing_is_known(tmp_path):
    done = audit(tmp_path, "", 1, locks=2)
    assert done.returncode == 2
    assert done.stderr == "audit: x.lock: not audited: ERROR: no route\n" * 2


@pytest.mark.parametrize("lock", sorted(ROOT.glob("requirements*.lock")), ids=lambda one: one.name)
def test_each_locked_package_has_one_version_and_hashes(lock):
    text = re.sub(r"^\s*#.*\n", "", lock.read_text("utf-8"), flags=re.MULTILINE)
    for entry in text.replace("\\\n", " ").splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==\S+( +--hash=sha256:[0-9a-f]{64})+ *", entry), entry
