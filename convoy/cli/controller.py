# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy controller: the SDN controller of a network of nodes."""

from pathlib import Path
from typing import Annotated

import typer

from convoy.base.problem import printable, shown
from convoy.chain.openflow import PORT
from convoy.cli.console import console
from convoy.cli.network import say_as_json
from convoy.errors import InputError
from convoy.host.signals import StopSignals
from convoy.network.controller import Controller, Event
from convoy.network.load import load


def _address(text: str) -> tuple[str, int]:
    """Return the address and port of ADDRESS[:PORT]. Raises InputError."""
    address, _, port = text.partition(":")
    if not address or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise InputError(f"--listen: {shown(text)}: write ADDRESS or ADDRESS:PORT (IPv4)")
    return address, int(port) if port else PORT


def command(
    file: Annotated[Path, typer.Argument(help="A network, as examples/network/pa-flow.yaml.")],
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS[:PORT]", help="Where nodes connect.")
    ] = f"127.0.0.1:{PORT}",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON document a line.")] = False,
) -> None:
    """Steer a network of nodes by OpenFlow 1.3 until Ctrl-C (docs/network.md).

    Chains are spread over the instances of each function. They are moved when a node is gone or
    silent, and from a node that is busy to one that is less so. When the controller ends, nodes go
    on as they are. Needs python3-os-ken.
    """
    loaded = load(file)
    where = _address(listen)
    out = console()

    def on_event(event: Event) -> None:
        if as_json:
            say_as_json(event)
        else:
            out.print(printable(str(event)), markup=False)

    with Controller(loaded, where, on_event) as controller, StopSignals() as signals:
        while not signals.stop_requested:
            controller.step()
