# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy next-hop: the next hops of a running node, changed while packets flow."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich import box
from rich.console import Console
from rich.table import Table

from convoy.base.problem import shown
from convoy.chain.next_hops import NextHop
from convoy.cli import next_hop_adapt
from convoy.cli.result import Json, Result
from convoy.cli.running import Pid, chosen
from convoy.client import Client
from convoy.errors import InputError, first_problem
from convoy.host.counts import RunningNode

app = typer.Typer(
    help="Show and change next hops of a running node: where its convoys go (docs/convoys.md).",
    no_args_is_help=True,
)


@dataclass(frozen=True)
class NextHops(Result):
    """A node's next hops after a command, with what was sent to each."""

    node: RunningNode
    next_hops: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {"schema": "convoy.next-hops/1", "pid": self.node.pid, "next_hops": self.next_hops}

    def show(self, out: Console) -> None:
        """Print the next hops and the packets in a frame that each got."""
        if not self.next_hops:
            out.print(f"convoyd {self.node.pid} has no next hops: packets leave one by one")
            return
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        heads = ("next hop", "port", "NFI-ID", "MTU", "SC-IDs", "weight")
        for head in (*heads, "packets", "frames", "a frame"):
            table.add_column(head, justify="left" if head in ("next hop", "port") else "right")
        for name, next_hop in self.next_hops.items():
            packets, frames = next_hop["packets"], next_hop["frames"]
            each = f"{packets / frames:.1f}" if frames else "-"
            values = (*map(next_hop.get, ("nfi", "mtu", "scids")), next_hop.get("weight", 1))
            table.add_row(name, next_hop["port"], *map(str, (*values, packets, frames, each)))
        out.print(table)


def scid(text: str) -> dict[str, int]:
    """Return the SC-ID that "vlan=100" or "vni=5" means. Raises InputError."""
    kind, _, number = text.partition("=")
    if kind not in ("vlan", "vni") or not number.isdecimal():
        raise InputError(f"--for: {shown(text)}: write vlan=ID or vni=ID")
    return {kind: int(number)}


def next_hop_of(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return a next hop as a node takes it. Raises InputError naming the option."""
    try:
        return NextHop.model_validate(values).as_plan(name, Path())
    except ValidationError as error:
        place, _, words = first_problem(error).partition(": ")
        raise InputError(f"--{place.split('.')[0]}: {words}") from None


@app.command("list")
def show_list(pid: Pid = None, as_json: Json = False) -> Result:
    """Show a node's next hops, and how many packets were aggregated for each."""
    node = chosen(pid)
    with Client(node.read) as client:
        return NextHops(node, client.next_hops())


@app.command("put")
def put(
    name: Annotated[str, typer.Argument(help="Of the next hop; one that is there is replaced.")],
    port: Annotated[str, typer.Option(help="Port that its convoys leave by.")],
    mac: Annotated[str, typer.Option(help="Its MAC address, or the router's on the way.")],
    ip: Annotated[str, typer.Option(help="Its address.")],
    for_: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            help="vlan=ID or vni=ID of the packets that go there; repeatable; none: those that "
            "controllers give it; default: the rest",
        ),
    ] = None,
    leaving: Annotated[
        list[str] | None,
        typer.Option(help="Ports that they would leave by; default: --port"),
    ] = None,
    weight: Annotated[
        int, typer.Option(help="Its share of the flows, among next hops for the same --for.")
    ] = 1,
    spread: Annotated[
        str, typer.Option(help="What goes to one of those as a whole: flow or addresses.")
    ] = "flow",
    nfi: Annotated[int, typer.Option(help="NFI-ID: the function's instance there.")] = 0,
    mtu: Annotated[int, typer.Option(help="Bytes of its largest IP packet.")] = 1500,
    vlan: Annotated[int | None, typer.Option(help="VLAN id of the convoys themselves.")] = None,
    ttl: Annotated[int, typer.Option(help="TTL or hop limit of the convoys.")] = 64,
    udp_port: Annotated[
        int | None, typer.Option(help="UDP destination port; default: that of the port")
    ] = None,
    compress: Annotated[
        str | None, typer.Option(help="lz4: its convoys are compressed; default: they are not.")
    ] = None,
    dictionary: Annotated[
        str | None, typer.Option(help="File for --compress that both ends know.")
    ] = None,
    wait: Annotated[
        str | None,
        typer.Option(help="That a frame waits for more packets at most, such as 5us; default: 0."),
    ] = None,
    encapsulate: Annotated[
        bool, typer.Option("--encapsulate", help="A single packet too goes in a convoy.")
    ] = False,
    fragment: Annotated[
        bool, typer.Option("--fragment", help="A packet that does not fit may be in two frames.")
    ] = False,
    pid: Pid = None,
    as_json: Json = False,
) -> Result:
    """Add a next hop, or replace it, while packets flow. None is lost.

    The port must send convoys (`convoys: {ip: ...}` in the chain's descriptor). For example:

    \b
    convoy next-hop put b --port wire --mac 02:00:00:00:00:0b \\
        --ip 192.0.2.2 --for vlan=100 --nfi 7
    """
    values: dict[str, Any] = {
        "port": port, "mac": mac, "ip": ip, "nfi": nfi, "mtu": mtu, "vlan": vlan, "ttl": ttl,
        "udp-port": udp_port, "leaving": leaving or None, "compress": compress,
        "dictionary": dictionary, "wait": 0 if wait == "0" else wait,
        "encapsulate": encapsulate, "fragment": fragment, "weight": weight, "spread": spread,
    }  # fmt: skip
    if for_:
        values["for"] = [] if for_ == ["none"] else [scid(text) for text in for_]
    next_hop = next_hop_of(name, {key: value for key, value in values.items() if value is not None})
    node = chosen(pid)
    with Client(node.control) as client:
        client.put_next_hop(next_hop)
        return NextHops(node, client.next_hops())


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="Of the next hop.")],
    pid: Pid = None,
    as_json: Json = False,
) -> Result:
    """Remove a next hop: its packets go where everything else goes, or one by one."""
    node = chosen(pid)
    with Client(node.control) as client:
        client.remove_next_hop(name)
        return NextHops(node, client.next_hops())


app.command("adapt")(next_hop_adapt.command)
