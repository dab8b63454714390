# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Where packets were lost is found in what each device counts, by its own names."""

import pytest

from convoy.report.packets import ENTRANCE, UNCOUNTED, losses
from convoy.results.trials import Point, Trial


def node(denied, full):
    return {
        "ports": {"right": {"drops": {"tx_full": full}}},
        "functions": {"fw": {"drops": {"denied": denied}}},
    }


def links(rx, tx):
    return {"0 left": {"rx": {"packets": 9, "dropped": rx}}, "1 right": {"tx": {"dropped": tx}}}


# what it counted before and after, 1,000 offered of which 300 were lost and 100 of these refused
CASES = [
    ("a node", node(5, 0), node(55, 50), [("fw: denied", 0.05), ("right: tx_full", 0.05)], 0.1),
    ("processes", {"process 1": node(0, 0)}, {"process 1": node(0, 200)},
     [("process 1 right: tx_full", 0.2)], 0.0),
    ("namespaces and guests", links(1, 1), links(1, 151), [("1 right: tx dropped", 0.15)], 0.05),
    ("sums of ports", {"dump-ports": {"rx drop": 0, "tx drop": 7, "tx pkts": 1}},
     {"dump-ports": {"rx drop": 0, "tx drop": 107, "tx pkts": 900}},
     [("dump-ports: tx drop", 0.1)], 0.1),
    ("a device that counts nothing", None, None, [], 0.2),
]  # fmt: skip


@pytest.mark.parametrize(("what", "before", "after", "configuration", "untold"), CASES)
def test_where_packets_were_lost(what, before, after, configuration, untold):
    trial = Trial(
        point=Point(device="x", functions=(), size="64", repeat=0), purpose="search",
        rate_pps=1e6, duration_s=1.0, verdict="failed", commands=(),
        result={"ok": True, "total": {"offered_pkts": 1000, "lost_pkts": 300, "refused_pkts": 100}},
        device_before=before, device_after=after,
    )  # fmt: skip
    result = dict(losses([trial]))
    assert result.pop(ENTRANCE) == 0.1
    assert result.pop(UNCOUNTED, 0.0) == pytest.approx(untold)
    assert result == pytest.approx(dict(configuration))
    assert losses([trial.model_copy(update={"verdict": "passed"})]) == ()
