# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Ports of a descriptor: one model per kind, told apart by the key that names the kind."""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from convoy.base.model import Model, one_of
from convoy.chain.model import Address, File, Mac
from convoy.chain.next_hops import in_plan

Slots = Literal[64, 128, 256, 512, 1024]
SLOTS = "of each ring, default 1024; 256 is faster where the two ends share a core"
DEVICE_MTU_MAX = 65300  # as dataplane/port/port.c has it
NOT_TRUSTED = (
    "a peer of DPDK's driver must be one that you trust; "
    "write trusted: true beside datapath: dpdk, or leave datapath out"
)
SOCKET_PATH_MAX_BYTES = 107  # sun_path less its terminating zero


class Convoys(Model):
    """Convoys, several packets in one frame, enter and leave by this port (docs/convoys.md)."""

    ip: Address | None = Field(
        None,
        description="its own address: convoys to others are dropped, and sent convoys have it as "
        "source; empty: takes all, sends none",
    )
    from_: list[Address] | None = Field(
        None,
        alias="from",
        min_length=1,
        max_length=16,
        description="outer source addresses whose convoys it takes: those of others are dropped; "
        "default: any",
    )
    udp_port: int = Field(51966, ge=1, le=65535, description="UDP destination port of convoys")

    expand: Literal["lz4"] | None = Field(
        None, description="compressed convoys are taken too; default: they are dropped"
    )
    dictionaries: list[File] | None = Field(
        None,
        min_length=1,
        max_length=15,
        description="files, of those that senders may compress with, for `expand`",
    )
    reassemble: bool = Field(
        False,
        description="packets are taken too that come in two frames, from next hops with "
        "`fragment`; default: such frames are dropped",
    )

    @model_validator(mode="after")
    def _dictionaries_of_expansion(self) -> Self:
        if self.dictionaries is not None and self.expand is None:
            raise ValueError("has dictionaries and does not expand; add expand: lz4")
        return self

    def as_plan(self, base: Path) -> dict[str, Any]:
        """Return it as the plan has it, but for the port's name. Raises InputError."""
        values = self.model_dump(exclude_none=True, exclude={"from_", "reassemble"})
        if self.from_ is not None:
            values["from"] = self.from_
        if self.reassemble:
            values["reassemble"] = True
        if self.dictionaries is not None:
            values["dictionaries"] = [in_plan(base / file) for file in self.dictionaries]
        return values


class Port(Model):
    """What every kind of port has."""

    kind: ClassVar[str]
    socket: ClassVar[bool] = False  # `path` is a unix socket
    any_length: ClassVar[bool] = False  # of frames; else one must fit into a buffer
    mtu: int | None = Field(
        None,
        ge=68,
        le=65500,
        description="bytes of layer 3, 65300 at most but for captures and null; default: 1500, "
        "of captures and null any",
    )
    mac: Mac | None = Field(None, description="its MAC address; default: the device's own")
    convoys: Convoys | None = Field(
        None, description="packets are aggregated on this port; write {} to only receive convoys"
    )

    @model_validator(mode="after")
    def _fits(self) -> "Port":
        if not self.any_length and (self.mtu or 0) > DEVICE_MTU_MAX:
            raise ValueError(
                f"mtu: {self.mtu}: a frame must fit into one buffer, of 64 KiB at most; "
                f"give {self.kind} {DEVICE_MTU_MAX} at most (captures and null take any)"
            )
        return self

    @property
    def rx_queues(self) -> int:
        """How many queues packets come in by; each is polled by one worker."""
        return getattr(self, "queues", 1)


class SocketAccess(Model):
    """Who may connect to a socket that convoyd makes."""

    socket_mode: str | None = Field(
        None,
        pattern=r"^0?[0-7]{3}$",
        description="mode of the socket that convoyd makes: octal, in quotes",
        examples=["0660"],
    )
    socket_group: str | None = Field(
        None, min_length=1, description="group of that socket; default: convoyd's", examples=["kvm"]
    )


class ListeningPort(Port, SocketAccess):
    """A port that may make the socket at which it and its peer meet."""

    side: ClassVar[str]  # the key that says who makes it

    @model_validator(mode="after")
    def _access(self) -> "ListeningPort":
        if (self.socket_mode or self.socket_group) and getattr(self, self.side) == "client":
            raise ValueError(
                "the peer makes the socket, and says who may connect; remove socket-mode and "
                "socket-group"
            )
        return self


class VhostUser(ListeningPort):
    """A virtual machine's or container's network device: the host side of a virtio link."""

    kind = "vhost-user"
    socket = True
    side = "mode"
    path: str = Field(
        alias="vhost-user",
        description="socket; a bare file name lies in the runtime directory",
        min_length=1,
    )
    mode: Literal["server", "client"] = Field(
        "server", description="who makes the socket: server = convoyd"
    )
    queues: int = Field(1, ge=1, le=64, description="queue pairs, with RSS")
    datapath: Literal["vring", "dpdk"] = Field(
        "vring",
        description="who serves the peer: convoyd's own code, or DPDK's for comparison",
    )
    packed: bool = Field(True, description="packed rings are offered as well")
    max_ring_size: int = Field(
        4096, ge=64, le=32768, description="largest ring of the peer, in descriptors"
    )
    trusted: bool = Field(
        False, description="must be true for datapath: dpdk, which checks its peer less"
    )

    @model_validator(mode="after")
    def _trusted(self) -> "VhostUser":
        if self.datapath == "dpdk" and not self.trusted:
            raise ValueError(NOT_TRUSTED)
        return self


