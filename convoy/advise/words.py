# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Advice in words, with the numbers it rests on and their age."""

import datetime
from collections.abc import Sequence

from convoy.advise.choose import HEADROOM, IO_BOUND, KINDS, Advice, Number, Option
from convoy.errors import InputError
from convoy.report.run_data import Run


def age_days(run: Run, now: datetime.datetime) -> list[float]:
    """Return how long ago each of a report's runs was begun. Raises InputError: not known."""
    ages = []
    for folder, host in zip(run.folders, run.hosts, strict=True):
        if host["started"] is None:
            raise InputError(f"{folder}/host.json: started: missing: advice says how old it is")
        begun = datetime.datetime.fromisoformat(host["started"])
        ages.append((now - begun).total_seconds() / 86400)
    return ages


def _age(days: float) -> str:
    if days >= 2:
        return f"{days:.0f} days"
    return f"{days * 24:.0f} hours" if days * 24 >= 2 else f"{days * 24 * 60:.0f} minutes"


def _alone(numbers: Sequence[Number]) -> str:
    """Return each deployment's rates of a function alone, the fastest deployment first, in Mpps."""
    by_arm: dict[str, list[Number]] = {}
    for number in numbers:
        by_arm.setdefault(number.arm, []).append(number)
    said = []
    for arm, mine in list(by_arm.items())[:5]:
        rates = sorted({f"{one.rate_pps / 1e6:.2f}" for one in mine}, key=float)
        shown = rates[0] if len(rates) == 1 else f"{rates[0]} to {rates[-1]}"
        emulated = " (emulated)" if mine[0].emulated else ""
        said.append(f"{KINDS.get(arm, arm)} {shown}{emulated}")
    return "; ".join(said)


def _basis(option: Option) -> str:
    numbers = ", ".join(
        f"{' → '.join(n.functions) or 'forwarding'} {n.rate_pps / 1e6:.2f} Mpps"
        for n in option.used
    )
    how = "measured whole" if option.whole else "bounded by its functions measured alone"
    return f"{how}: {numbers}"


def _cores(option: Option, load_pps: float, tsc_hz: float | None) -> str:
    if option.cores == 1:
        share = min(1.0, option.clock_share(load_pps))
        clock = f" (about {share * tsc_hz / 1e9:.1f} GHz)" if tsc_hz else ""
        return (
            f"1 core; with {HEADROOM:.0%} load on it, {share:.0%} of this machine's clock{clock} "
            "would do, where the rate follows the clock"
        )
    return (
        f"at least {option.cores} cores, if flows spread evenly over as many queues: rates of "
        "several cores were not measured here"
    )


def lines(advice: Advice, run: Run, numa: bool) -> list[str]:
    """Return the sentences about one chain. numa: a run knows what another node costs."""
    said = [f"{advice.chain}: {' → '.join(advice.functions) or 'a wire'}, {advice.traffic}"]
    if advice.refusal:
        return [*said, f"  no advice: {advice.refusal}."]
    best = advice.options[0]
    load = advice.traffic.rate_pps
    said.append(f"  run it as {best.what}: {_cores(best, load, run.tsc_hz)}.")
    said.append(f"    {_basis(best)}")
    for option in advice.options[1:]:
        said.append(f"  or {option.what}: {option.cores} core{'s' * (option.cores > 1)}.")
        said.append(f"    {_basis(option)}")
    for function, numbers in advice.each.items():
        kind = "I/O-bound" if function in IO_BOUND else "compute-bound"
        fastest = _alone(numbers)
        said.append(f"  {function} ({kind}), Mpps alone: {fastest or 'not measured'}")
    said += [f"  passed over: {text}" for text in advice.passed_over]
    if best.cores > 1 and not numa:
        said.append(
            "  one server or several: not measured (scenario numa). Until it is, keep the chain on "
            "one NUMA node: handing packets to another one cost the papers' chains throughput "
            "(Niu et al., Figure 4)."
        )
    elif best.cores == 1:
        said.append(
            "  one server or several: one core carries it; keep it on the port's NUMA node."
        )
    return said


def closing(run: Run, now: datetime.datetime) -> Sequence[str]:
    """Return where the numbers come from and how old they are."""
    out = []
    for folder, host, days in zip(run.folders, run.hosts, age_days(run, now), strict=True):
        commit = host.get("commit") or "unknown commit"
        entries = sorted(
            {
                str(setup["entries"])
                for scenario in run.scenarios.values()
                for setup in scenario.get("setups", {}).values()
            }
        )
        out.append(f"measured with {', '.join(entries)} routes and rules: more of them cost more")
        out.append(f"numbers from {folder}: {host['cpu']}, {_age(days)} old, convoy {commit}")
    return out
