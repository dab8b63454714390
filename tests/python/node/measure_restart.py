# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How long a node that was killed takes until it forwards with its flows. No test; prints lines.

PYTHONPATH=.:tests/python .venv/bin/python -m node.measure_restart 65536 15 [nat]
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from convoy.host.programs import need
from convoy.tester.convoy_gen import ConvoyGen

from .service_manager import LAUNCH, ServiceManager, service_manager
from .test_flow_store import FIREWALL
from .test_handover import plan_of

# The launcher is no part of it: the time is counted from where it becomes convoyd.
TIMED = LAUNCH.replace(
    "os.execvp(",
    "import time\n"
    "print(time.monotonic_ns(), open('/proc/self/schedstat').read(), file=sys.stderr, flush=True)\n"
    "os.execvp(",
)


def nat(flows: int) -> dict[str, Any]:
    """Return a nat in which each of so many hosts has a block of its own."""
    config = {"outside": ["right"], "inside": ["10.0.0.0/8"], "block_size": 64}
    pool = "203.0.113.0/25" if flows <= 1 << 16 else "203.0.112.0/20"
    return {
        "name": "nat",
        "type": "nat",
        "config": config | {"pool": [pool], "mappings": flows + 1024},
    }


def start(manager: ServiceManager, plan: Path) -> tuple[subprocess.Popen[str], dict[str, float]]:
    """Return a process that is ready, and milliseconds."""
    launch = [TIMED if word == LAUNCH else word for word in manager.launch()]
    process = subprocess.Popen(
        [*launch, need("convoyd"), "--keep-flows", plan], text=True,
        env=os.environ | manager.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    begun, ran_before, waited_before, _ = map(int, process.stderr.readline().split())
    event: dict[str, Any] = {}
    forwards_ms = None
    while event.get("event") != "ready":
        event = json.loads(process.stdout.readline())
        if forwards_ms is None and event["event"] in ("forwarding", "ready"):
            forwards_ms = (time.monotonic_ns() - begun) / 1e6
    ready_ms = (time.monotonic_ns() - begun) / 1e6
    assert forwards_ms is not None
    ran, waited, _ = map(int, Path(f"/proc/{process.pid}/schedstat").read_text().split())
    return process, {
        "flows": event["flows"]["restored"],
        "forwards_ms": forwards_ms,  # with all flows: those that a packet comes for are there
        "ready_ms": ready_ms,
        "without_waiting_ms": ready_ms - (waited - waited_before) / 1e6,  # for a core
        "cpu_ms": (ran - ran_before) / 1e6,  # of the main thread
        "restore_ms": event["flows"]["ms"],
    }


def main(flows: int, times: int, *functions: str) -> None:
    """Print each start, and their median, least and most."""
    folder = Path(tempfile.mkdtemp())
    os.environ["RUNTIME_DIRECTORY"] = str(folder)
    plan = plan_of(folder, FIREWALL, *(nat(flows) for _ in functions))
    (folder / "plan.json").write_text(json.dumps(plan | {"flows": {"max": flows + 1024}}))
    first = {"paths": ["0>1"], "packets": flows, "rate_pps": 100000, "tolerance": 1}
    first |= {"duration_s": flows / 50000 + 1, "drain_s": 1}
    first["flows"] = {"count": flows, "src_ip": "10.0.0.0/12", "dst_ip": "198.51.100.7"}
    starts = []
    with service_manager(folder) as manager:
        process, _ = start(manager, folder / "plan.json")
        with ConvoyGen([f"vhost-user:{port['path']}" for port in plan["ports"]]) as tester:
            tester.trial(first)
        for _ in range(times):
            manager.settle()
            process.send_signal(signal.SIGKILL)
            process.communicate()
            process, took = start(manager, folder / "plan.json")
            starts.append(took)
            print(json.dumps({key: round(value, 1) for key, value in took.items()}))
        process.terminate()
        process.communicate()
    for key in starts[0]:
        values = [took[key] for took in starts]
        print(f"{key}: {statistics.median(values):.1f} [{min(values):.1f} .. {max(values):.1f}]")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