class VirtioUser(Port):
    """The guest side of a virtio link: attaches to a vhost-user socket."""

    kind = "virtio-user"
    socket = True
    path: str = Field(
        alias="virtio-user",
        description="socket; a bare file name lies in the runtime directory",
        min_length=1,
    )
    mode: Literal["server", "client"] = Field(
        "client", description="who makes the socket: server = convoyd"
    )
    queues: int = Field(1, ge=1, le=64, description="queue pairs, with RSS")
    slots: Slots | None = Field(None, description=SLOTS)


class Memif(ListeningPort):
    """Shared memory with another process: VPP, a container, a second convoyd."""

    kind = "memif"
    socket = True
    side = "role"
    path: str = Field(
        alias="memif",
        description="socket; a bare file name lies in the runtime directory",
        min_length=1,
    )
    role: Literal["server", "client"] = Field(
        "server", description="the side that makes the socket"
    )
    id: int = Field(0, ge=0, le=0x7FFFFFFF, description="number of the link on that socket")
    slots: Slots | None = Field(None, description=SLOTS)
    datapath: Literal["memif", "dpdk"] = Field(
        "memif", description="who moves the packets: convoyd's own code, or DPDK's for comparison"
    )
    trusted: bool = Field(
        False, description="must be true for datapath: dpdk, which does not check its peer"
    )

    @model_validator(mode="after")
    def _trusted(self) -> "Memif":
        if self.datapath == "dpdk" and not self.trusted:
            raise ValueError(NOT_TRUSTED)
        return self


class Shared(ListeningPort):
    """A link to another convoyd that maps the same buffers: packets pass without a copy."""

    kind = "shared"
    socket = True
    side = "role"
    path: str = Field(
        alias="shared",
        description="socket; a bare file name lies in the runtime directory",
        min_length=1,
    )
    role: Literal["server", "client"] = Field(
        "server", description="server = owns the buffers and makes the socket"
    )
    link: str = Field(
        min_length=1,
        max_length=31,
        pattern=r"^[!-~]+$",
        description="name of the link: its two ends, in any two processes at that socket, have the "
        "same",
    )


class AfPacket(Port):
    """A kernel network interface, through AF_PACKET (needs CAP_NET_RAW)."""

    kind = "af_packet"
    interface: str = Field(
        alias="af_packet", min_length=1, max_length=15, description="interface, e.g. eth1"
    )
    queues: int = Field(1, ge=1, le=16, description="queues, with RSS by the kernel's fanout")
    slots: Slots | None = Field(None, description="frames in each ring, default 1024")


class AfXdp(Port):
    """A kernel network interface, through AF_XDP (needs root)."""

    kind = "af_xdp"
    interface: str = Field(
        alias="af_xdp", min_length=1, max_length=15, description="interface, e.g. eth1"
    )
    queues: int = Field(1, ge=1, le=64, description="queues of the interface")


class Dpdk(Port):
    """A network card or any other device that DPDK has a driver for."""

    kind = "dpdk"
    devargs: str = Field(
        alias="dpdk",
        min_length=1,
        description="PCI address (0000:01:00.0) or device arguments (net_tap0)",
    )
    queues: int = Field(1, ge=1, le=64, description="queues, with RSS")


class Captures(Model):
    """The files of a pcap port: at least one of the two."""

    read: str | None = Field(
        None, min_length=1, description="pcap or pcapng file whose packets are received"
    )
    write: str | None = Field(None, min_length=1, description="pcap file that sent packets go to")

    @model_validator(mode="after")
    def _one(self) -> "Captures":
        if "\0" in f"{self.read}{self.write}":
            raise ValueError("a zero byte in a path; remove it")
        if self.read is None and self.write is None:
            raise ValueError("needs a file; write {read: in.pcap} or {write: out.pcap} or both")
        return self


class Pcap(Port):
    """Capture files instead of a network."""

    kind = "pcap"
    any_length = True
    pcap: Captures = Field(description="the files")


class Null(Port):
    """Discards what it is sent; receives endless zeroed frames, or nothing."""

    kind = "null"
    any_length = True
    frame_bytes: int | None = Field(
        alias="null",
        ge=14,
        le=9216,
        description="size of the frames it receives; empty: receives nothing",
    )


class Steering(Port):
    """Takes FLOW_MODs in frames for this node (docs/openflow.md); receives nothing."""

    kind = "openflow"
    any_length = True
    key: str = Field(
        alias="openflow",
        min_length=1,
        description="file with the key, 64 hexadecimal digits, that authenticates the frames",
        examples=["openflow.key"],
    )


PORTS: dict[str, type[Port]] = {
    model.kind: model
    for model in (VhostUser, VirtioUser, Memif, Shared, AfPacket, AfXdp, Dpdk, Pcap, Null, Steering)
}
AnyPort: Any = one_of("kinds of port", PORTS)
