# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A checked descriptor to a plan: what convoyd reads (docs/plan.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.base.model import Model
from convoy.base.problem import Problem, shown
from convoy.chain import links
from convoy.chain.cache import Cache
from convoy.chain.descriptor import Descriptor
from convoy.chain.functions import function_type, outputs_of, settings
from convoy.chain.load import Loaded
from convoy.chain.machine import Machine
from convoy.chain.openflow import TLS_FILES, is_path
from convoy.chain.parameters import FILES
from convoy.chain.place import place, ways
from convoy.chain.ports import Pcap, Port, Steering

SCHEMA = "convoy.plan/1"
MEMORY_MB = 1024  # ordinary memory: taken from the system only when touched
MEMORY_HUGEPAGES_MB = 512
_NOTHING_MOVES = Problem(
    ("workers", "scale"),
    "no queue can move: all chains pass functions that remember packets, are dealt out, or are "
    "pipelines",
    "remove it",
    "'auto'",
)


@dataclass(frozen=True)
class Plan:
    """A plan, and what a person should know about it."""

    data: dict[str, Any]  # JSON values
    notes: tuple[str, ...] = ()

    @property
    def chains(self) -> list[dict[str, Any]]:
        """The chains, by direction."""
        return list(self.data["chains"])


def make_plan(loaded: Loaded, machine: Machine, running: dict[str, Any] | None = None) -> Plan:
    """Decide everything that the descriptor leaves open.

    running: the plan of a node that is to go over to it: functions keep their order, and workers
    their queues.
    """
    descriptor = loaded.descriptor
    _refuse_places(loaded)
    placement = place(descriptor, machine, running)
    if descriptor.workers.scale == "auto" and not any("moves" in s for s in placement.stages):
        raise loaded.text.error([_NOTHING_MOVES])
    eal, notes = _memory(loaded, machine)
    used = {name for chain in descriptor.chains.values() for name in chain.path}
    unused = [name for name in descriptor.functions if name not in used]
    if unused:
        notes = (*notes, f"in no chain, only checked: {', '.join(unused)}")
    notes = (*notes, *_cache_notes(descriptor), *_spread_notes(descriptor))
    data = {
        "schema": SCHEMA,
        "ports": [
            _port(name, port, loaded.base, machine) for name, port in descriptor.ports.items()
        ],
        **_convoys(descriptor, loaded.base),
        "functions": [
            {
                "name": name,
                "type": function_type(function),
                "config": _config(loaded, name, function),
                **_outputs(function),
            }
            for name, function in _in_order(descriptor, running)
        ],
        "chains": [way.as_plan() for way in ways(descriptor)],
        "stages": list(placement.stages),
        "workers": [{"core": core, "idle": descriptor.workers.idle} for core in placement.cores],
        **({"flows": descriptor.flows.model_dump()} if _asks_flows(descriptor) else {}),
        "eal": eal,
        **_optional("telemetry", descriptor.telemetry),
        **_optional("control", descriptor.control),
        **_openflow(loaded, machine),
        **_standby(loaded),
        **({"run_as": descriptor.run_as} if descriptor.run_as else {}),
    }
    return Plan(data, (*placement.notes, *notes))


def files_of(plan: Mapping[str, Any]) -> list[str]:
    """Return the files that parameters of a plan's functions name, each once."""
    functions = [one for one in plan.get("functions") or () if isinstance(one, dict)]
    named = [
        config[key]
        for config, kind in ((one.get("config"), one.get("type")) for one in functions)
        for key in FILES.get(str(kind), ())
        if isinstance(config, dict) and isinstance(config.get(key), str)
    ]
    return list(dict.fromkeys(named))


def _refuse_places(loaded: Loaded) -> None:
    """A plan is of one node. Raises DescriptorError where functions are placed elsewhere."""
    problems = [
        Problem(
            ("functions", name, "place"),
            "only convoy run and convoy check know other places than the node",
            "remove it, or run the file with convoy run",
            shown(function.place),
        )
        for name, function in loaded.descriptor.functions.items()
        if function.place != "inline"
    ]
    if problems:
        raise loaded.text.error(problems)


def _cache_notes(descriptor: Descriptor) -> list[str]:
    return [
        f"answers of {name}: {parameters.memory_mb:,} MiB"
        for name, function in descriptor.functions.items()
        if isinstance(parameters := settings(function), Cache)
    ]


def _spread_notes(descriptor: Descriptor) -> list[str]:
    """Say which next hops share packets: a forgotten `for` looks the same."""
    sharing: dict[tuple[str, str], list[str]] = {}
    for name, next_hop in descriptor.next_hops.items():
        for port in dict.fromkeys(next_hop.leaving or [next_hop.port]):
            for match in next_hop.for_:
                sharing.setdefault((port, str(match)), []).append(name)
    return [
        f"next hops {', '.join(names)} share {match} out of {port}: each flow goes to one of them"
        for (port, match), names in sharing.items()
        if len(names) > 1
    ]


