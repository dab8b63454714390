# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Attachments: a container's interface, and the names that follow from the runtime's words."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from convoy.cni.errors import CniError, Code
from convoy.cni.network import Network

PATH_MAX_BYTES = 107  # of a unix socket
SHORT = 12  # characters of a container's ID that names have, as userspace-cni's
_CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,255}\Z")
_INTERFACE = re.compile(r"[!-.0-9;-~]{1,15}\Z")  # no slash, no colon
_HASH = re.compile(r"[0-9a-f]{12,}\Z")
_POD = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


@dataclass(frozen=True)
class Attachment:
    """A container's interface, as the runtime names it."""

    container: str
    interface: str
    sandbox: str = ""
    pod: str | None = None  # its UID, where Kubernetes says it

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Return what the runtime's variables say. Raises CniError."""
        return cls(
            _matching("CNI_CONTAINERID", environment.get("CNI_CONTAINERID", ""), _CONTAINER),
            _matching("CNI_IFNAME", environment.get("CNI_IFNAME", ""), _INTERFACE),
            environment.get("CNI_NETNS", ""),
            _pod(environment.get("CNI_ARGS", "")),
        )

    @property
    def short(self) -> str:
        """The container in names: the beginning of an ID that is a hash already, else a hash."""
        if _HASH.match(self.container):
            return self.container[:SHORT]
        return _digest(self.container, SHORT)

    @property
    def key(self) -> str:
        """The name of its record."""
        return f"{self.short}-{self.interface}"

    def place(self, network: Network) -> tuple[str, str]:
        """Return a folder and a socket's name in it: userspace-cni's, or hashes if too long."""
        named = self.key if network.kind == "vhost-user" else f"memif-{self.key}.sock"
        for folder, name in (
            (self.short, network.socket or named),
            (_digest(self.container, 8), _digest(self.interface, 8)),
        ):
            path = network.shared / folder / name
            if len(bytes(path)) <= PATH_MAX_BYTES:
                return folder, name
        raise CniError(
            Code.CONFIG,
            f"sharedDir: {network.shared}: too long for a socket in a folder of its own",
            f"{len(bytes(path)) - PATH_MAX_BYTES} bytes less are needed",
        )


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _matching(name: str, value: str, pattern: re.Pattern[str]) -> str:
    if not pattern.match(value) or value in (".", ".."):
        what = f"{value[:80]!a}: not valid" if value else "missing"
        raise CniError(Code.ENVIRONMENT, f"{name}: {what}")
    return value


def _pod(arguments: str) -> str | None:
    """Return the pod's UID of CNI_ARGS, where it has one."""
    for pair in arguments.split(";"):
        key, _, value = pair.partition("=")
        if key == "K8S_POD_UID" and _POD.match(value):
            return value
    return None
