# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""tests/fuzz/run.sh, over stubs of fuzz targets: time is spread, findings are named."""

import os
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / "fuzz/run.sh"
STUB = """#!/bin/sh
for word; do
	case $word in
	-max_total_time=*) seconds=${word#*=} ;;
	-artifact_prefix=*) prefix=${word#*=} ;;
	esac
	corpus=$word
done
echo "$seconds" >"$corpus/seconds"
echo '#80	DONE   cov: 321 ft: 400 corp: 7/9b exec/s: 40 rss: 30Mb'
echo 'stat::number_of_executed_units: 80'
echo 'stat::average_exec_per_sec:     40'
"""
FINDS = """echo 'ERROR: AddressSanitizer: heap-buffer-overflow'
echo "Test unit written to ${prefix}crash-12ab"
exit 77
"""


@pytest.fixture
def build(tmp_path: Path) -> Path:
    folder = tmp_path / "build"
    (folder / "tests/fuzz").mkdir(parents=True)
    for name in ("good", "other"):
        add(folder, name, STUB)
    return folder


def add(build: Path, name: str, text: str) -> None:
    program = build / f"tests/fuzz/fuzz_{name}"
    program.write_text(text)
    program.chmod(0o755)


def run(build: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [RUN, build], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "FUZZ_CORPUS": str(build / "corpora"), **environment},
    )  # fmt: skip


def test_hours_are_spread_over_all_targets(build: Path):
    done = run(build, FUZZ_HOURS="0.5")
    assert done.returncode == 0, done.stderr
    assert "2 targets, 1800 s each" in done.stdout
    assert (build / "corpora/good/seconds").read_text() == "1800\n"
    for name in ("good", "other"):
        line = next(line for line in done.stdout.splitlines() if line.startswith(f"fuzz {name}"))
        assert line.split()[2:] == ["80", "runs", "40/s", "corpus", "1", "edges", "321", "ok"]


def test_a_finding_ends_with_its_input(build: Path):
    add(build, "bad", STUB + FINDS)
    done = run(build)
    assert done.returncode == 1
    assert "heap-buffer-overflow" in done.stderr
    assert f"input: {build}/fuzz-findings/bad-crash-12ab" in done.stderr.splitlines()[-1]
    assert "fuzz good" in done.stdout and "fuzz other" in done.stdout
    assert (build / "fuzz-findings/bad.log").exists()


@pytest.mark.parametrize("hours", ["0", "0.0001", "-1", "many", "1h"])
def test_hours_that_are_none(build: Path, hours: str):
    done = run(build, FUZZ_HOURS=hours)
    assert done.returncode == 2
    assert f"fuzz: {hours} hours: at least a second" in done.stderr
