# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The convoy frame as layers of scapy, bound to UDP port 51966 when this module is imported.

    from convoy.frame.scapy_layer import Convoy, Embedded
    Ether() / IP() / UDP() / Convoy(nfi=7, packets=[Embedded(packet=Ether() / IP() / UDP())])

Lengths and the number of packets are filled in unless they are given. Dissecting is forgiving, as
scapy is: what does not add up is shown as far as it goes. A packet inside of a convoy that looks
like one itself is shown as one, though no receiver disaggregates it. To validate a frame, use
convoy.frame.
scapy is not among Convoy's own requirements: `pip install scapy`.
"""

from typing import Any

from convoy.errors import InputError
from convoy.frame.model import PORT

try:
    from scapy.fields import (
        BitField,
        FieldLenField,
        PacketLenField,
        PacketListField,
        ShortField,
    )
    from scapy.layers.inet import UDP
    from scapy.layers.l2 import Ether
    from scapy.packet import Packet, bind_layers, split_layers
except ImportError as error:
    raise InputError(
        "convoy.frame.scapy_layer needs scapy, which is not installed: pip install scapy"
    ) from error


class Embedded(Packet):  # type: ignore[misc, unused-ignore]
    """One packet of a convoy, with its length before it."""

    name = "Embedded packet"
    fields_desc = [  # noqa: RUF012 - scapy's way
        FieldLenField("length", None, fmt="H", length_of="packet"),
        PacketLenField("packet", Ether(), Ether, length_from=lambda packet: packet.length),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Leave what is behind the packet to the next one."""
        return b"", s


class Convoy(Packet):  # type: ignore[misc, unused-ignore]
    """The convoy header and its packets."""

    name = "Convoy"
    fields_desc = [  # noqa: RUF012 - scapy's way
        BitField("version", 1, 4),
        BitField("type", 0, 4),
        FieldLenField("count", None, fmt="B", count_of="packets"),
        ShortField("nfi", 0),
        PacketListField(
            "packets", [], Embedded, count_from=lambda packet: packet.count, max_count=255
        ),
    ]

    def mysummary(self) -> str:
        """Return scapy's one-line summary."""
        return f"Convoy of {len(self.packets)} to NFI-ID {self.nfi}"


def bind(port: int = PORT) -> None:
    """Make UDP to this port a convoy, in place of the port before."""
    global _bound
    if _bound is not None:
        split_layers(UDP, Convoy, dport=_bound)
    bind_layers(UDP, Convoy, dport=port)
    _bound = port


_bound: Any = None
bind()
