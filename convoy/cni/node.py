# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The node's side: which of its ports are for containers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.client import Client
from convoy.cni.errors import CniError, Code
from convoy.cni.network import Network
from convoy.errors import ConvoyError


@dataclass(frozen=True)
class Port:
    """A port whose socket is in a folder of its own: sharedDir/FOLDER/FILE."""

    folder: str
    file: str
    has_peer: bool


def ports_of(network: Network, node: Path) -> list[Port]:
    """Return the node's ports of the network's kind and mode, in its order. Raises CniError."""
    try:
        with Client(_socket(node)) as client:
            return _ports(network, client.plan(), client.counts())
    except ConvoyError as error:
        raise CniError(Code.TRY_AGAIN, "the node does not answer", str(error)) from None


def _socket(node: Path) -> Path:
    """Return the socket that the node is read by: the one that answers, of several."""
    match = sorted(node.glob("dpdk/convoyd-*/read.sock"))
    for path in match:
        try:
            with Client(path):
                return path
        except ConvoyError:  # what a killed node left
            continue
    raise CniError(
        Code.TRY_AGAIN, f"node: {node}: no node runs there", "its RUNTIME_DIRECTORY is wanted"
    )


def _ports(network: Network, plan: Mapping[str, Any], counts: Mapping[str, Any]) -> list[Port]:
    key = "mode" if network.kind == "vhost-user" else "role"
    match = []
    for port in plan["ports"]:
        if port["kind"] != network.kind:
            continue
        path = Path(port["path"])
        listens = port.get(key, "server") == "server"
        if listens is network.listens and path.parent.parent == network.shared:
            device = counts["ports"][port["name"]].get("device", {})
            match.append(Port(path.parent.name, path.name, device.get("link") == "up"))
    return match
