# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run's results in sentences."""

from collections.abc import Iterator, Sequence
from operator import attrgetter

from convoy.report import changes
from convoy.report.applications import sentences
from convoy.report.gains import bound, gain, pairs
from convoy.report.latency_stages import latency_sums, timing_costs
from convoy.report.line_rate import LINE_RATES_GBPS, line_rate_pps
from convoy.report.noise import Difference, critical, paired
from convoy.report.rates import expected_pps, host_states
from convoy.report.row import Row
from convoy.report.run_data import Run

NAMED_MAX = 6  # in one sentence
SHARED = "share a core"  # in notes of convoy/dut/switch_vnf.py


def mpps(row: Row) -> str:
    """Return a row's rate with its least and most, and of how many rounds if not of all."""
    low, high, result = min(row.rates_pps) / 1e6, max(row.rates_pps) / 1e6, len(row.rates_pps)
    rounds = f", {result} of {row.repeats} rounds" if result < row.repeats else ""
    least = "≥ " if row.lower_bound else ""
    return f"{least}{(row.rate_pps or 0) / 1e6:.2f} [{low:.2f} .. {high:.2f}{rounds}]"


def counted(number: int, noun: str) -> str:
    """Return so many of something."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def size_name(size: str) -> str:
    """Return a frame size as people write it."""
    return f"{size} B" if size.isdigit() else size


def times(difference: Difference, noise: float) -> str:
    """Return a difference as people read it, or that it is not significant."""
    if not difference.counts(noise):
        return "not significantly different from"
    share = difference.share
    if share > 0:
        if share < 0.5:
            return f"{share:.0%} faster than"
        return f"{1 + share:.{2 if share < 9 else 0}f} times as fast as"
    return f"{-share:.0%} slower than" if share > -0.5 else f"{1 + share:.2f} times the rate of"


def _setup(run: Run, scenario: str, name: str) -> str:
    """Return a setup's name; where that is a number, with what there are so many of."""
    if not name.isdigit():
        return name
    spec, number = run.scenarios[scenario].setups[name], int(name)
    if number == spec.convoys:
        return f"{counted(number, 'packet')} in a frame"
    return counted(number, "function") if number == len(spec.functions) else name


def _point(run: Run, scenario: str, setup: str, size: str) -> str:
    return f"{_setup(run, scenario, setup)}, {size_name(size)}"


def _of(run: Run, row: Row) -> str:
    return f"{row.name}, {_point(run, row.scenario, row.setup, row.size)}"


