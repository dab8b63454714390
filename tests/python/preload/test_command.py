# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy preload: what it refuses, and how it says so."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from convoy.host.programs import find

CONVOY = Path(sys.executable).parent / "convoy"


def run(*arguments: str | Path, library: str = "ethdev") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CONVOY, "preload", library, *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_a_program_without_dpdk_is_refused():
    done = run("--", "ls", "/")
    assert done.returncode == 2
    assert "not linked with librte_ethdev.so." in done.stderr
    assert done.stdout == ""


def test_a_static_program_is_refused(tmp_path: Path):
    source = tmp_path / "main.c"
    source.write_text("int main(void) { return 0; }\n")
    program = tmp_path / "static"
    subprocess.run(["gcc", "-static", "-o", program, source], check=True)
    done = run("--", program)
    assert done.returncode == 2
    assert "linked statically" in done.stderr


def program_of_another_dpdk(folder: Path, library: str) -> Path:
    """Return a program that is linked with a library of an ABI that is neither 23 nor 25."""
    source = folder / "none.c"
    source.write_text("")
    name = f"{library}.so.24"
    subprocess.run(
        ["gcc", "-shared", f"-Wl,-soname,{name}", "-o", folder / name, source], check=True
    )
    main = folder / "main.c"
    main.write_text("int main(void) { return 0; }\n")
    program = folder / "newer"
    rpath = f"-Wl,--no-as-needed,-rpath,{folder}"
    subprocess.run(["gcc", "-o", program, main, rpath, folder / name], check=True)
    return program


@pytest.mark.parametrize("name", ["ethdev", "vhost"])
def test_the_library_refuses_another_dpdk_itself(name: str, tmp_path: Path):
    program = program_of_another_dpdk(tmp_path, "librte_eal")
    library = find(f"libconvoy_{name}.so")
    if library is None:
        pytest.skip(f"libconvoy_{name}.so is not built: make build")
    done = subprocess.run(
        [program],
        env={"LD_PRELOAD": str(library)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"convoy: {name}: the program brings another DPDK (librte_eal.so.2")
    assert "librte_eal.so.24" in line


def test_another_dpdk_is_refused(tmp_path: Path):
    program = program_of_another_dpdk(tmp_path, "librte_ethdev")
    done = run("--", program)
    assert done.returncode == 2
    assert "linked with librte_ethdev.so.24: it must be librte_ethdev.so." in done.stderr


def test_a_script_is_refused(tmp_path: Path):
    script = tmp_path / "start"
    script.write_text("#!/bin/sh\nexec dpdk-testpmd\n")
    script.chmod(0o755)
    done = run("--", script)
    assert done.returncode == 2
    assert "not an ELF program" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mode", "fast"], "fast"),
        (["--next-hop", "here"], "'here': must be KEY=VALUE"),
        (["--next-hop", "dst_mac=02:00:00:00:00:01"], "a next hop needs dst_mac=, dst= and src="),
        (["--mtu", "12"], "mtu=12"),
        (["--udp-port", "0"], "port=0"),
        (["--ports", "1,x"], "ports=1,x"),
    ],
)
def test_bad_options_are_refused(options: list[str], words: str):
    if shutil.which("dpdk-testpmd") is None:
        pytest.skip("dpdk-testpmd is not installed: make setup")
    done = run(*options, "--", "dpdk-testpmd", "--version")
    assert done.returncode == 2
    assert words in done.stderr


HOP = "dst_mac=02:00:00:00:00:02,dst=192.0.2.2,src=192.0.2.1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--wait", "5us"], "--wait: needs --next-hop: without one no convoys are made"),
        (["--next-hop", HOP, "--wait", "5"], "--wait: '5': write microseconds, from 0 to 1000us"),
        (["--next-hop", HOP, "--wait", "2000us"], "'2000us': write microseconds, from 0 to 1000us"),
        (["--next-hop", HOP, "--across-guests"], "--across-guests: needs --wait: how long"),
        (["--next-hop", HOP, "--network", "/a,b"], "--network: '/a,b': must have no comma"),
    ],
)
def test_waits_that_make_no_sense_are_refused(options: list[str], words: str):
    done = run(*options, "--", "dpdk-testpmd", "--version", library="vhost")
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("library", "words", "message"),
    [
        ("ethdev", "wait=5", "CONVOY_ETHDEV: wait=: nothing waits here, only under a switch"),
        ("ethdev", "network=/a", "CONVOY_ETHDEV: network=: ports lead to networks here"),
        ("vhost", "wait=5", "CONVOY_VHOST: wait= needs a next hop"),
        ("vhost", f"{HOP.replace(',', ' ')} across=yes", "CONVOY_VHOST: across=yes needs wait="),
        ("vhost", f"{HOP.replace(',', ' ')} wait=1000001", "CONVOY_VHOST: wait=1000001: not a key"),
        ("vhost", f"{HOP.replace(',', ' ')} across=no", "CONVOY_VHOST: across=no: not a key"),
    ],
)
def test_the_libraries_refuse_them_too(library: str, words: str, message: str):
    testpmd, file = shutil.which("dpdk-testpmd"), find(f"libconvoy_{library}.so")
    if testpmd is None or file is None:
        pytest.skip("dpdk-testpmd or the library is not here: make setup build")
    done = subprocess.run(
        [testpmd, "--version"],
        env={"LD_PRELOAD": str(file), f"CONVOY_{library.upper()}": words},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert message in done.stderr


def test_a_program_that_is_not_there_is_named():
    done = run("--", "no-such-program")
    assert done.returncode == 2
    assert "no-such-program: no such program" in done.stderr
