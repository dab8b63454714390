# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Where in a node packets were how long, of what it counted before and after a trial."""

from convoy.report.packets import Stage, stages_of
from convoy.results.trials import Point, Trial


def counts(times: int) -> dict[str, object]:
    def timed(ns: int) -> dict[str, object]:
        return {"packets": 10 * times, "ns": 10 * times * ns, "up_to_ns": {"1024": 10 * times}}

    nothing = {"packets": 0, "ns": 0, "up_to_ns": {}}
    return {
        "ports": {
            "left": {"rx_wait": timed(800), "rx_latency": timed(50), "tx_latency": nothing},
            "right": {"rx_wait": nothing, "rx_latency": nothing, "tx_latency": timed(90)},
        },
        "functions": {
            "fw": {"latency": timed(200)},
            "rt": {"ring_latency": timed(300), "latency": timed(100)},
        },
    }


def trial(before: object, after: object) -> Trial:
    return Trial(
        point=Point(device="convoy", functions=(), size="64", repeat=0), purpose="latency",
        rate_pps=1e6, duration_s=1.0, verdict="passed", commands=(),
        result={"ok": True}, device_before=before, device_after=after,
    )  # fmt: skip


def test_stages_are_those_of_the_trial_in_the_order_of_the_way():
    # Of the time between two polls packets that come evenly wait half.
    assert stages_of([trial(counts(1), counts(3)), trial(counts(3), counts(4))]) == (
        Stage("left: in its queue", 400.0, 30),
        Stage("left: received", 50.0, 30),
        Stage("fw", 200.0, 30),
        Stage("rt: in the ring before", 300.0, 30),
        Stage("rt", 100.0, 30),
        Stage("right: sent", 90.0, 30),
    )


def test_devices_that_time_nothing_have_none():
    older = {"ports": {"left": {}}, "functions": {"fw": {}}}
    assert stages_of([trial(None, None), trial({"rx": 1}, {"rx": 2}), trial(older, older)]) == ()
    assert stages_of([trial(counts(1), counts(1))]) == ()
