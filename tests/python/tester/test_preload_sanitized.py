# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Both preloaded libraries, built with the sanitizers, under an unmodified dpdk-testpmd."""

import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from convoy.host.process import Process
from convoy.host.programs import CHECKOUT
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

from .conftest import Device
from .test_preload_vhost import NEXT_HOP
from .vhost import EASY, assert_all_came_back, ports, until_it_forwards

SETTINGS = {"ethdev": "mode=view", "vhost": NEXT_HOP}


def sanitized(kind: str) -> dict[str, str]:
    """Return the environment that has a library under a program, and its sanitizers before it."""
    library = CHECKOUT / f"build-asan/preload/{kind}/libconvoy_{kind}.so"
    if not library.exists():
        pytest.skip("not built with the sanitizers: make build-asan")
    query = ["clang", f"-print-file-name=libclang_rt.asan-{platform.machine()}.so"]
    runtime = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    assert Path(runtime).is_absolute(), runtime
    return {
        "LD_PRELOAD": f"{runtime}:{library}",
        f"CONVOY_{kind.upper()}": SETTINGS[kind],
        "ASAN_OPTIONS": "detect_leaks=0",  # testpmd has its own
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def output(process: Process) -> str:
    """End the program; return all that it and the sanitizers said."""
    process.signal(2)
    process.wait(30)
    return process.stderr.text()


@pytest.mark.parametrize("kind", SETTINGS)
def test_nothing_wrong_is_found_though_guests_are_killed(device: Callable[..., Device], kind: str):
    running = device()
    running.environment = sanitized(kind)
    running.start()
    for _ in range(2):
        with ConvoyGen(ports(running), core=CORES[-1]) as tester:
            until_it_forwards(tester)
            for together in (1, 9, 22):
                assert_all_came_back(tester.trial(EASY | {"convoys": together}))
            assert tester.trial(
                {"rate_pps": "max", "duration_s": 0.1, "convoys": 9, "tolerance": 1}
            ).ok
            tester._process.say('{"rate_pps": 1000000, "duration_s": 20, "tolerance": 1}')
            tester._process.signal(9)
    assert running.alive()
    assert running._process is not None
    words = output(running._process)
    assert "convoy:" in words
    assert "AddressSanitizer" not in words
    assert "runtime error" not in words
