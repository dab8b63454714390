# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The programs are built so that a mistake in memory is harder to use (meson.build)."""

import platform
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from convoy.host.programs import find

BUILD = Path(__file__).resolve().parents[3] / "build"
PROGRAMS = ("convoyd", "convoy-gen", "convoy-sim")
LIBRARIES = ("preload/ethdev/libconvoy_ethdev.so", "preload/vhost/libconvoy_vhost.so")


@cache
def readelf(option: str, path: Path) -> str:
    return subprocess.run(
        ["readelf", option, "-W", str(path)], capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture(params=[*PROGRAMS, *LIBRARIES])
def built(request) -> Path:
    name = request.param
    path = BUILD / name if "/" in name else find(name)
    if path is None or not path.exists():
        pytest.skip(f"{name} is not built: make build")
    if "__asan_init" in readelf("--dyn-syms", path):
        pytest.skip("a sanitizer's build")
    return path


def test_it_lies_anywhere(built):
    assert re.search(r"Type: +DYN ", readelf("-h", built))


def test_its_stack_is_not_run(built):
    (stack,) = re.findall(r"GNU_STACK .* ([R W E]{3}) ", readelf("-l", built))
    assert "E" not in stack


def test_its_pointers_are_resolved_and_read_only_after_start(built):
    assert "GNU_RELRO" in readelf("-l", built)
    assert re.search(r"\(FLAGS_1\).*\bNOW\b|\(FLAGS\).*BIND_NOW", readelf("-d", built))


def test_nothing_is_written_and_run(built):
    flags = re.findall(r" LOAD .* ([R ][W ][E ]) ", readelf("-l", built))
    assert flags
    assert not [each for each in flags if "W" in each and "E" in each]


def test_its_stacks_have_canaries(built):
    assert "__stack_chk_fail" in readelf("--dyn-syms", built)


def test_its_copies_are_checked(built):
    if built.name.startswith("libconvoy"):
        pytest.skip("has no call whose size is known but not its length")
    assert re.search(r"__\w+_chk", readelf("--dyn-syms", built).replace("__stack_chk", ""))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="CET is x86's")
def test_jumps_and_returns_are_marked():
    """Each object is; a whole program where the C library's start files are, too."""
    objects = sorted(BUILD.glob("daemon/convoyd.p/*.o"))
    if not objects:
        pytest.skip("not built: make build")
    for path in objects:
        assert "IBT, SHSTK" in readelf("-n", path), path
    start = Path(
        subprocess.run(
            ["cc", "-print-file-name=Scrt1.o"], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    if "IBT, SHSTK" in readelf("-n", start):
        assert "IBT, SHSTK" in readelf("-n", BUILD / "daemon/convoyd")
