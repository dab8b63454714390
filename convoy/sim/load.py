# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A topology file to a checked topology; every problem with its file, line, value and fix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from convoy.base.problem import Problem, known
from convoy.base.validate import validate
from convoy.base.yaml_text import Text, parse, read
from convoy.errors import InputError
from convoy.sim.model import Topology

BEGIN = "see examples/sim/"


@dataclass(frozen=True)
class Loaded:
    """A topology that is right, and where it came from."""

    topology: Topology
    text: Text
    base: Path  # relative paths in it start here

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.topology.title or Path(self.text.path).stem


def names() -> list[str]:
    """Return the topologies that come with Convoy."""
    folder = resources.files("convoy.sim").joinpath("topologies")
    return sorted(p.name.removesuffix(".yaml") for p in folder.iterdir())


def open_topology(name: str, overrides: Mapping[str, Any] | None = None) -> Loaded:
    """Open a file, or a topology that comes with Convoy. Raises InputError.

    overrides: dotted places in the document to new values, e.g. functions.fw.instances.
    """
    if name in names() and not Path(name).exists():
        folder = resources.files("convoy.sim").joinpath("topologies")
        text = parse(folder.joinpath(f"{name}.yaml").read_bytes(), name)
        base = Path.cwd()
    else:
        text = read(Path(name), BEGIN)
        base = Path(name).parent.absolute()
    for place, value in (overrides or {}).items():
        override(text, place, value)
    return check(text, base)


def loads(content: str, base: Path | None = None, name: str = "<text>") -> Loaded:
    """Load a topology from memory. Raises InputError."""
    return check(parse(content.encode(), name, BEGIN), base or Path.cwd())


def check(text: Text, base: Path) -> Loaded:
    """Check a parsed topology. Raises DescriptorError with every problem."""
    topology = validate(text, Topology)
    result = _problems(topology)
    if result:
        raise text.error(result)
    return Loaded(topology, text, base)


def override(text: Text, place: str, value: Any) -> None:
    """Put another value at a dotted place of a parsed topology. Raises InputError."""
    *path, last = place.split(".")
    at = text.data
    for key in path:
        at = at.setdefault(key, {}) if isinstance(at, dict) else None
    if not isinstance(at, dict):
        raise InputError(f"{text.path}: there is no place '{place}'; name keys of mappings")
    at[last] = value
    for end in range(1, len(path) + 2):  # so that a complaint can name the place
        place_of = tuple(place.split(".")[:end])
        text.lines.setdefault(place_of, text.line(place_of[:-1]))


def _problems(topology: Topology) -> list[Problem]:
    result: list[Problem] = []
    for name, chain in topology.chains.items():
        at = ("chains", name)
        if chain.from_ not in topology.sources:
            fix = known("sources", chain.from_, topology.sources)
            result.append(Problem((*at, "from"), "no such source", fix, f"'{chain.from_}'"))
        if chain.to in topology.functions:
            what = "a function cannot end a chain"
            result.append(Problem((*at, "to"), what, "name a sink", f"'{chain.to}'"))
        elif topology.sinks and chain.to not in topology.sinks:
            fix = known("sinks", chain.to, topology.sinks)
            result.append(Problem((*at, "to"), "no such sink", fix, f"'{chain.to}'"))
        for i, step in enumerate(chain.path):
            if step not in topology.functions:
                fix = known("functions", step, topology.functions)
                result.append(Problem((*at, "path", i), "no such function", fix, f"'{step}'"))
    used = [chain.from_ for chain in topology.chains.values()]
    for name in topology.sources:
        if used.count(name) != 1:
            what = "feeds no chain" if name not in used else "feeds more than one chain"
            result.append(Problem(("sources", name), what, "give each chain a source of its own"))
    passed = {step for chain in topology.chains.values() for step in chain.path}
    for name, function in topology.functions.items():
        if name not in passed:
            result.append(Problem(("functions", name), "is on no chain", "add it to a path"))
        if (function.next_hop == "weighted") != (function.weights is not None):
            fix = "give next-hop: weighted and weights: [...] together"
            result.append(Problem(("functions", name), "weights and next-hop disagree", fix))
        result += _hosts(topology, ("functions", name), function.hosts, function.instances)
    for name, sink in topology.sinks.items():
        result += _hosts(topology, ("sinks", name), sink.hosts, sink.instances)
    return result


def _hosts(
    topology: Topology, at: Sequence[str], hosts: list[int] | None, instances: int
) -> list[Problem]:
    if hosts is None:
        return []
    if topology.fabric is None:
        return [Problem((*at, "hosts"), "needs a fabric", "add fabric: or remove hosts:")]
    count = topology.fabric.fat_tree.k**3 // 4
    if len(hosts) != instances:
        return [Problem((*at, "hosts"), f"names {len(hosts)} hosts for {instances} instances")]
    wrong = [host for host in hosts if not 0 <= host < count]
    if wrong:
        return [Problem((*at, "hosts"), f"no such host; they are 0 to {count - 1}", "", str(wrong))]
    return []
