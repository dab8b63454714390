# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A plan with capture files in place of the ends of one of its chains."""

from pathlib import Path
from typing import Any

from convoy.base.problem import known
from convoy.chain.plan import Plan
from convoy.errors import InputError


def with_captures(plan: Plan, read: Path | None, write: Path | None, chain: str | None) -> Plan:
    """Return a plan whose chain comes in from one capture and leaves to another.

    Where there is a `read`, only what comes in by that port remains; all other ports discard what
    they are sent. chain may be None where all chains come in by one port. Raises InputError.
    """
    if read is not None and write is not None and read.resolve() == write.resolve():
        raise InputError(f"--write: {write}: is the capture that --read reads; name another file")
    data = plan.data
    selected = _select(data["chains"], chain)
    if "in" not in selected:
        raise InputError(
            f"--chain: '{selected['name']}': only outputs lead there; name the chain before it"
        )
    ends = {selected["in"]: read, selected["out"]: write}
    chains, stages = data["chains"], data["stages"]
    notes = plan.notes
    if read is not None:
        chains = [c for c in chains if c.get("in", selected["in"]) == selected["in"]]
        names = [c["name"] for c in chains]
        polled = _by_first_queue([s for s in stages if s["chain"] in names])
        workers = {stage["worker"] for stage in polled}
        from_outputs = [s for s in stages if "outputs" in s["source"] and s["worker"] in workers]
        stages = [*polled, *from_outputs]
        left_out = [c["name"] for c in data["chains"] if c not in chains]
        if left_out:
            notes = (*notes, f"not run, they come in by other ports: {', '.join(left_out)}")
    used = sorted({stage["worker"] for stage in stages})
    captures = {
        port: {"read": str(read.absolute())} if read and port == selected["in"] else {}
        for port in ends
    }
    if write is not None:
        captures[selected["out"]]["write"] = str(write.absolute())
    ports = [
        _port(port, captures.get(port["name"], {}), keep=read is None) for port in data["ports"]
    ]
    return Plan(
        {
            **data,
            "ports": ports,
            "chains": chains,
            "stages": [{**stage, "worker": used.index(stage["worker"])} for stage in stages],
            "workers": [data["workers"][i] for i in used],
        },
        notes,
    )


def _select(chains: list[dict[str, Any]], name: str | None) -> dict[str, Any]:
    names = [chain["name"] for chain in chains]
    if name is not None:
        if name not in names:
            raise InputError(
                f"--chain: '{name}': no chain is called so; {known('chains', name, names)}"
            )
        return chains[names.index(name)]
    forward = [c for c in chains if "in" in c and not c["name"].endswith(".back")]
    if len({(chain["in"], chain["out"]) for chain in forward}) > 1:
        raise InputError(
            f"--read, --write: which chain do the captures belong to? Add --chain NAME: "
            f"{', '.join(names)}"
        )
    return forward[0]


def _port(port: dict[str, Any], capture: dict[str, str], keep: bool) -> dict[str, Any]:
    # Hosts capture before their network card cuts: a capture takes frames of any length.
    common: dict[str, Any] = {key: port[key] for key in ("name", "mac") if key in port}
    if capture:
        return {**common, "kind": "pcap", **capture}
    return port if keep else {**common, "kind": "null"}


def _by_first_queue(stages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the stages that packets of queue 0 pass: a capture has only this one."""
    by_ring = {s["source"]["ring"]: s for s in stages if "ring" in s["source"]}
    result = []
    for head in stages:
        if "port" in head["source"] and head["source"].get("queue", 0) == 0:
            stage: dict[str, Any] | None = head
            while stage is not None:
                result.append(stage)
                stage = by_ring.get(stage["sink"].get("ring"))
    return result
