# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy libvirt: what a virtual machine needs to attach to a port."""

import shlex
import xml.etree.ElementTree as Xml
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.base.problem import known, shown
from convoy.chain.open import open_file
from convoy.cli.result import Json, Result
from convoy.errors import InputError
from convoy.host.machine import this_machine
from convoy.host.node_check import check_plan
from convoy.host.programs import need

RECONNECT_S = 1


@dataclass(frozen=True)
class Guest(Result):
    """How a virtual machine attaches to a vhost-user port."""

    port: str
    path: str
    listens: bool  # the node does, so the machine connects
    queues: int
    memory: str  # of the machine, as QEMU has it
    qemu: bool

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {
            "schema": "convoy.libvirt/1",
            "port": self.port,
            "libvirt": self.libvirt(),
            "qemu": self.command_line(),
        }

    def show(self, out: Console) -> None:
        """Print the XML, or the options."""
        text = shlex.join(self.command_line()) if self.qemu else "\n".join(self.libvirt())
        out.print(text, markup=False)

    def libvirt(self) -> list[str]:
        """Return two elements: one of <domain>, one of its <devices>."""
        memory = Xml.Element("memoryBacking")
        Xml.SubElement(memory, "source", type="memfd")
        Xml.SubElement(memory, "access", mode="shared")
        interface = Xml.Element("interface", type="vhostuser")
        mode = "client" if self.listens else "server"
        source = Xml.SubElement(interface, "source", type="unix", path=self.path, mode=mode)
        if self.listens:
            Xml.SubElement(source, "reconnect", enabled="yes", timeout=str(RECONNECT_S))
        Xml.SubElement(interface, "model", type="virtio")
        if self.queues > 1:
            Xml.SubElement(interface, "driver", queues=str(self.queues))
        for element in (memory, interface):
            Xml.indent(element)
        return [Xml.tostring(element, "unicode") for element in (memory, interface)]

    def command_line(self) -> list[str]:
        """Return the options for qemu-system-x86_64."""
        end = f"reconnect={RECONNECT_S}" if self.listens else "server=on,wait=off"
        name = f"convoy-{self.port}"
        several = f",mq=on,vectors={2 * self.queues + 2}" if self.queues > 1 else ""
        path = self.path.replace(",", ",,")
        return [
            *("-object", f"memory-backend-memfd,id=convoy,size={self.memory},share=on"),
            *("-machine", "memory-backend=convoy"),
            *("-chardev", f"socket,id={name},path={path},{end}"),
            *("-netdev", f"vhost-user,id={name}-net,chardev={name},queues={self.queues}"),
            *("-device", f"virtio-net-pci,netdev={name}-net{several}"),
        ]


def guest(plan: Mapping[str, Any], name: str, memory: str = "1G", qemu: bool = False) -> Guest:
    """Return what attaches to a plan's port. Raises InputError."""
    ports = {port["name"]: port for port in plan["ports"]}
    if name not in ports:
        raise InputError(f"port {shown(name)}: none is called so; {known('ports', name, ports)}")
    port = ports[name]
    if port["kind"] != "vhost-user":
        raise InputError(
            f"port {shown(name)}: is of kind {port['kind']}; a virtual machine attaches to a "
            f"vhost-user port: {name}: {{vhost-user: {name}.sock}}"
        )
    listens = port.get("mode", "server") == "server"
    return Guest(name, port["path"], listens, port.get("queues", 1), memory, qemu)


def command(
    file: Annotated[Path, typer.Argument(help="Chain descriptor (YAML), or a plan (JSON).")],
    port: Annotated[str, typer.Argument(help="Name of a vhost-user port in it.")],
    qemu: Annotated[
        bool, typer.Option("--qemu", help="Options for QEMU, in place of XML for libvirt.")
    ] = False,
    memory: Annotated[
        str, typer.Option(help="Memory of the virtual machine, as QEMU has it.")
    ] = "1G",
    as_json: Json = False,
) -> Result:
    """Print what attaches a virtual machine to a port: XML for libvirt, or QEMU's options.

    The memory is shared, as the node must see the packets in it. The virtual machine reconnects
    when the node was started again.
    """
    opened = open_file(file, this_machine())
    if opened.loaded is None:  # a plan, perhaps changed by hand: are its ports ports?
        check_plan(need("convoyd"), opened.plan.data, file)
    return guest(opened.plan.data, port, memory, qemu)
