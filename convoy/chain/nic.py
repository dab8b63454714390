# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Network interfaces as a command line names them: NAME, af_xdp:NAME, dpdk:PCI-ADDRESS."""

from dataclasses import dataclass

_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}"
_PCI = r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
NIC = rf"^((af_packet:|af_xdp:)?{_NAME}|dpdk:{_PCI})$"


@dataclass(frozen=True)
class Nic:
    """An interface that packets are sent and received by."""

    kind: str  # as in chain descriptors: af_packet, af_xdp, dpdk
    name: str  # of the kernel's interface; of dpdk the PCI address

    @classmethod
    def read(cls, text: str) -> "Nic":
        """Return what a text like NAME, af_xdp:NAME, dpdk:0000:01:00.0 says."""
        kind, colon, name = text.partition(":")
        return cls(kind, name) if colon else cls("af_packet", text)
