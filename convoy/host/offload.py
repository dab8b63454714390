# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Turns off what an interface of the kernel leaves to hardware: checksums, cutting, joining.

A veth has no hardware. Packets that are told to get their checksum there never get it: a kernel
behind the veth knows, but a switch in user space sends them on with a wrong one, and the receiver
drops them. And frames of 64 kB, which only the kernel passes on whole, would make it look fast.
"""

import ctypes
import fcntl
import socket
import struct

from convoy.errors import ConvoyError

OFF = "offloads of the hosts' interfaces off: checksums, segments and frames are made in software"
_SIOCETHTOOL = 0x8946
_VALUE = struct.Struct("II")  # struct ethtool_value: command, value
# From linux/ethtool.h: segments before what they need.
_SETTINGS = {
    "TCP segmentation": 0x1F,
    "generic segmentation": 0x24,
    "generic receive": 0x2C,
    "scatter-gather": 0x19,
    "checksums of what is sent": 0x17,
}


def turn_off(interface: str) -> None:
    """Turn all of it off. The interface must be in this process's network namespace; needs root.

    It stays off when the interface is moved to another one. Raises ConvoyError.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for what, command in _SETTINGS.items():
            value = ctypes.create_string_buffer(_VALUE.pack(command, 0))
            request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
            except OSError as error:
                raise ConvoyError(f"{interface}: {what}: {error.strerror}") from None
