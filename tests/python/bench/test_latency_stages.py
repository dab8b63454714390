# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Whether the parts of a packet's way add up to the tester's mean, of results that are made up."""

from collections.abc import Sequence

import pytest

from convoy.report.export import document
from convoy.report.findings import of_scenario
from convoy.report.latency_stages import timing_costs
from convoy.report.run_data import Run, read
from convoy.results.documents import Host
from convoy.results.folder import RunFolder
from convoy.results.memory import Memory
from convoy.results.scenario import Figure
from convoy.results.trials import Point, Trial

from .results import latency, plan, result, scenario

POINT = Point(scenario="x", device="convoy", functions=("firewall",), size="64", repeat=0)


def counts(packets: int, ns: int) -> dict[str, object]:
    """Of `packets`, each of which took so many ns: in its function half, waiting for it half."""

    def timed(each: float) -> dict[str, object]:
        up_to = {"4096": packets} if packets else {}
        return {"packets": packets, "ns": int(packets * each), "up_to_ns": up_to}

    return {
        # Of the time between two polls packets wait half.
        "ports": {"left": {"rx_packets": packets, "rx_wait": timed(ns)}},
        "functions": {"fw": {"busy_cycles": 0, "latency": timed(ns / 2)}},
        "workers": [],
    }


def run_of(tmp_path, rounds: Sequence[tuple[int, int]]) -> Run:
    """Return a run with a round for each pair: what the node's parts took, the tester's mean."""
    folder = RunFolder(tmp_path)
    folder.create(plan(x=scenario(figure=Figure(y="stages"))))
    folder.write_host(Host())
    for repeat, (node_ns, tester_ns) in enumerate(rounds):
        took = latency(tester_ns, tester_ns, [(tester_ns, 1000)])
        folder.append(
            Trial(
                point=POINT.model_copy(update={"repeat": repeat}),
                purpose="latency", load="1 Mpps", rate_pps=1e6, duration_s=1.0, verdict="passed",
                commands=(), result=result(total={"received_pkts": 1000, "latency": took}),
                device_before=counts(0, 0), device_after=counts(1000, node_ns),
            )
        )  # fmt: skip
    return read([folder.path])


ROWS = [
    ("all is in the parts", [(4000, 4000), (4100, 4100), (3900, 3900)], "holds", 1.0),
    ("within noise", [(3900, 4000), (4100, 4000), (4000, 4050)], "holds", 0.988),
    ("a part is missing", [(3000, 4000), (3100, 4100), (2900, 3900)], "does not hold", 0.75),
    ("more than there is", [(7000, 4000), (7100, 4100), (6900, 3900)], "does not hold", 1.75),
    ("noise would hide it", [(3800, 4000), (3900, 3000), (4000, 6000)], "cannot be told", 0.95),
    ("one round shows no noise", [(4000, 4000)], "cannot be told", None),
]


@pytest.mark.parametrize(
    ("rounds", "verdict", "quotient"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_parts_add_up_within_noise_or_do_not(tmp_path, rounds, verdict, quotient):
    run = run_of(tmp_path, rounds)
    (one,) = document(run)["latency_sums"]
    assert (one["scenario"], one["load"], one["verdict"]) == ("x", "1 Mpps", verdict)
    known = one["quotient"] and one["quotient"]["median"]
    assert known == (quotient and pytest.approx(quotient, rel=0.01))
    (sentence,) = (line for line in of_scenario(run, "x") if "add up" in line)
    assert f"parts, {one['node_us']:.2f} us, add up to the tester's mean, " in sentence
    assert f"{one['tester_us']:.2f} us: **{verdict}**" in sentence


COSTS = [
    ("all of it is less", (0.43, -0.04, 0.79), "holds"),
    ("all of it is more", (5.8, 5.3, 6.32), "does not hold"),
    ("it has one in it", (1.06, 0.99, 1.12), "cannot be told"),
    ("one is not under one", (1.5, 1.0, 2.0), "does not hold"),
]


@pytest.mark.parametrize(
    ("cost", "verdict"), [row[1:] for row in COSTS], ids=[row[0] for row in COSTS]
)
def test_timing_is_under_a_cycle_or_is_not(tmp_path, cost, verdict):
    run_of(tmp_path, [(3000, 4000)])
    names = ("median", "min", "max")
    row = {"burst": 64, "cost": dict(zip(names, cost, strict=True))}
    RunFolder(tmp_path).append(
        Memory(scenario="x", what="latency", command=("bench",), result={"results": [row]})
    )
    run = read([tmp_path])
    assert [one.verdict for one in timing_costs(run, "x")] == [verdict]
    (sentence,) = (line for line in of_scenario(run, "x") if "Timing" in line)
    assert sentence.startswith(f"Timing parts in polls of 64 packets costs {cost[0]:.2f} [")
    assert sentence.endswith(f"under 1 **{verdict}**.")