def _in_order(descriptor: Descriptor, running: dict[str, Any] | None) -> list[tuple[str, Any]]:
    """Return the functions by name: those that run in their order, then the others."""
    before = [one["name"] for one in running["functions"]] if running else []
    names = [name for name in before if name in descriptor.functions]
    names += [name for name in descriptor.functions if name not in before]
    return [(name, descriptor.functions[name]) for name in names]


def _asks_flows(descriptor: Descriptor) -> bool:
    return "flows" in descriptor.model_fields_set


def _memory(loaded: Loaded, machine: Machine) -> tuple[dict[str, Any], tuple[str, ...]]:
    memory = loaded.descriptor.memory
    need = memory.mb or MEMORY_HUGEPAGES_MB
    huge = memory.hugepages == "always" or (
        memory.hugepages == "auto" and machine.hugepages_free_mb >= need
    )
    if huge:
        return {"hugepages": True, "memory_mb": need}, (f"memory: {need} MiB of hugepages",)
    size = memory.mb or MEMORY_MB
    why = (
        "as the descriptor says"
        if memory.hugepages == "never"
        else f"{machine.hugepages_free_mb} MiB of hugepages are free to us, {need} are needed"
    )
    return {"hugepages": False, "memory_mb": size}, (
        f"memory: {size} MiB without hugepages ({why})",
    )


def _optional(key: str, model: Model) -> dict[str, Any]:
    values = model.model_dump(exclude_none=True)
    return {key: values} if values else {}


def _openflow(loaded: Loaded, machine: Machine) -> dict[str, Any]:
    """Return the controllers, with paths as the node finds them."""
    openflow = loaded.descriptor.openflow
    if openflow is None:
        return {}
    values = openflow.model_dump(exclude_none=True)
    for key in ("controllers", "listen"):
        values[key] = [_resolved(target, loaded.base, machine) for target in values[key]]
    for key in TLS_FILES:
        if key in values:
            values[key] = str(loaded.base / values[key])
    return {"openflow": values}


def _standby(loaded: Loaded) -> dict[str, Any]:
    """Return the standby, with its key's path as the node finds it."""
    standby = loaded.descriptor.standby
    if standby is None:
        return {}
    values = standby.model_dump(exclude_none=True)
    values["key_file"] = str(loaded.base / standby.key_file)
    return {"standby": values}


def _resolved(target: str, base: Path, machine: Machine) -> str:
    if not is_path(target):
        return target
    kind, _, path = target.partition(":")
    return f"{kind}:{links.socket_path(path, base, machine.runtime_dir)}"


def _convoys(descriptor: Descriptor, base: Path) -> dict[str, Any]:
    """Return which ports carry convoys, and the next hops; nothing where none does."""
    ports = [
        {"port": name, **port.convoys.as_plan(base)}
        for name, port in descriptor.ports.items()
        if port.convoys is not None
    ]
    next_hops = [next_hop.as_plan(name, base) for name, next_hop in descriptor.next_hops.items()]
    return {"convoys": ports, "next_hops": next_hops} if ports else {}


def _port(name: str, port: Port, base: Path, machine: Machine) -> dict[str, Any]:
    values = port.model_dump(exclude_none=True, exclude_defaults=True, exclude={"convoys"})
    if isinstance(port, Pcap):
        del values["pcap"]
        values |= {
            key: str(base / file) for key, file in port.pcap.model_dump(exclude_none=True).items()
        }
    elif isinstance(port, Steering):
        values["key"] = str(base / port.key)
    elif port.socket:
        values["path"] = str(links.socket_path(values["path"], base, machine.runtime_dir))
        side = "mode" if "mode" in type(port).model_fields else "role"
        values[side] = getattr(port, side)
    if "queues" in type(port).model_fields:
        values["queues"] = port.rx_queues
    return {"name": name, "kind": port.kind, **values}


def _outputs(function: Any) -> dict[str, Any]:
    outputs = [{"name": name, "chain": chain} for name, chain in outputs_of(function).items()]
    return {"outputs": outputs} if outputs else {}


def _config(loaded: Loaded, name: str, function: Any) -> dict[str, Any]:
    values = settings(function).as_plan()
    for key in FILES.get(function_type(function), ()):
        if key in values:
            values[key] = str(loaded.base / values[key])
    if function_type(function) == "bridge" and "sides" not in values:
        values["sides"] = (
            links.bridge_sides(loaded.descriptor, name) or list(loaded.descriptor.ports)[:2]
        )
    return values
