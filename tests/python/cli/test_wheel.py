# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What is installed from a wheel: all of the package, and the scenarios."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build one from a copy: setuptools has a folder build/ too."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in ("convoy", "scenarios"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
         "--no-index", "-w", folder, source],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return next(folder.glob("*.whl"))


def test_a_wheel_has_all_of_the_package_and_the_scenarios(wheel):
    has = set(zipfile.ZipFile(wheel).namelist())
    ours = [path for path in (ROOT / "convoy").rglob("*") if "__pycache__" not in path.parts]
    wanted = {str(path.relative_to(ROOT)) for path in ours if path.is_file()}
    there = [path for path in (ROOT / "scenarios").rglob("*") if path.is_file()]
    wanted |= {str("convoy" / path.relative_to(ROOT)) for path in there}
    assert not wanted - has
    assert not [name for name in has - wanted if ".dist-info/" not in name]


def test_an_installed_wheel_lists_and_loads_every_scenario(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = (
        "import convoy, sys\n"
        "from convoy.run import scenario, workload\n"
        "assert convoy.__file__.startswith(sys.argv[1]), convoy.__file__\n"
        "assert all(path.is_file() for path in workload.SIZE_FILES.values())\n"
        "print(*(scenario.load(name).quickly() and name for name in scenario.names()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], cwd=tmp_path, check=True, text=True, timeout=120,
        capture_output=True, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    ours = sorted(path.stem for path in (ROOT / "scenarios").glob("*.yaml"))
    assert done.stdout.split() == [name for name in ours if name != "claims"]  # of what they say


def test_what_is_installed_needs_nothing_that_only_tests_use(tmp_path):
    run = [
        "import sys",
        "sys.modules |= dict.fromkeys(['numpy', 'pandas', 'hdrh', 'scapy', 'pytest'])",
        "from convoy.cli.main import main",
        "main()",
    ]
    dummy = [
        "bench",
        "run",
        "baseline",
        "--devices",
        "dummy",
        "--quick",
        "--output",
        tmp_path / "r",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(run), *dummy], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r/report.html").exists()


def test_a_module_that_is_not_there_is_named_with_what_brings_it():
    program = [
        "import sys",
        "sys.modules['yaml'] = None",
        "from convoy.cli.main import main",
        "main()",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(program), "check", "x.yaml"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("convoy: the Python module yaml is not here")
    assert "convoy-tester" in done.stderr
