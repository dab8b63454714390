# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Advice in words, with the numbers it rests on and their age."""

import datetime
from collections.abc import Sequence

from convoy.advise.choose import HEADROOM, Advice, Option
from convoy.advise.evidence import Rate, Way
from convoy.advise.model import left_out
from convoy.errors import InputError
from convoy.report.run_data import Run

MOST = 5  # ways that are shown for a function alone


def age_days(run: Run, now: datetime.datetime) -> list[float]:
    """Return how long ago each of a report's runs was begun. Raises InputError: not known."""
    ages = []
    for folder, host in zip(run.folders, run.hosts, strict=True):
        if host.started is None:
            raise InputError(f"{folder}/host.json: started: missing: advice says how old it is")
        begun = datetime.datetime.fromisoformat(host.started)
        ages.append((now - begun).total_seconds() / 86400)
    return ages


def _age(days: float) -> str:
    if days >= 2:
        return f"{days:.0f} days"
    return f"{days * 24:.0f} hours" if days * 24 >= 2 else f"{days * 24 * 60:.0f} minutes"


def _alone(rates: Sequence[tuple[Way, Rate]]) -> str:
    """Return a function's rates alone on one core, the fastest way first, each with its row."""
    parts = []
    for way, rate in rates[:MOST]:
        emulated = " (emulated)" if rate.emulated else ""
        parts.append(f"{way}{emulated} {rate}")
    return "; ".join(parts)


def _basis(option: Option) -> str:
    rates = "; ".join(f"{rate.path} {rate}" for rate in option.used)
    how = "measured whole" if option.whole else "bounded by its functions measured alone"
    return f"{how}: {rates}"


def _one_core(option: Option, load_pps: float) -> str:
    tsc_hz = option.used[0].tsc_hz
    share = option.clock_share(load_pps)
    carries = option.capacity_pps * HEADROOM / 1e6
    text = (
        f"one core: {option.capacity_pps / 1e6:.2f} Mpps, {carries:.2f} with {HEADROOM:.0%} load "
        "on it"
    )
    if share > 1:
        return f"{text}: not enough"
    clock = f" (about {share * tsc_hz / 1e9:.1f} GHz)" if tsc_hz else ""
    return f"{text}; {share:.0%} of this machine's clock{clock} would do, where the rate follows it"


def _several_cores(option: Option) -> str:
    if not option.several:
        return "several cores: not measured for this chain"
    each = "; ".join(
        f"{rate.cores} cores {rate.rate_pps / option.capacity_pps:.1f} times as much, {rate}"
        for rate in option.several
    )
    return f"several cores: {each}"


def _servers(advice: Advice) -> str:
    if advice.servers:
        each = "; ".join(map(str, advice.servers))
        return f"a second server, with a function on each: {each}"
    return "a second server, with a function on each: not measured (scenario numa)"


def _count(option: Option) -> str:
    least = "" if option.measured_cores else "at least "
    more = "" if option.measured_cores else ", if flows spread evenly over as many queues"
    return f"{least}{option.cores} core{'s' * (option.cores > 1)}{more}"


def lines(advice: Advice) -> list[str]:
    """Return the sentences about one chain."""
    parts = [f"{advice.chain}: {' → '.join(advice.functions) or 'a wire'}, {advice.traffic}"]
    if advice.refusal:
        return [*parts, f"  no advice: {advice.refusal}."]
    best = advice.options[0]
    parts.append(f"  run it as {best.way}: {_count(best)}.")
    parts.append(f"    {_basis(best)}")
    parts.append(f"    {_one_core(best, advice.traffic.rate_pps)}")
    parts.append(f"    {_several_cores(best)}")
    parts.append(f"    {_servers(advice)}")
    for option in advice.options[1:]:
        parts.append(f"  or {option.way}: {_count(option)}.")
        parts.append(f"    {_basis(option)}")
    for function, rates in advice.each.items():
        parts.append(f"  {function}, {advice.bounds[function]}")
        parts.append(f"    alone on one core: {_alone(rates) or 'not measured'}")
    return parts + [f"  passed over: {text}" for text in advice.passed_over]


def closing(run: Run, now: datetime.datetime) -> Sequence[str]:
    """Return where the numbers come from and how old they are, and which were left out."""
    out = [f"left out: {what}" for what in left_out(run.rows)]
    for folder, host, days in zip(run.folders, run.hosts, age_days(run, now), strict=True):
        commit = host.commit or "unknown commit"
        out.append(f"numbers from {folder}: {host.cpu}, {_age(days)} old, convoy {commit}")
    return out
