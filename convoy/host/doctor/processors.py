# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Processors: how many, how fast, how alone."""

from collections.abc import Iterator
from pathlib import Path

from convoy.chain.machine import ranges
from convoy.host.doctor.finding import Finding
from convoy.host.machine import cpu_list, nodes, number, online, siblings, text

CPU = "sys/devices/system/cpu"


def check(root: Path, allowed: set[int] | None = None) -> Iterator[Finding]:
    """Yield findings about processors; allowed are the CPUs that this process may use."""
    yield _model(root)
    yield _flags(root)
    yield _cores(root, allowed)
    yield _numa(root)
    yield _isolated(root)
    yield _governor(root)
    yield from _boost(root)
    yield from _smt(root)
    yield _clock(root)
    yield _mitigations(root)
    yield _autogroup(root)
    yield from _load(root)


def cpuinfo(root: Path) -> dict[str, str]:
    """Return what /proc/cpuinfo says about the first processor."""
    first = (text(root, "proc/cpuinfo") or "").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _model(root: Path) -> Finding:
    info = cpuinfo(root)
    model = info.get("model name", "unknown processor")
    if "hypervisor" not in info.get("flags", "").split():
        return Finding("processor", "ok", model)
    return Finding(
        "processor",
        "note",
        f"{model}, in a virtual machine",
        "its host may take time away at any moment; compare only what was measured together",
        "measure on bare metal where absolute numbers matter",
    )


def _flags(root: Path) -> Finding:
    flags = set(cpuinfo(root).get("flags", "").split())
    wide = [name for name in ("sse4_2", "avx2", "avx512f") if name in flags]
    if flags and "sse4_2" not in flags:
        return Finding(
            "instructions", "problem", "no SSE4.2", "convoyd needs it", "use an x86-64-v2 machine"
        )
    if flags and "avx2" not in flags:
        return Finding("instructions", "note", " ".join(wide), "hot functions have an AVX2 variant")
    return Finding("instructions", "ok", " ".join(wide) or "unknown")


def _cores(root: Path, allowed: set[int] | None) -> Finding:
    cores = set(online(root)) & allowed if allowed is not None else set(online(root))
    result = f"{len(cores)} ({ranges(cores)})"
    if len(cores) >= 2:
        return Finding("cores", "ok", result)
    return Finding(
        "cores",
        "problem",
        result,
        "the tester and what it measures need a core each",
        "give the machine two cores or more, or widen the affinity: taskset",
    )


def _numa(root: Path) -> Finding:
    by_node: dict[int, list[int]] = {}
    for core, node in nodes(root).items():
        by_node.setdefault(node, []).append(core)
    result = ", ".join(f"node {n}: cores {ranges(c)}" for n, c in sorted(by_node.items()))
    if len(by_node) < 2:
        return Finding("NUMA", "ok", result or "one node")
    return Finding(
        "NUMA",
        "note",
        result,
        "packets that cross nodes can cost half of the throughput",
        "keep workers: cores and network cards on one node",
    )


def _isolated(root: Path) -> Finding:
    isolated = cpu_list(text(root, f"{CPU}/isolated"))
    if isolated:
        return Finding("isolated cores", "ok", ranges(isolated))
    last = max(online(root), default=1)
    return Finding(
        "isolated cores",
        "note",
        "none",
        "the kernel may run other things on a worker's core",
        f"kernel command line: isolcpus={last} nohz_full={last} rcu_nocbs={last}",
    )


def _governor(root: Path) -> Finding:
    files = sorted((root / CPU).glob("cpu[0-9]*/cpufreq/scaling_governor"))
    governors = {text(root, str(file.relative_to(root))) or "" for file in files}
    if not governors:
        return Finding("frequency governor", "ok", "none here")
    if governors == {"performance"}:
        return Finding("frequency governor", "ok", "performance")
    return Finding(
        "frequency governor",
        "problem",
        ", ".join(sorted(governors)),
        "cores change their speed while you measure",
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    )


def _boost(root: Path) -> Iterator[Finding]:
    no_turbo = number(root, f"{CPU}/intel_pstate/no_turbo")
    boost = number(root, f"{CPU}/cpufreq/boost")
    if no_turbo == 0:
        fix = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
    elif boost == 1:
        fix = "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    else:
        if no_turbo is not None or boost is not None:
            yield Finding("turbo", "ok", "off")
        return
    why = "a core's speed then depends on what the others do and on heat"
    yield Finding("turbo", "note", "on", why, fix)


def _smt(root: Path) -> Iterator[Finding]:
    pairs = {threads for threads in siblings(root).values() if len(threads) > 1}
    if pairs:
        yield Finding(
            "hardware threads",
            "note",
            "shared cores: " + " ".join(ranges(pair) for pair in sorted(pairs)),
            "two busy threads of one core slow each other",
            "give workers one thread of each core, or: "
            "echo off | sudo tee /sys/devices/system/cpu/smt/control",
        )


def _clock(root: Path) -> Finding:
    flags = set(cpuinfo(root).get("flags", "").split())
    source = text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource")
    result = f"clock source {source or 'unknown'}"
    if not flags or {"constant_tsc", "nonstop_tsc"} <= flags:
        return Finding("time stamp counter", "ok", f"constant, {result}")
    if "constant_tsc" in flags:
        return Finding("time stamp counter", "ok", f"constant while it does not sleep, {result}")
    return Finding(
        "time stamp counter",
        "problem",
        f"not constant, {result}",
        "cycles per packet and latencies are counted with it",
        "measure on a processor with constant_tsc",
    )


def _mitigations(root: Path) -> Finding:
    folder = root / CPU / "vulnerabilities"
    states = {f.name: text(folder, f.name) or "" for f in sorted(folder.glob("*"))}
    active = [name for name, state in states.items() if "Mitigation" in state]
    open_ = [name for name, state in states.items() if state.startswith("Vulnerable")]
    if not states:
        return Finding("mitigations", "ok", "unknown to this kernel")
    result = f"active: {', '.join(active) or 'none'}" + (
        f"; not mitigated: {', '.join(open_)}" if open_ else ""
    )
    if not active:
        return Finding("mitigations", "ok", result)
    return Finding(
        "mitigations",
        "note",
        result,
        "they slow system calls and kernel datapaths, little what polls; report them with results",
        "only where every program is trusted: kernel command line mitigations=off",
    )


def _autogroup(root: Path) -> Finding:
    if number(root, "proc/sys/kernel/sched_autogroup_enabled") == 1:
        return Finding(
            "autogroup",
            "note",
            "on",
            "nice ranks programs of one session only: a nice compiler elsewhere still takes half a "
            "core",
            "sudo sysctl kernel.sched_autogroup_enabled=0",
        )
    return Finding("autogroup", "ok", "off")


def _load(root: Path) -> Iterator[Finding]:
    words = (text(root, "proc/loadavg") or "").split()
    try:
        load = float(words[0])
    except (IndexError, ValueError):
        return
    result = f"{load:g} in the last minute"
    if load < 0.5:
        yield Finding("load", "ok", result)
    else:
        yield Finding(
            "load",
            "note",
            result,
            "something else runs; what is measured now is disturbed",
            "end it: top -o %CPU",
        )
