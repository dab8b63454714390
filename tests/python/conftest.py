# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What every test starts with."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

# A shell's background jobs ignore these, and all that they start does too; tests send them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# Beside others nobody goes first: a poll loop that did would leave them a hundredth of its core.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["CONVOY_PRIORITY"] = "normal"


@pytest.fixture
def veth() -> Iterator[tuple[str, str]]:
    """A pair of network interfaces of our own."""
    if os.getuid() != 0 or shutil.which("ip") is None:
        pytest.skip("only root makes network interfaces: sudo make check")
    pair = (f"cvt{os.getpid() % 10**6}a", f"cvt{os.getpid() % 10**6}b")
    made = subprocess.run(
        ["ip", "link", "add", pair[0], "type", "veth", "peer", "name", pair[1]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip(f"ip link: {made.stderr.strip()}")
    try:
        for name in pair:
            # Without IPv6 nobody else sends on them.
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
        yield pair
    finally:
        subprocess.run(["ip", "link", "del", pair[0]], check=True)


@pytest.fixture
def slow_wire(veth: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Two interfaces of our own with a slow link (8 Mbit/s) in between, which loses nothing."""
    # On top of the other one: packet sockets send past the queues of their own interface.
    upper = f"cvt{os.getpid() % 10**6}c"
    made = f"""
    tc qdisc add dev {veth[0]} root tbf rate 8mbit burst 2kb limit 10mb
    ip link add link {veth[0]} name {upper} type macvlan mode passthru
    echo 1 > /proc/sys/net/ipv6/conf/{upper}/disable_ipv6
    ip link set {upper} up
    """
    subprocess.run(["sh", "-ec", made], check=True)
    yield upper, veth[1]
