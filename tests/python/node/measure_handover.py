# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How long no packet moves in handovers of a node with flows. No test; prints lines.

PYTHONPATH=.:tests/python .venv/bin/python -m node.measure_handover FLOWS TIMES RATE_PPS [IDLE]
"""

import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from convoy.errors import ConvoyError
from convoy.host.counts import running_nodes
from convoy.host.handover import hand_over
from convoy.host.node import Node
from convoy.host.process import wait_for
from convoy.results.trial_result import TrialResult
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

from .test_flow_store import FIREWALL
from .test_handover import counts_of, plan_of


@dataclass
class Counted:
    """What trials sent and lost, packets."""

    trials: int = 0
    sent: int = 0
    lost: int = 0

    def add(self, result: TrialResult) -> None:
        """Count one more."""
        assert result.total is not None
        self.trials += 1
        self.sent += result.total.sent_pkts
        self.lost += result.total.sent_pkts - result.total.received_pkts


def main(flows: int, times: int, rate_pps: int, idle: str = "sleep") -> None:
    """Open flows, hand over while answers come, and print the gaps and what was lost."""
    folder = Path(tempfile.mkdtemp())
    os.environ["RUNTIME_DIRECTORY"] = str(folder)
    plan = plan_of(folder, FIREWALL)
    back = {"chain": "back", "source": {"port": "right"}, "sink": {"port": "left"}}
    plan["chains"].append({"name": "back", "match": {}, "in": "right", "out": "left"})
    plan["stages"].append(plan["stages"][0] | back)
    plan["workers"][0]["idle"] = idle
    plan["flows"] = {"max": flows + 1024}
    ends = {"count": flows, "src_ip": "10.0.0.0/12", "dst_ip": "198.51.100.7"}
    first = {"paths": ["0>1"], "packets": flows, "rate_pps": 100000, "tolerance": 1}
    first |= {"duration_s": flows / 50000 + 1, "drain_s": 1, "flows": ends}
    answers = {"count": flows, "src_ip": ends["dst_ip"], "dst_ip": ends["src_ip"]}
    answers |= {"src_port": 5000, "dst_port": 5000}
    traffic = {"paths": ["1>0"], "rate_pps": rate_pps, "duration_s": 0.5, "drain_s": 5}
    traffic |= {"tolerance": 1, "flows": answers}
    gaps: list[float] = []
    refused: list[str] = []
    during, without = Counted(), Counted()
    ports = [f"vhost-user:{port['path']},ring=1024" for port in plan["ports"]]
    with ConvoyGen(ports, core=CORES[-1]) as tester, Node(plan) as node:
        tester.trial(first | {"flows": ends | {"src_port": 5000, "dst_port": 5000}})
        known = counts_of(node.running)["flows"]["fw"]["flows_ipv4"]

        def change() -> None:
            running = node.running
            while len(gaps) < times:
                try:
                    done = hand_over(running)
                except ConvoyError as error:  # nothing has changed
                    refused.append(str(error))
                    continue
                gaps.append(done.gap_us)
                running = done.after

        changing = threading.Thread(target=change)
        changing.start()
        while changing.is_alive() or during.trials == 0:
            during.add(tester.trial(traffic))
        changing.join()
        for _ in range(during.trials):  # the same without: others take the cores, too
            without.add(tester.trial(traffic))
        (last,) = running_nodes()
        ended = counts_of(last)
        os.kill(last.pid, signal.SIGTERM)
        wait_for(lambda: not running_nodes(), 30, "its end")
    state = {"flows": known, "at_the_end": ended["flows"]["fw"]["flows_ipv4"]}
    state |= {"created": ended["flows"]["fw"]["created"]}
    state |= {"sent": during.sent, "lost": during.lost, "refused": len(refused)}
    state |= {"lost_without": without.lost, "tx_full": ended["ports"]["left"]["drops"]["tx_full"]}
    print(json.dumps(state), *set(refused))
    print(
        f"gap_us: {statistics.median(gaps):.0f} [{min(gaps):.0f} .. {max(gaps):.0f}] of {len(gaps)}"
    )
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), *sys.argv[4:])
