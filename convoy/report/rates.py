# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Trials and searches to rates, latencies and cycles per packet: a row for everything measured."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from convoy.report.packets import (
    Delay,
    DelayRound,
    busy_share,
    cpu_us_of,
    frames_of,
    loss_periods_of,
    losses,
    stages_of,
)
from convoy.report.row import FIRST_GOAL, Row, median
from convoy.results.host_state import (
    ROUNDS_MIN,
    Figures,
    attributed,
    degraded_rounds,
    excluded_rounds,
    nominal,
    of_trial,
    slower,
)
from convoy.results.trial_result import Latency
from convoy.results.trials import SATURATION, Search, Trial

FIXED = ("latency", "rate")  # trials at rates that no search has chosen


def _sum(objects: Any, name: str) -> int:
    """Sum a counter over ports or functions (by name) or workers (a list)."""
    things = objects.values() if isinstance(objects, dict) else objects
    return sum(int(thing.get(name, 0)) for thing in things)


def _function_cycles(trial: Trial) -> float | None:
    """Busy cycles per packet of our node's functions during a trial."""
    before, after = trial.device_before, trial.device_after
    if not before or not after or "functions" not in after or "ports" not in after:
        return None
    packets = _sum(after["ports"], "rx_packets") - _sum(before["ports"], "rx_packets")
    cycles = _sum(after["functions"], "busy_cycles") - _sum(before["functions"], "busy_cycles")
    return cycles / packets if packets > 0 else None


def _delays(trials: Sequence[Trial], reference: Figures) -> tuple[Delay, ...]:
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.purpose in FIXED and trial.verdict != "invalid":
            groups.setdefault(trial.load, []).append(trial)
    result = []
    for load, several in groups.items():
        quick = [trial for trial in several if not slower(of_trial(trial), reference)]
        group = quick if len({trial.point.repeat for trial in quick}) >= ROUNDS_MIN else several
        merged: Counter[int] = Counter()
        totals = [trial.result.total for trial in group if trial.result.total]
        known = [total.latency for total in totals if total.latency]
        for latency in known:
            for value, count in latency.histogram_ns or ():
                merged[value] += count
        offered = sum(total.offered_pkts for total in totals)
        lost = sum(total.lost_pkts for total in totals)
        received = sum(total.received_pkts for total in totals)
        reordered = sum(total.reordered_pkts for total in totals)
        result.append(
            Delay(
                load,
                statistics.median(trial.rate_pps or 0 for trial in group),
                tuple(sorted(merged.items())),
                tuple(float(latency.p50_ns) for latency in known),
                tuple(float(latency.p99_ns) for latency in known),
                lost / offered if offered else None,
                frames_of([trial.result for trial in group]),
                loss_periods_of([trial.result for trial in group]),
                _delay_rounds(group),
                cpu_us_of(group),
                tuple(ns / 1e6 for trial in group for ns in trial.changes_ns or ()),
                _mean_ns(known),
                stages_of(group),
                tuple(t.cost.cycles / t.cost.packets for t in group if t.cost and t.cost.packets),
                _busy_shares(group),
                reordered / received if received else None,
            )
        )
    return tuple(result)


def _busy_shares(trials: Iterable[Trial]) -> tuple[float, ...]:
    return tuple(share for trial in trials if (share := busy_share(trial)) is not None)


def _mean_ns(known: Sequence[Latency]) -> float | None:
    packets = sum(latency.count for latency in known)
    total = sum(latency.mean_ns * latency.count for latency in known)
    return total / packets if packets else None


def _delay_rounds(trials: Sequence[Trial]) -> dict[int, DelayRound]:
    rounds: dict[int, list[Trial]] = {}
    for trial in trials:
        rounds.setdefault(trial.point.repeat, []).append(trial)
    return {repeat: _delay_round(several) for repeat, several in rounds.items()}


def _delay_round(trials: Sequence[Trial]) -> DelayRound:
    results = [trial.result for trial in trials]
    totals = [result.total for result in results if result.total]
    known = [total.latency for total in totals if total.latency]
    offered = sum(total.offered_pkts for total in totals)
    return DelayRound(
        median([float(latency.p50_ns) for latency in known]),
        median([float(latency.p99_ns) for latency in known]),
        sum(total.lost_pkts for total in totals) / offered if offered else None,
        frames_of(results),
        loss_periods_of(results),
        stages_of(trials),
        _mean_ns(known),
    )


def _busiest(trials: Sequence[Trial]) -> list[Trial]:
    """Return each repeat's fastest trial that passed: there the device had no time to spare."""
    passed = [t for t in trials if t.verdict == "passed" and t.purpose in ("search", "latency")]
    passed.sort(key=lambda trial: trial.received_pps or 0)
    return list({trial.point.repeat: trial for trial in passed}.values())


