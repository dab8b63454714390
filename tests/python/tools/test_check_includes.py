# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""tools/check-includes: a folder uses only what stands before it."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from convoy.host.programs import CHECKOUT


def check(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHECKOUT / "tools/check-includes", root],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_code_is_in_order():
    done = check(CHECKOUT)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_architecture_lists_the_folders_in_this_order():
    folders = runpy.run_path(str(CHECKOUT / "tools/check-includes"))["FOLDERS"]
    page = (CHECKOUT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9/]+)/` \|", page, re.M)
    # Programs are listed by folder too, and simulator and tests have rows for parts.
    assert [row for row in rows if row in folders] == [
        folder for folder in folders if folder in rows
    ]
    assert {folder for folder in folders if folder not in rows} <= {"sim", "tests"}


def test_the_architecture_lists_the_packages_in_this_order():
    packages = runpy.run_path(str(CHECKOUT / "tools/check-includes"))["PACKAGES"]
    page = (CHECKOUT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| `convoy/(\w+)/` \|", page, re.M)
    assert [row for row in rows if row != "doctor"] == packages


@pytest.mark.parametrize(
    ("path", "include", "message"),
    [
        ("dataplane/packet/a.h", "port/port.h", "dataplane/packet stands before dataplane/port"),
        ("dataplane/chain/a.c", "nf/router/fib.h", "dataplane/chain stands before nf"),
        ("gen/spec/a.c", "gen/trial/trial.h", "gen/spec stands before gen/trial"),
        ("gen/trial/a.c", "chain/nf.h", "gen/trial knows nothing of dataplane/chain"),
        ("nf/a.c", "port/port.h", "nf knows nothing of dataplane/port"),
        ("nf/a.c", "chain/worker.h", "only its contract, chain/nf.h and"),
        ("nf/a.c", "tests/support/test_eal.h", "nf stands before tests"),
        ("nf/router/a.c", "fib.h", "is not named with its folder"),
        ("preload/vhost/a.c", "../ethdev/config.h", "is not named with its folder"),
        ("nf/test_a.c", "daemon/plan.h", "nf stands before daemon"),
    ],
)
def test_an_include_that_goes_up_is_refused(tmp_path: Path, path: str, include: str, message: str):
    source = tmp_path / path
    source.parent.mkdir(parents=True)
    source.write_text(f'#include <stdio.h>\n#include "{include}"\n')
    done = check(tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f'{path}:2: "{include}"')
    assert message in done.stderr


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("nf/a.c", "chain/nf.h"),
        ("nf/a.c", "nf/nf_list.h"),
        ("nf/test_a.c", "tests/support/test_eal.h"),
        ("gen/port/a.c", "port/port.h"),
        ("preload/vhost/a.c", "preload/ethdev/config.h"),
        ("sim/engine/a.cc", "model/network.hh"),
    ],
)
def test_an_include_that_goes_down_passes(tmp_path: Path, path: str, include: str):
    source = tmp_path / path
    source.parent.mkdir(parents=True)
    source.write_text(f'#include "{include}"\n')
    done = check(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("path", "line", "message"),
    [
        ("convoy/chain/a.py", "from convoy.host.machine import x", "convoy.chain stands before"),
        ("convoy/base/a.py", "    from convoy.chain import x", "convoy.base stands before"),
        ("convoy/report/a.py", "import convoy.run.bench", "convoy.report knows nothing of convoy"),
        ("convoy/report/doctor/a.py", "from convoy import dut", "convoy.report knows nothing of"),
        ("convoy/run/a.py", "from convoy.other import x", "convoy.other is in no list"),
        ("convoy/other/a.py", "from convoy.run import x", "other is in no list"),
        ("convoy/run/a.py", "from convoy.base.files import x", ""),
        ("convoy/base/a.py", "from convoy.errors import x", ""),
    ],
)
def test_an_import_that_goes_up_is_refused(tmp_path: Path, path: str, line: str, message: str):
    source = tmp_path / path
    source.parent.mkdir(parents=True)
    source.write_text(f"import os\n{line}\n")
    done = check(tmp_path)
    assert done.returncode == (1 if message else 0)
    assert done.stderr.startswith(f"{path}:2: {message}" if message else "")


@pytest.mark.parametrize(
    ("comment", "wrong"),
    [
        ("// As b.h has it, nf/router/b.h; <rte_mbuf.h> not.", []),
        ("int a; // as c.h", ["c.h"]),
        ("// chain/b.h and router/d.c", ["chain/b.h", "router/d.c"]),
    ],
)
def test_a_comment_names_files_that_exist(tmp_path: Path, comment: str, wrong: list[str]):
    source = tmp_path / "nf/router/b.h"
    source.parent.mkdir(parents=True)
    source.write_text(f"{comment}\n")
    lines = [f"nf/router/b.h:1: no file is called {name}\n" for name in wrong]
    assert check(tmp_path).stderr == "".join(lines)


@pytest.mark.parametrize(
    ("path", "line", "message"),
    [
        ("nf/a.c", "rc = rte_lpm6_lookup(l, a, &n);", "nf/a.c:1: rte_lpm6_lookup does not compile"),
        ("nf/a.c", "rte_lpm6_lookup_bulk_func(l, a, &n, 1);", ""),
        ("nf/a.c", "// not rte_lpm6_lookup()", ""),
        ("dataplane/dpdk/22.11/a.h", "rte_ctrl_thread_create(", ""),
    ],
)
def test_what_the_newer_dpdk_lacks_is_refused(tmp_path: Path, path: str, line: str, message: str):
    source = tmp_path / path
    source.parent.mkdir(parents=True)
    source.write_text(f"{line}\n")
    done = check(tmp_path)
    assert done.returncode == (1 if message else 0)
    assert done.stderr.startswith(message) if message else not done.stderr