def _groups(run: Run, scenario: str) -> Iterator[tuple[str, str, list[Row]]]:
    """Yield setup, size, and all contenders of one run that have a rate, the fastest first."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in run.of(scenario):
        if row.rate_pps and row.contends:
            groups.setdefault((row.run, row.setup, row.size), []).append(row)
    for (_, setup, size), rows in groups.items():
        # A response curve is no contender.
        real = [row for row in rows if row.device != "dummy"] or rows
        yield setup, size, sorted(real, key=lambda row: -(row.rate_pps or 0))


def _smallest(run: Run, scenario: str) -> Iterator[tuple[str, str, list[Row]]]:
    """Yield of each setup the first group alone: that of its smallest frames."""
    seen = set()
    for setup, size, rows in _groups(run, scenario):
        if (rows[0].run, setup) not in seen:
            seen.add((rows[0].run, setup))
            yield setup, size, rows


def _compared(run: Run, scenario: str) -> list[str]:
    """Return a sentence for each setup at its smallest frames."""
    lines = []
    for setup, size, rows in _smallest(run, scenario):
        best = rows[0]
        noise = run.noise_floor(scenario, size, best.run)
        text = f"{_point(run, scenario, setup, size)}: **{best.name} {mpps(best)} Mpps**"
        others = []
        for row in rows[1:]:
            difference = paired(best.rounds, row.rounds)
            if difference is None or noise is None or difference.rounds < 2:
                others.append(f"{row.name} {mpps(row)}")
            else:
                others.append(f"{times(difference, noise)} {row.name} ({mpps(row)})")
        lines.append(text + (": " + "; ".join(others) if others else "") + ".")
    return lines


def _reached(rows: Sequence[Row]) -> str:
    """Return which line rates a device reaches, from which frame size on."""
    from_size: dict[str, list[str]] = {}
    for gbps in LINE_RATES_GBPS:
        least = None
        for row in sorted(rows, key=lambda row: -(row.frame_bytes or 0)):
            if (row.rate_pps or 0) < line_rate_pps(gbps, row.frame_bytes or 0):
                break
            least = row
        if least is not None:
            from_size.setdefault(size_name(least.size), []).append(str(gbps))
    each = [f"{' and '.join(rates)} Gb/s from {size} on" for size, rates in from_size.items()]
    return ", ".join(each) or "not 1 Gb/s"


def _line_rates(run: Run, scenario: str) -> Iterator[str]:
    """Yield, for each setup with several frame sizes, which lines of Ethernet each device fills."""
    setups: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in run.of(scenario):
        if row.contends and row.rate_pps and row.frame_bytes:
            devices = setups.setdefault((row.run, row.setup), {})
            devices.setdefault(row.name, []).append(row)
    for (_, setup), devices in setups.items():
        each = [f"{name} {_reached(rows)}" for name, rows in devices.items() if len(rows) > 1]
        if each:
            yield f"{_setup(run, scenario, setup)}, line rate is reached: {'; '.join(each)}."


def _halfway(run: Run, scenario: str) -> list[str]:
    """Return the median latencies at half of PDR, for each setup at its smallest frames."""
    lines = []
    for setup, size, rows in _smallest(run, scenario):
        result = sorted((row.p50_ns, row.name) for row in rows if row.p50_ns is not None)
        each = ", ".join(f"{name} {value / 1e3:.1f} us" for value, name in result)
        if each:
            what = _point(run, scenario, setup, size)
            lines.append(f"{what}, median latency at half of PDR: {each}.")
    return lines


def _delays(run: Run, scenario: str) -> list[str]:
    """Return what latency at a low rate is beside latency at a high one: the batching trap."""
    lines = []
    if not run.scenarios[scenario].rates_pps:
        return _halfway(run, scenario)
    for row in run.of(scenario):
        if not row.contends or len(row.delays) < 2:
            continue
        ordered = sorted(row.delays, key=lambda delay: delay.rate_pps)
        # The highest that it still kept up with; beyond it, latency is that of a full queue.
        kept = [delay for delay in ordered if (delay.lost_ratio or 0) <= 0.005]
        low, high = ordered[0], kept[-1] if len(kept) > 1 else ordered[-1]
        idle, loaded = low.quantile(0.5), high.quantile(0.5)
        if idle and loaded:
            lost = f", {high.lost_ratio:.0%} lost" if (high.lost_ratio or 0) > 0.01 else ""
            lines.append(
                f"{_of(run, row)}: median latency "
                f"**{idle / 1e3:.1f} us** at {low.load}, {loaded / 1e3:.1f} us at "
                f"{high.load}{lost}."
            )
    return lines


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _cpu(run: Run, scenario: str) -> Iterator[str]:
    """Yield what a packet costs in CPU time at the lowest and the highest load."""
    if run.scenarios[scenario].figure.y != "cpu":
        return
    for row in run.of(scenario):
        by_rate = sorted(row.delays, key=lambda delay: delay.rate_pps)
        each = [
            f"**{_short(cpu_us)} us** at {delay.load} (p99 latency "
            f"{(delay.quantile(0.99) or 0) / 1e3:.1f} us)"
            for delay in by_rate
            if (cpu_us := delay.cpu_us_per_packet) is not None
        ]
        if not row.contends or len(each) < 2:
            continue
        yield f"{_of(run, row)}: CPU time for a packet {each[0]}, {each[-1]}."


def _reordered(run: Run, scenario: str) -> Iterator[str]:
    """Yield where packets came out of order, and how many."""
    for row in run.of(scenario):
        for delay in row.delays:
            if delay.reordered_ratio:
                yield (
                    f"{_of(run, row)}, {delay.load}: **{delay.reordered_ratio:.2%}** of the "
                    "packets came out of order within their flow."
                )


def _stages(run: Run, scenario: str) -> Iterator[str]:
    """Yield what the parts of a packet's way add up to, beside what the tester measured."""
    for row, delay, added in latency_sums(run, scenario):
        longest = max(delay.stages, key=attrgetter("mean_ns"))
        yield (
            f"{_of(run, row)}, {delay.load}: {added.text}. The tester's median is "
            f"{(delay.quantile(0.5) or 0) / 1e3:.2f} us. The longest part is {longest.where} with "
            f"{longest.mean_ns / 1e3:.2f} us."
        )
    yield from (cost.text for cost in timing_costs(run, scenario))