def _irregular(trials: Sequence[Trial], searches: Sequence[Search]) -> tuple[str, ...]:
    """Return remarks on goals that searches did not reach, and on loads that were not offered."""
    lines = [
        f"{goal.goal.upper()}: {goal.remark}"
        for search in searches
        for goal in search.goals
        if not goal.regular
    ]
    known = {t.load for t in trials if t.purpose in FIXED and t.verdict != "invalid"}
    missing = [t.load for t in trials if t.purpose in FIXED and t.load not in known]
    lines += [f"at {load}: not offered, or disturbed: no result" for load in missing]
    return tuple(dict.fromkeys(lines))


def _on_degraded_host(
    slow: frozenset[int], out: frozenset[int], trials: Sequence[Trial]
) -> tuple[str, ...]:
    """Return a remark on rounds on a degraded host."""
    if not slow:
        return ()
    of = len({trial.point.repeat for trial in trials})
    which = "excluded" if out else "kept, for want of others"
    return (f"{len(slow)} of {of} rounds on a degraded host: {which}",)


def _at_saturation(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return, by round, the results at closed-loop saturation, by their names in a row."""
    names = ("saturation_pps", "per_cpu_s", "saturation_cycles", "saturation_busy")
    result: dict[str, dict[int, tuple[float, ...]]] = {name: {} for name in names}
    for trial in trials:
        if trial.load != SATURATION or trial.verdict != "passed" or not trial.received_pps:
            continue
        values: dict[str, float] = {"saturation_pps": trial.received_pps}
        if trial.device_cpu_ns and trial.elapsed_ns:
            # Its loops use as much before and after the packets: they poll.
            values["per_cpu_s"] = trial.received_pps * trial.elapsed_ns / trial.device_cpu_ns
        if trial.cost and trial.cost.packets > 0:
            values["saturation_cycles"] = trial.cost.cycles / trial.cost.packets
            if (share := busy_share(trial)) is not None:
                values["saturation_busy"] = min(1.0, share)
        for name, value in values.items():
            rounds = result[name]
            rounds[trial.point.repeat] = (*rounds.get(trial.point.repeat, ()), value)
    return result


def _part_cycles(trials: Sequence[Trial]) -> dict[str, tuple[float, ...]]:
    """Return what each part of a device spent on a packet that came through.

    At closed-loop saturation, or else in the trials of the other cycles.
    """
    valid = [trial for trial in trials if trial.load == SATURATION and trial.verdict == "passed"]
    result: dict[str, tuple[float, ...]] = {}
    for trial in valid or _busiest(trials):
        total = trial.result.total
        for name, cost in trial.part_costs.items() if total and total.received_pkts else ():
            assert total is not None
            result[name] = (*result.get(name, ()), cost.cycles / total.received_pkts)
    return result


def _rates(searches: Sequence[Search]) -> dict[str, dict[int, float]]:
    """Return the rates that count, by goal and repeat.

    A search without its upper bound has a lower one. That is no rate where others found it, unless
    no more could be offered and it lies above theirs: then the median is the same wherever it lies.
    """
    proved: dict[str, list[float]] = {}
    for goal in (goal for search in searches for goal in search.goals):
        if goal.regular and goal.rate_pps is not None:
            proved.setdefault(goal.goal, []).append(goal.rate_pps)
    result: dict[str, dict[int, float]] = {}
    for search in searches:
        for goal in search.goals:
            rates, known = result.setdefault(goal.goal, {}), proved.get(goal.goal)
            if goal.rate_pps is None:
                continue
            above = goal.lower_bound and goal.rate_pps >= (median(known or []) or 0)
            if goal.regular or not known or above:
                rates[search.point.repeat] = goal.rate_pps
    return result


def _lower_bound(searches: Sequence[Search], rates: Mapping[int, float]) -> bool:
    """Return whether most of the first goal's rates that count are bounds."""
    firsts = [
        next((goal for goal in search.goals if goal.goal == FIRST_GOAL), search.goals[0])
        for search in searches
        if search.goals and search.point.repeat in rates
    ]
    return 2 * sum(goal.lower_bound for goal in firsts) > len(rates)


def _middle(of: Sequence[Figures]) -> dict[str, float]:
    names = dict.fromkeys(name for one in of for name in one)
    return {name: statistics.median(one[name] for one in of if name in one) for name in names}


def _with_result(trials: Sequence[Trial], searches: Sequence[Search]) -> set[int]:
    """Return the repeats that have a result: a rate, or where none was searched for, a trial."""
    rates = {repeat for result in _rates(searches).values() for repeat in result}
    return rates or {trial.point.repeat for trial in trials if trial.verdict != "invalid"}


def _core_share(trial: Trial) -> float | None:
    """Return how busy a core was while the tester sent; what it did afterwards is a part of that.

    The tester then waits for what is on its way, and a device has nothing more to do. A poll loop
    goes on: its core was busy all the time.
    """
    share, elapsed_ns, sent_ns = trial.core_busy_share, trial.elapsed_ns, trial.result.duration_ns
    if share is None or not elapsed_ns or not 0 < sent_ns <= elapsed_ns:
        return share
    return min(1.0, share * elapsed_ns / sent_ns)


def _row(every_trial: Sequence[Trial], every_search: Sequence[Search], reference: Figures) -> Row:
    point = every_trial[0].point if every_trial else every_search[0].point
    states: dict[int, list[Figures]] = {}  # that count against rounds
    for trial in every_trial:
        if (state := attributed(trial)) is not None:
            states.setdefault(trial.point.repeat, []).append(state)
    slow = degraded_rounds(states, reference)
    out = excluded_rounds(slow, _with_result(every_trial, every_search))
    trials = [trial for trial in every_trial if trial.point.repeat not in out]
    searches = [search for search in every_search if search.point.repeat not in out]
    counted = [of_trial(trial) for trial in trials if trial.verdict != "invalid"]
    goals = _rates(searches)
    rounds = goals.get(FIRST_GOAL) or next(iter(goals.values()), {})
    busiest = _busiest(trials)
    totals = [trial.result.total for trial in trials if trial.result.total]
    costs = [trial.cost for trial in busiest if trial.cost and trial.cost.packets > 0]
    own = [cycles for trial in busiest if (cycles := _function_cycles(trial)) is not None]
    return Row(
        scenario=point.scenario,
        setup=point.key[1],
        device=point.device,
        role=point.role,
        functions=point.functions,
        cpu_speed=point.cpu_speed,
        size=point.size,
        port_kind=point.port_kind,
        goals=goals,
        mrrs_pps=tuple(s.mrr_pps for s in searches if s.mrr_pps is not None),
        **_at_saturation(trials),
        frame_bytes=median([t.mean_frame_bytes for t in totals if t.mean_frame_bytes]),
        delays=_delays(trials, reference),
        node_cycles=tuple(cost.cycles / cost.packets for cost in costs),
        cycles_source=costs[0].source if costs else "",
        function_cycles=tuple(own),
        cpu_shares=tuple(
            trial.device_cpu_ns / trial.elapsed_ns
            for trial in busiest
            if trial.device_cpu_ns is not None and trial.elapsed_ns
        ),
        busy_shares=_busy_shares(busiest),
        core_shares=tuple(s for trial in busiest if (s := _core_share(trial)) is not None),
        repeats=len({t.point.repeat for t in every_trial} | {s.point.repeat for s in every_search}),
        trials=len(every_trial),
        lower_bound=bool(rounds) and _lower_bound(searches, rounds),
        invalid=sum(t.verdict == "invalid" and not t.load_not_reached for t in every_trial),
        load_not_reached=sum(trial.load_not_reached for trial in every_trial),
        lost=losses(trials),
        irregular=(*_on_degraded_host(slow, out, every_trial), *_irregular(trials, searches)),
        failed=tuple(dict.fromkeys(s.why for s in every_search if s.outcome == "failed")),
        notes=tuple(dict.fromkeys(note for trial in trials for note in trial.notes)),
        host_state=_middle(counted),
        degraded=slow,
        excluded_rounds=len(out),
        part_cycles=_part_cycles(trials),
    )


def rows(trials: Iterable[Trial], searches: Iterable[Search] = ()) -> list[Row]:
    """Return a row for everything that was tried, in the order in which it was first met."""
    tried: dict[tuple[object, ...], list[Trial]] = {}
    ended: dict[tuple[object, ...], list[Search]] = {}
    for trial in trials:
        tried.setdefault(trial.point.key[:-1], []).append(trial)
    for search in searches:
        ended.setdefault(search.point.key[:-1], []).append(search)
    keys = list(dict.fromkeys((*tried, *ended)))
    reference = nominal(of_trial(trial) for some in tried.values() for trial in some)
    return [_row(tried.get(key, []), ended.get(key, []), reference) for key in keys]


def expected_pps(bare_pps: float, function_cycles: float, tsc_hz: float) -> float:
    """Return the rate of a device that does the bare one's work and these cycles on top."""
    return 1 / (1 / bare_pps + function_cycles / tsc_hz)


def host_states(rows: Sequence[Row]) -> list[str]:
    """Return, in a sentence, how many rounds were on a degraded host, and what became of these."""
    slow, out = sum(len(row.degraded) for row in rows), sum(row.excluded_rounds for row in rows)
    if not slow:
        return []
    rounds = sum(row.repeats for row in rows)
    rest = f"; the other {slow - out} had too few others at their points" if out < slow else ""
    return [
        f"{slow} of {rounds} rounds ran on a degraded host (cross-L3 placement of the two cores, "
        f"SMT siblings, or a noisy neighbour of the device's core): {out} of these "
        f"are excluded{rest}."
    ]
