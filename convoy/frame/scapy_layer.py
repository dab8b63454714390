# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The convoy frame as layers of scapy, bound to UDP port 51966 when this module is imported.

    from convoy.frame.scapy_layer import Convoy, Embedded
    Ether() / IP() / UDP() / Convoy(nfi=7, packets=[Embedded(packet=Ether() / IP() / UDP())])

    Convoy(type=1, count=2, bytes=124, block=...)
    Convoy(type=2, flags=1, total=508, packets=[Embedded(packet=...)], beginning=...)

Lengths and the number of packets are filled in unless they are given, but for compressed frames
(type 1), which are not expanded. In a frame of type 2 with flags=1 the first packet is the rest of
one, though it is shown as any other. Dissecting is forgiving, as
scapy is: what does not add up is shown as far as it goes. A packet inside of a convoy that looks
like one itself is shown as one, though no receiver disaggregates it. To validate a frame, use
convoy.frame.
scapy is not among Convoy's own requirements: `pip install scapy`.
"""

from typing import Any

from convoy.errors import InputError
from convoy.frame.model import COMPRESSED, FRAGMENTS, LZ4, PORT

try:
    from scapy.fields import (
        BitField,
        ByteEnumField,
        ByteField,
        ConditionalField,
        FieldLenField,
        IntField,
        PacketLenField,
        PacketListField,
        ShortField,
        StrField,
        XIntField,
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


def _is_compressed(packet: Any) -> bool:
    return bool(packet.type == COMPRESSED)


def _has_fragments(packet: Any) -> bool:
    return bool(packet.type == FRAGMENTS)


class Convoy(Packet):  # type: ignore[misc, unused-ignore]
    """The convoy header and its packets."""

    name = "Convoy"
    fields_desc = [  # noqa: RUF012 - scapy's way
        BitField("version", 1, 4),
        BitField("type", 0, 4),
        FieldLenField("count", None, fmt="B", count_of="packets"),
        ShortField("nfi", 0),
        ConditionalField(ByteEnumField("codec", LZ4, {LZ4: "LZ4"}), _is_compressed),
        ConditionalField(ByteField("reserved", 0), _is_compressed),
        ConditionalField(ShortField("bytes", 0), _is_compressed),
        ConditionalField(XIntField("dictionary", 0), _is_compressed),
        ConditionalField(StrField("block", b""), _is_compressed),
        ConditionalField(XIntField("stream", 0), _has_fragments),
        ConditionalField(IntField("sequence", 0), _has_fragments),
        ConditionalField(ShortField("flags", 0), _has_fragments),
        ConditionalField(ShortField("total", 0), _has_fragments),
        ConditionalField(
            PacketListField(
                "packets", [], Embedded, count_from=lambda packet: packet.count, max_count=255
            ),
            lambda packet: packet.type != COMPRESSED,
        ),
        ConditionalField(StrField("beginning", b""), _has_fragments),
    ]

    def mysummary(self) -> str:
        """Return scapy's one-line summary."""
        if _is_compressed(self):
            return f"Convoy of {self.count}, compressed, to NFI-ID {self.nfi}"
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
