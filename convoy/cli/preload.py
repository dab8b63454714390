# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy preload: convoys under a program that knows nothing of them."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from convoy.chain.next_hops import wait_of
from convoy.errors import InputError
from convoy.host.preload import check_program, preload_environment, program_path
from convoy.host.programs import need

app = typer.Typer(
    help="Start an unmodified DPDK program with convoys under it.", no_args_is_help=True
)

_NEXT_HOP_KEYS = ("dst_mac", "dst", "src", "src_mac", "nfi", "vlan")


class Mode(StrEnum):
    """What a received packet is to the program."""

    AUTO = "auto"
    VIEW = "view"
    COPY = "copy"


@dataclass(frozen=True)
class EthdevOptions:
    """What libconvoy_ethdev.so is told; None: its own default."""

    mode: Mode = Mode.AUTO
    mtu: int | None = None
    udp_port: int | None = None
    ports: str | None = None
    next_hop: str | None = None
    counts: Path | None = None
    wait_ns: int | None = None
    across_guests: bool = False
    networks: tuple[Path, ...] = ()

    def text(self) -> str:
        """Return the words of CONVOY_ETHDEV. The library checks their values."""
        words = [f"mode={self.mode}"]
        words += [f"mtu={self.mtu}"] if self.mtu is not None else []
        words += [f"port={self.udp_port}"] if self.udp_port is not None else []
        words += [f"ports={self.ports}"] if self.ports is not None else []
        words += _next_hop_words(self.next_hop) if self.next_hop is not None else []
        words += [f"wait={self.wait_ns}"] if self.wait_ns else []
        words += ["across=yes"] if self.across_guests else []
        words += [f"network={','.join(map(str, self.networks))}"] if self.networks else []
        words += [f"counts={self.counts.resolve()}"] if self.counts is not None else []
        for word in words:
            if " " in word:
                raise InputError(f"convoy preload: {word!r}: must have no spaces")
        return " ".join(words)


def _wait_ns(text: str) -> int:
    try:
        return wait_of(text)
    except ValueError as error:
        raise InputError(f"--wait: {text!r}: {error}") from error


def _networks(paths: list[Path]) -> tuple[Path, ...]:
    for path in paths:
        if "," in str(path):
            raise InputError(f"--network: {str(path)!r}: must have no comma")
    return tuple(paths)


def _next_hop_words(text: str) -> list[str]:
    words = text.split(",")
    for word in words:
        if word.partition("=")[0] not in _NEXT_HOP_KEYS or "=" not in word:
            raise InputError(
                f"--next-hop: {word!r}: must be KEY=VALUE with a key of "
                f"{', '.join(_NEXT_HOP_KEYS)}; dst_mac, dst and src are needed"
            )
    return words


@app.command("ethdev", context_settings={"allow_interspersed_args": False})
def ethdev(
    command: Annotated[list[str], typer.Argument(help="-- PROGRAM and its arguments.")],
    mode: Annotated[
        Mode,
        typer.Option(
            help="view: packets stay in their convoy; copy: each in its own buffer; auto: view, "
            "until the program puts a header in front of one."
        ),
    ] = Mode.AUTO,
    next_hop: Annotated[
        str | None,
        typer.Option(
            help="Where everything is sent: dst_mac=MAC,dst=IP,src=IP[,src_mac=,nfi=,vlan=]. "
            "Default: back to where a packet's convoy came from, if by the same port."
        ),
    ] = None,
    mtu: Annotated[
        int | None, typer.Option(help="Bytes of the largest IP packet sent [default: 1500].")
    ] = None,
    udp_port: Annotated[
        int | None, typer.Option(help="UDP port of convoys [default: 51966].")
    ] = None,
    ports: Annotated[
        str | None, typer.Option(help="Only these of DPDK's ports, such as 0,2 [default: all].")
    ] = None,
    counts: Annotated[
        Path | None, typer.Option(help="Write counts there (JSON) when the program ends.")
    ] = None,
) -> None:
    """Receive and send convoys under a program that uses DPDK's ports.

    Works above the driver, whichever it is. The program must be linked with the shared
    libraries of the DPDK release that Convoy was built with. Its own output, input and exit status
    stay as they are.
    """
    options = EthdevOptions(mode, mtu, udp_port, ports, next_hop, counts)
    environment = {**os.environ, "CONVOY_ETHDEV": options.text()}
    library = need("libconvoy_ethdev.so")
    program = program_path(command[0])
    check_program(program, "librte_ethdev", library)
    os.execve(program, command, preload_environment(library, environment))


@app.command("vhost", context_settings={"allow_interspersed_args": False})
def vhost(
    command: Annotated[list[str], typer.Argument(help="-- PROGRAM and its arguments.")],
    next_hop: Annotated[
        str | None,
        typer.Option(
            help="Where the guests' convoys go: dst_mac=MAC,dst=IP,src=IP[,src_mac=,nfi=,vlan=]. "
            "Without it none are made; those that come are still disaggregated."
        ),
    ] = None,
    mtu: Annotated[
        int | None, typer.Option(help="Bytes of the largest IP packet made [default: 1500].")
    ] = None,
    udp_port: Annotated[
        int | None, typer.Option(help="UDP port of convoys [default: 51966].")
    ] = None,
    wait: Annotated[
        str,
        typer.Option(
            help="That a frame which is not full waits for more packets of the same queue at most, "
            "such as 5us, up to 1000us."
        ),
    ] = "0us",
    across_guests: Annotated[
        bool,
        typer.Option(
            help="Let it wait for packets of all guests that a thread polls. Only for switches "
            "whose rules do not look at the port that a frame came by."
        ),
    ] = False,
    network: Annotated[
        list[Path] | None,
        typer.Option(
            help="A socket, as the program names it, whose peer is no guest but a network: its "
            "convoys pass as they are, in both directions. May be given several times."
        ),
    ] = None,
) -> None:
    """Convoys between a guest and a program that serves it by DPDK's vhost library.

    A virtual switch, or testpmd with net_vhost: what guests send reaches it in convoys, convoys
    that it sends reach guests packet by packet. The program must be linked with the
    shared libraries of the DPDK release that Convoy was built with.
    """
    wait_ns = _wait_ns(wait)
    if wait_ns and next_hop is None:
        raise InputError("--wait: needs --next-hop: without one no convoys are made")
    if across_guests and not wait_ns:
        raise InputError("--across-guests: needs --wait: how long is a frame to wait?")
    options = EthdevOptions(
        mtu=mtu,
        udp_port=udp_port,
        next_hop=next_hop,
        wait_ns=wait_ns,
        across_guests=across_guests,
        networks=_networks(network or []),
    )
    environment = {**os.environ, "CONVOY_VHOST": options.text()}
    library = need("libconvoy_vhost.so")
    program = program_path(command[0])
    check_program(program, "librte_eal", library)
    os.execve(program, command, preload_environment(library, environment))
