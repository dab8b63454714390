# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Results that tests make up."""

from convoy.results.documents import BenchPlan
from convoy.results.scenario import Scenario
from convoy.results.trial_result import Latency, Probe, TrialResult


def result(ok=True, **more):
    return TrialResult.model_validate({"ok": ok, **more})


def latency(p50_ns, p99_ns, histogram_ns):
    return Latency(
        count=sum(count for _, count in histogram_ns),
        min_ns=p50_ns,
        mean_ns=p50_ns,
        p50_ns=p50_ns,
        p90_ns=p99_ns,
        p99_ns=p99_ns,
        p99_9_ns=p99_ns,
        max_ns=p99_ns,
        significant_digits=3,
        histogram_ns=histogram_ns,
    )


def probe(line, tester=480.0, device=480.0):
    return Probe(before_ns=line, after_ns=line, tester_work_ns=tester, device_work_ns=device)


def scenario(**more):
    return Scenario(title="x", source="y", asks="?", pending="made up", **more)


def plan(repeats=3, **scenarios):
    return BenchPlan(
        quick=True,
        profile="quick",
        goals=("pdr",),
        repeats=repeats,
        scenarios=scenarios or {"x": scenario()},
    )
