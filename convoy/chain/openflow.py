# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""OpenFlow controllers of a descriptor: who says which next hop a service chain has."""

import ipaddress
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from convoy.chain.ports import SocketAccess

PORT = 6653
TLS_FILES = ("private_key", "certificate", "ca_certificate")


def is_path(target: str) -> bool:
    """Tell whether a target is a path, not an address."""
    return target.startswith(("unix:", "punix:"))


def is_tls(target: str) -> bool:
    """Tell whether a target is spoken to by TLS."""
    return target.startswith(("ssl:", "pssl:"))


def tcp_port(target: str) -> int:
    """Return the TCP port of a target that has an address."""
    kind, _, rest = target.partition(":")
    host_first = kind in ("tcp", "ssl")
    address, port = _split(rest) if host_first else _split_port_first(rest)
    ipaddress.ip_address(address)
    number = int(port) if port else PORT
    if not 0 < number < 65536 or (port and not port.isdigit()):
        raise ValueError(port)
    return number


def _split(text: str) -> tuple[str, str]:
    """Split "ADDRESS[:PORT]", an IPv6 address in brackets."""
    if text.startswith("["):
        address, _, port = text[1:].partition("]")
        if port[:1] not in ("", ":"):
            raise ValueError(text)
        return address, port[1:]
    address, _, port = text.partition(":")
    return address, port


def _split_port_first(text: str) -> tuple[str, str]:
    """Split "[PORT][:ADDRESS]"."""
    port, _, address = text.partition(":")
    return address.removeprefix("[").removesuffix("]") or "127.0.0.1", port


def _target(tcp: str, tls: str, unix: str, words: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        kind, _, rest = text.partition(":")
        if kind == unix and rest:
            return text
        try:
            if kind not in (tcp, tls):
                raise ValueError(text)
            tcp_port(text)
        except ValueError:
            raise ValueError(f"write {words}") from None
        return text

    return check


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Controller = Annotated[
    str,
    AfterValidator(
        _target("tcp", "ssl", "unix", "tcp:ADDRESS[:PORT], ssl:ADDRESS[:PORT] or unix:PATH")
    ),
]
Listen = Annotated[
    str,
    AfterValidator(
        _target(
            "ptcp", "pssl", "punix", "ptcp:[PORT][:ADDRESS], pssl:[PORT][:ADDRESS] or punix:PATH"
        )
    ),
]


class OpenFlow(SocketAccess):
    """Controllers (OpenFlow 1.3) that say which next hop a service-chain id has."""

    controllers: Annotated[list[Controller], BeforeValidator(_listed)] = Field(
        [],
        max_length=8,
        description="to connect to: tcp:ADDRESS[:PORT] (6653), by TLS ssl:ADDRESS[:PORT], or "
        "unix:PATH; one or a list",
        examples=["tcp:192.0.2.9"],
    )
    listen: Annotated[list[Listen], BeforeValidator(_listed)] = Field(
        [],
        max_length=8,
        description="where controllers connect: ptcp:[PORT][:ADDRESS] (6653, 127.0.0.1), by TLS "
        "pssl:[PORT][:ADDRESS], or punix:PATH; one or a list. Whoever may connect steers the "
        "packets",
        examples=["punix:openflow.sock"],
    )
    private_key: str | None = Field(
        None, min_length=1, description="of TLS: a PEM file that only its owner may read"
    )
    certificate: str | None = Field(
        None, min_length=1, description="of TLS: PEM file with the node's certificate"
    )
    ca_certificate: str | None = Field(
        None,
        min_length=1,
        description="of TLS: PEM file of the authority that has signed the controllers'",
    )
    entries: int = Field(131072, ge=1, le=1 << 20, description="flow entries at most")
    datapath_id: str | None = Field(
        None,
        pattern=r"^[0-9a-fA-F]{1,16}$",
        description="64 bits in hexadecimal, in quotes; default: the MAC address of the first port "
        "that sends convoys",
        examples=["00000000000000a1"],
    )

    @model_validator(mode="after")
    def _somebody(self) -> "OpenFlow":
        if not self.controllers and not self.listen:
            raise ValueError("give it controllers to connect to, or where to listen")
        keys = {"private-key": self.private_key, "certificate": self.certificate}
        keys |= {"ca-certificate": self.ca_certificate}
        missing = [key for key, file in keys.items() if file is None]
        uses_tls = any(map(is_tls, (*self.controllers, *self.listen)))
        if uses_tls and missing:
            raise ValueError(f"TLS needs {', '.join(missing)}, too: files")
        if not uses_tls and len(missing) < len(keys):
            raise ValueError("private-key and certificates are of TLS; write ssl: or pssl:")
        if self.datapath_id is not None and int(self.datapath_id, 16) == 0:
            raise ValueError("datapath-id: 0 is none; give another one")
        if (self.socket_mode or self.socket_group) and not any(map(is_path, self.listen)):
            raise ValueError(
                "socket-mode and socket-group are of a socket that is listened at; "
                "add listen: punix:PATH, or remove them"
            )
        return self
