# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy network: a network of nodes from one file."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from convoy.base.problem import printable
from convoy.base.yaml_text import Text
from convoy.chain.load import check_text
from convoy.chain.plan import make_plan
from convoy.cli.console import messages
from convoy.cli.options import Duration
from convoy.cli.result import Json, Result
from convoy.errors import InputError
from convoy.host.machine import this_machine
from convoy.host.signals import StopSignals
from convoy.network.controller import Event
from convoy.network.descriptors import as_yaml, descriptor_of
from convoy.network.load import Loaded, load
from convoy.network.local import LocalNetwork

app = typer.Typer(
    help="Run a network of nodes: functions with several instances (docs/network.md).",
    no_args_is_help=True,
)
File = Annotated[Path, typer.Argument(help="A network, as examples/network/pa-flow.yaml.")]


@dataclass(frozen=True)
class Checked(Result):
    """What a network file says."""

    loaded: Loaded

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {
            "schema": "convoy.network/1",
            "file": self.loaded.text.path,
            "nodes": {node: descriptor_of(self.loaded, node) for node in self.loaded.network.nodes},
            "instances": {one.name: one.nfi for one in self.loaded.instances()},
        }

    def show(self, out: Console) -> None:
        """Print each chain with the instances of its functions."""
        table = Table("chain", "SC-ID", "comes in by", "instances", "leaves by")
        for way in self.loaded.ways:
            stages = [
                f"{function} ({', '.join(one.node for one in stage)})"
                for function, stage in zip(way.chain.path, way.stages, strict=False)
            ]
            table.add_row(
                way.name, str(way.chain.match), way.chain.from_, " → ".join(stages) or "–",
                way.chain.to,
            )  # fmt: skip
        out.print(table)


@app.command("check")
def check(file: File, as_json: Json = False) -> Result:
    """Check a network, and the descriptor of each of its nodes.

    --json has the descriptors, and the NFI-IDs of all instances.
    """
    loaded = load(file)
    machine = this_machine()
    for node in loaded.network.nodes:
        _check_node(loaded, node, loaded.base, machine)
    return Checked(loaded)


def _check_node(loaded: Loaded, node: str, base: Path, machine: Any) -> dict[str, Any]:
    """Return a node's descriptor. Raises InputError where it is not one."""
    descriptor = descriptor_of(loaded, node)
    text = Text.of_data(descriptor, f"{loaded.text.path}, node {node}")
    make_plan(check_text(text, base, machine), machine)
    return descriptor


@dataclass(frozen=True)
class Written(Result):
    """Descriptors that were written."""

    files: list[Path]

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {"schema": "convoy.network.written/1", "files": [str(file) for file in self.files]}

    def show(self, out: Console) -> None:
        """Print their names."""
        for file in self.files:
            out.print(str(file), markup=False)


@app.command("descriptors")
def descriptors(
    file: File,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write them to.")],
    as_json: Json = False,
) -> Result:
    """Write the descriptor of each node: NODE.yaml, for `convoy run` on its machine.

    Files that functions name (rules, associations) are looked for beside the descriptors.
    """
    loaded = load(file)
    machine = this_machine()
    texts = {
        output / f"{node}.yaml": as_yaml(
            loaded, node, _check_node(loaded, node, output.absolute(), machine)
        )
        for node in loaded.network.nodes
    }
    try:
        output.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text)
    except OSError as error:
        raise InputError(f"-o {output}: {error.strerror}; name a folder of your own") from None
    return Written(list(texts))


@dataclass(frozen=True)
class Ran(Result):
    """A network that ran here, and what became of its packets."""

    loaded: Loaded
    counts: dict[str, dict[str, Any]]
    events: list[dict[str, Any]]

    def _ports(self, key: str, places: set[str]) -> int:
        total = 0
        for place in places:
            node, port = place.split("/")
            if node in self.counts:
                total += self.counts[node]["ports"][port][key]
        return total

    def document(self) -> dict[str, Any]:
        """See Result."""
        chains = self.loaded.network.chains.values()
        entered = self._ports("rx_packets", {chain.from_ for chain in chains})
        left = self._ports("tx_packets", {chain.to for chain in chains})
        dropped = sum(one["accounting"]["dropped"] for one in self.counts.values())
        return {
            "schema": "convoy.network.run/1",
            "file": self.loaded.text.path,
            "entered": entered,
            "left": left,
            "dropped": dropped,
            "lost_with_nodes": entered - left - dropped,
            "events": self.events,
            "nodes": self.counts,
        }

    def show(self, out: Console) -> None:
        """Print each node's packets, and the whole."""
        document = self.document()
        table = Table("node")
        for heading in ("received", "sent", "dropped"):
            table.add_column(heading, justify="right")
        for node in self.loaded.network.nodes:
            if node in self.counts:
                values = self.counts[node]["accounting"]
                table.add_row(node, *(f"{values[k]:,}" for k in ("received", "sent", "dropped")))
        out.print(table)
        out.print(
            f"{document['entered']:,} packets came in, {document['left']:,} left, "
            f"{document['dropped']:,} were dropped; {document['lost_with_nodes']:,} were lost on "
            "links or with nodes that ended"
        )


@app.command("up")
def up(
    file: File,
    duration: Duration = None,
    as_json: Json = False,
) -> Result:
    """Run the whole network on this machine until Ctrl-C: a network namespace for each node.

    Links are veth pairs, or bridges; the controller programs all tables by OpenFlow. A node that
    is killed is led around. Needs root, and python3-os-ken.
    """
    loaded = load(file)
    out = messages()
    events: list[dict[str, Any]] = []

    def on_event(event: Event) -> None:
        events.append(event.document())
        out.print(printable(str(event)), markup=False)

    def on_line(node: str, line: str) -> None:
        out.print(printable(f"{node}: {line}"), markup=False)

    with LocalNetwork(loaded, on_event, on_line) as network, StopSignals() as signals:
        end = None if duration is None else time.monotonic() + duration
        pids = ", ".join(f"{name} {one.process.pid}" for name, one in network.nodes.items())
        out.print(f"runs; process ids: {pids}; Ctrl-C ends it", markup=False)
        queried_s = time.monotonic()
        while not signals.stop_requested and (end is None or time.monotonic() < end):
            network.step()
            if time.monotonic() - queried_s > 1:
                queried_s = time.monotonic()
                network.counts()  # what is known of a node that is killed
        counts = network.stop()
    return Ran(loaded, counts, events)


def say_as_json(event: Event) -> None:
    """Print an event as a line of JSON."""
    print(json.dumps(event.document()), flush=True)