def _bare(run: Run, scenario: str) -> Iterator[str]:
    """Yield what convoy's functions leave of the rate of testpmd, which has none."""
    for bare in run.of(scenario):
        longest = max(
            (
                row for row in run.of(scenario)
                if row.contends and row.device == "convoy" and row.conditions.plain
                and (row.run, row.size) == (bare.run, bare.size)
                and row.rate_pps and row.function_cycles_per_packet
            ),
            key=lambda row: len(row.functions), default=None,
        )  # fmt: skip
        if bare.device != "testpmd" or bare.functions or not bare.rate_pps or not bare.tsc_hz:
            continue
        if longest is not None and bare.contends:
            own = longest.function_cycles_per_packet or 0.0
            expected = expected_pps(bare.rate_pps, own, bare.tsc_hz)
            yield (
                f"{longest.path}, {size_name(bare.size)}: the functions themselves took {own:.0f} "
                f"cycles per packet. testpmd with these on top would forward {expected / 1e6:.2f} "
                f"Mpps; {longest.name} reached {(longest.rate_pps or 0) / expected:.0%} of that."
            )
            return


def _in_convoys(run: Run, scenario: str) -> Iterator[str]:
    """Yield what convoys gain, for each setup at its smallest frames."""
    seen = set()
    for row, plain in pairs(run, scenario):
        result = gain(row, plain)
        if result is not None and (row.name, row.setup) not in seen:
            seen.add((row.name, row.setup))
            middle, least, most = result
            yield (
                f"{row.name}, {row.setup} over {plain.setup}, {size_name(row.size)}: "
                f"**{bound(row, plain)}{middle:.2f} times** the rate [{least:.2f} .. {most:.2f}]."
            )


def _noise(run: Run, scenario: str) -> Iterator[str]:
    """Yield each run's noise floor."""
    for name in dict.fromkeys(row.run for row in run.of(scenario) if row.rates_pps):
        pairs = run.noise_pairs(scenario, name)
        if not pairs:
            where = f" in {name}" if name else ""
            yield f"No A/A control was measured{where}: the noise floor is not known."
            continue
        sizes = dict.fromkeys(row.size for row, _ in pairs)
        each = ", ".join(
            f"**{run.noise_floor(scenario, size, name) or 0:.1%}** at {size_name(size)}"
            for size in sizes
        )
        who, rounds = pairs[0][0], pairs[0][1].rounds
        setup = _setup(run, scenario, who.setup)
        value = f", critical value {critical(rounds - 1):.2f} at {rounds}" if rounds > 1 else ""
        yield (
            f"Noise floor: {each} ({who.name}, {setup}, against its A/A control, "
            f"{counted(rounds, 'round')}). Differences are significant beyond it, if Student's "
            f"paired t-test on log ratios agrees (5 %{value})."
        )


def _ports(rows: Sequence[Row]) -> list[str]:
    kinds: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.device != "dummy":
            kinds.setdefault(row.port_kind, {})[row.device] = None
    each = "; ".join(f"{', '.join(devices)} by {kind}" for kind, devices in kinds.items())
    text = f"Different kinds of ports, so rates do not compare directly: {each}."
    return [text] if len(kinds) > 1 else []


