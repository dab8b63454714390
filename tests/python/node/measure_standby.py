# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a standby costs the active node, and how far it is behind. No test; prints lines.

Alternates rounds without and with a standby: cycles of the flow path for each packet of flows that
are known, and the time from the last new flow until the standby has all.

PYTHONPATH=.:tests/python .venv/bin/python -m node.measure_standby FLOWS ROUNDS RATE_PPS
"""

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from convoy.host.node import Node
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

from .test_flow_store import FIREWALL
from .test_handover import plan_of
from .test_standby import at, free_port, make_key, standby_of, with_standby


def a_round(folder: Path, flows: int, rate_pps: int, has_standby: bool) -> dict[str, Any]:
    """Open flows, send packets of them, and return what was measured."""
    there = folder / "there"
    there.mkdir(exist_ok=True)
    limits = {"flows": {"max": flows + 1024}}
    plan, other = plan_of(folder, FIREWALL) | limits, plan_of(there, FIREWALL) | limits
    port, key = free_port(), make_key(folder / "key", 1)
    ends = {"count": flows, "src_ip": "10.0.0.0/12", "dst_ip": "198.51.100.7"}
    first = {"paths": ["0>1"], "packets": flows, "rate_pps": 200000, "tolerance": 1}
    first |= {"duration_s": flows / 100000 + 1, "drain_s": 0.1, "flows": ends}
    traffic = first | {"packets": None, "rate_pps": rate_pps, "duration_s": 2.0}
    took: dict[str, Any] = {}
    ports = [f"vhost-user:{port['path']},ring=1024" for port in plan["ports"]]
    with ExitStack() as stack:
        if has_standby:
            standby = stack.enter_context(standby_of(with_standby(other, key, listen=at(port))))
            plan = with_standby(plan, key, to=at(port))
        tester = stack.enter_context(ConvoyGen(ports, core=CORES[-1]))
        node = stack.enter_context(Node(plan))
        if has_standby:
            standby.until(state="follows")
        tester.trial(first)
        begun = time.monotonic()
        if has_standby:
            known = node.counts()["flows"]["fw"]["flows_ipv4"]
            state = standby.until(flows=known)
            took["all_there_ms"] = (time.monotonic() - begun) * 1e3
            took["flows"], took["bytes_per_flow"] = known, state["bytes"] / known
        before = node.counts()
        tester.trial({key: value for key, value in traffic.items() if value is not None})
        after = node.counts()
        if has_standby:
            took["pass_ms"] = after["standby"]["pass_ms"]
            took["lag_ms"] = after["standby"]["lag_ms"]
        cycles, packets = (
            after["flows"]["fw"]["busy_cycles"] - before["flows"]["fw"]["busy_cycles"],
            after["functions"]["fw"]["packets"] - before["functions"]["fw"]["packets"],
        )
        took["cycles_per_packet"] = cycles / packets
        node.stop()
    return took


def main(flows: int, rounds: int, rate_pps: int) -> None:
    """Print each round, and medians, least and most."""
    folder = Path(tempfile.mkdtemp())
    os.environ["RUNTIME_DIRECTORY"] = str(folder)
    all_of: dict[str, list[float]] = {}
    for _ in range(rounds):
        for has_standby in (False, True):
            took = a_round(folder, flows, rate_pps, has_standby)
            print(json.dumps({name: round(value, 1) for name, value in took.items()}))
            for name, value in took.items():
                all_of.setdefault(f"{name}{'' if has_standby else ' without'}", []).append(value)
    for name, values in all_of.items():
        median = statistics.median(values)
        print(f"{name}: {median:.1f} [{min(values):.1f} .. {max(values):.1f}]")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