def _sharing(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how the parts of a device divide one core: rates depend on it."""
    how: dict[str, dict[str, None]] = {}
    for row in (row for row in rows if row.role == "device"):
        for note in row.notes:
            if SHARED in note:
                how.setdefault(note, {})[row.name] = None
    for note, names in how.items():
        yield f"{', '.join(names)}: {note}."


def _failures(run: Run, scenario: str) -> list[str]:
    lines, mine = [], run.of(scenario)
    for name in dict.fromkeys(row.name for row in mine):
        why = dict.fromkeys(text for row in mine if row.name == name for text in row.failed)
        lines += [f"**{name} failed**: {text}" for text in list(why)[:2]]
    return lines


def of_scenario(run: Run, scenario: str) -> list[str]:
    """Return the sentences about one scenario."""
    lines = _compared(run, scenario) + _delays(run, scenario)[:12]
    lines += [*_line_rates(run, scenario), *_cpu(run, scenario), *_stages(run, scenario)]
    lines += [*_reordered(run, scenario), *changes.sentences(run, scenario)]
    lines += [*_bare(run, scenario), *_in_convoys(run, scenario), *_noise(run, scenario)]
    lines += sentences(run.served(scenario))
    lines += [*_ports(run.of(scenario)), *_sharing(run.of(scenario))]
    return lines + _failures(run, scenario)


def _opening(run: Run) -> Iterator[str]:
    """Yield, of several scenarios, what each is about; the rest stands in its own section."""
    for scenario in run.scenarios:
        short = _compared(run, scenario) or _delays(run, scenario)[:3]
        for text in short + sentences(run.served(scenario)) + _failures(run, scenario):
            yield f"{scenario}: {text}"
    if any(_ports(run.of(name)) for name in run.scenarios):
        yield from _ports(run.rows)


def _two_machines(run: Run) -> Iterator[str]:
    """Yield where devices stood, if that was not beside the tester."""
    for host, plan in zip(run.hosts, run.plans, strict=True):
        if host.device_host is None or plan.device_host is None:
            continue
        there = host.device_host
        wires = ", ".join(f"{name} ({what})" for name, what in there.nics.items())
        yield (
            f"**The devices stood on another machine**, {plan.device_host.host}: {there.cpu}, "
            f"kernel {there.kernel}, reached by {wires}. All times are the tester's: latencies "
            "include both machines' interfaces."
        )


def _smoke(run: Run) -> Iterator[str]:
    """Yield that a run was none that measures."""
    if any(plan.profile == "smoke" for plan in run.plans):
        yield (
            "**A smoke run: it shows that everything works, and measures nothing.** A rate may be "
            "half of what the device can do, or less: its trials are short, few and not repeated."
        )


def _can(run: Run, name: str, setup: str, device: str) -> bool:
    """Return whether a device can be measured in a setup of a scenario."""
    return not any(
        one.scenario == name and one.setup in ("", setup) and one.device in ("", device)
        for one in run.cannot
    )


def _ended_before(run: Run) -> Iterator[str]:
    """Yield of which scenarios there are fewer rounds than were asked for."""
    for plan in run.plans:
        few: dict[int, list[str]] = {}
        for name, scenario in plan.scenarios.items():
            rows = run.of(name)
            rounds = max((row.repeats for row in rows), default=0)
            fails = bool(rows) and all(row.failed for row in rows)  # not tried for ever
            wanted = scenario.packets and any(
                _can(run, name, setup, device)
                for setup, spec in scenario.setups.items()
                for device in spec.devices or scenario.devices
            )
            chosen = plan.only.get(name, (None,))  # of the points that claims are about
            if rounds < plan.repeats and not fails and (rows or (wanted and chosen)):
                few.setdefault(rounds, []).append(name)
        for rounds, names in sorted(few.items(), reverse=True):
            which = f"round {rounds}" if rounds else "no round"
            whose = ", ".join(names) if len(names) <= NAMED_MAX else f"{len(names)} scenarios"
            yield (
                f"**The run ended after {which} of {plan.repeats}** of {whose}; "
                "`convoy bench resume` does the others."
            )


def findings(run: Run) -> list[str]:
    """Return the sentences that a report opens with."""
    lines = [*_smoke(run), *_two_machines(run), *_ended_before(run)]
    invalid, trials = sum(row.invalid for row in run.rows), sum(row.trials for row in run.rows)
    if invalid > trials / 5:
        lines.append(
            f"**{invalid} of {trials} trials are invalid: other programs used these cores.** "
            "Repeat the run on an idle machine before you use a number."
        )
    lines += of_scenario(run, *run.scenarios) if len(run.scenarios) == 1 else _opening(run)
    if trials and invalid <= trials / 5:
        lines.append(
            f"{invalid} of {trials} trials are invalid and were discarded: preemption or SMT "
            "contention explains their losses or delays."
        )
    lines += host_states(run.rows)
    not_reached = sum(row.load_not_reached for row in run.rows)
    if not_reached:
        lines.append(
            f"{counted(not_reached, 'trial')} did not reach the offered load: the tester's core "
            "does the kernel's work too, or the load exceeds the tester's baseline rate."
        )
    remarks = {name: text for host in run.hosts for name, text in host.remarks.items()}
    lines += [f"**{name}: {text}.**" for name, text in remarks.items()]
    return lines
