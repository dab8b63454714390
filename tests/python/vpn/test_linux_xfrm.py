# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Linux's own ESP (xfrm) in a virtual machine is the other end of the tunnels.

host - tap - node with `vpn` - vhost-user - the machine's kernel, which opens and seals by itself.
"""

import hashlib
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.errors import ConvoyError
from convoy.host.apply import apply
from convoy.host.machine import this_machine
from convoy.host.namespace import Namespace
from convoy.host.node import Node
from convoy.host.process import wait_for
from node.machine import MAC, Machine, missing
from node.test_apply import changed

# Ciphers need others, and random numbers, by names that modules.dep does not know.
CIPHER = ("sha512_generic", "jitterentropy_rng", "drbg", "ctr", "ghash_generic", "gcm", "seqiv")
MODULES = ("xfrm_user", "esp4", "esp6", *CIPHER)
LOCAL = {4: "192.0.2.1", 6: "2001:db8::1"}
PEER = {4: "192.0.2.2", 6: "2001:db8::2"}
HOST_MAC = "02:00:00:00:00:01"
ECHO = 7
DEADLINE_S = 60.0
REKEYS = 3


@dataclass
class Tunnel:
    """One association each way, and the addresses of its own inside."""

    name: str
    number: int
    outside: int  # IP version
    inside: int
    key_bytes: int  # with the salt
    esn: bool = False
    udp: bool = False
    mtu: int = 1400  # of the routes into it; 0: found by the sender
    ins: list[int] = field(default_factory=lambda: [0])  # numbers of keys, of the node's
    out: int = 0

    def net(self, side: int) -> str:
        return f"10.{side}.{self.number}." if self.inside == 4 else f"fd0{side}:{self.number}::"

    def prefix(self, side: int) -> str:
        return f"{self.net(side)}0/24" if self.inside == 4 else f"{self.net(side)}/64"

    def at(self, side: int) -> str:
        return f"{self.net(side)}1"

    def spi(self, direction: str, key: int) -> int:
        return {"in": 0x1000, "out": 0x2000}[direction] + 0x100 * self.number + key

    def key(self, direction: str, key: int) -> str:
        return (
            "0x"
            + hashlib.sha512(f"{self.spi(direction, key)}".encode()).hexdigest()[
                : 2 * self.key_bytes
            ]
        )

    # The node.

    def policy(self) -> str:
        match = f"{{src: '{self.prefix(1)}', dst: '{self.prefix(2)}'}}"
        return f"{{name: {self.name}, match: {match}}}"

    def associations(self) -> Iterator[str]:
        common = f"policy {self.name} local {LOCAL[self.outside]} peer {PEER[self.outside]}"
        common += f" esn {'yes' if self.esn else 'no'}"
        for key in self.ins:
            yield f"in {self.spi('in', key)} {common} key {self.key('in', key)}"
        udp = " udp 4500" if self.udp else ""
        yield f"out {self.spi('out', self.out)} {common} key {self.key('out', self.out)}{udp}"

    # The machine. Directions are the node's.

    def _ends(self, direction: str) -> str:
        ends = (PEER, LOCAL) if direction == "in" else (LOCAL, PEER)
        return f"src {ends[0][self.outside]} dst {ends[1][self.outside]}"

    def state(self, direction: str, key: int) -> str:
        flags = ["esn"] * self.esn + ["af-unspec"] * (self.inside != self.outside)
        return (
            f"xfrm state add {self._ends(direction)} proto esp spi {self.spi(direction, key)}"
            f" reqid {self.number} mode tunnel replay-window 128"
            + (f" flag {' '.join(flags)}" if flags else "")
            + f" aead rfc4106(gcm(aes)) {self.key(direction, key)} 128"
            + (" encap espinudp 4500 4500 0.0.0.0" if self.udp else "")
        )

    def gone(self, direction: str, key: int) -> str:
        spi = self.spi(direction, key)
        return f"xfrm state delete {self._ends(direction)} proto esp spi {spi}"

    def policies(self, verb: str, key: int) -> Iterator[str]:
        """Yield what opens anything of this tunnel, and seals with a key."""
        tail = f"proto esp reqid {self.number} mode tunnel"
        yield (
            f"xfrm policy {verb} src {self.prefix(2)} dst {self.prefix(1)} dir out"
            f" tmpl {self._ends('in')} spi {self.spi('in', key)} {tail}"
        )
        yield (
            f"xfrm policy {verb} src {self.prefix(1)} dst {self.prefix(2)} dir in"
            f" tmpl {self._ends('out')} {tail}"
        )

    def packets(self, machine: Machine, direction: str, key: int) -> int:
        """Return how many packets the machine had by an association."""
        text = machine.run(
            f"/bin/ip -s xfrm state get {self._ends(direction)} proto esp"
            f" spi {self.spi(direction, key)}"
        )
        matching = re.search(r"lifetime current:\s+\d+\(bytes\), (\d+)\(packets\)", text)
        assert matching is not None, text
        return int(matching[1])


TUNNELS = [
    Tunnel("plain", 1, 4, 4, 20),
    Tunnel("esn", 2, 4, 4, 36, esn=True),
    Tunnel("udp", 3, 4, 4, 20, udp=True),
    Tunnel("six", 4, 6, 6, 36, esn=True, mtu=0),
    Tunnel("six-in-four", 5, 4, 6, 20),
    Tunnel("four-in-six-in-udp", 6, 6, 4, 36, esn=True, udp=True),
]
NODE = """
ports:
  lan: {dpdk: "net_tap0,iface=lan"}
  wan: {vhost-user: SOCKET}
functions:
  tunnels:
    vpn: {outside: [wan], policies: [POLICIES], sa-file: sas, default: discard}
chains: {all: {from: lan, to: wan, path: [tunnels], both-ways: true}}
workers: {idle: sleep}
"""
# A socket that takes ESP in UDP for the kernel: setsockopt(UDP_ENCAP, UDP_ENCAP_ESPINUDP).
UDP_SOCKET = (
    "perl -e 'socket(S,{family},2,17)or die;setsockopt(S,17,100,pack(q(i),2))or die;{alone}"
    "bind(S,{address})or die;print qq(bound\\n);close STDOUT;sleep' </dev/null 2>&1"
)
UDP_OPTIONS = {
    4: {"family": 2, "alone": "", "address": "pack(q(SnNx8),2,4500,0)"},
    6: {
        "family": 10,
        "alone": "setsockopt(S,41,26,pack(q(i),1))or die;",  # IPV6_V6ONLY
        "address": "pack(q(SnNx16N),10,4500,0,0)",
    },
}


class Ends:
    """The host's namespace, the node and the machine, with all tunnels between them."""

    def __init__(self, host: Namespace, folder: Path, stack: ExitStack) -> None:
        self.host = host
        self._folder = folder
        self.write()
        policies = ", ".join(tunnel.policy() for tunnel in TUNNELS)
        here, there = folder / "machine.sock", this_machine()
        text = NODE.replace("POLICIES", policies).replace("SOCKET", str(here))
        self._plan = make_plan(loads(text, there, folder), there).data
        self.node = stack.enter_context(Node(self._plan, wrapper=host.command()))
        host.run(self._host_script())
        self.machine = stack.enter_context(
            Machine(here, f"{PEER[4]}/24", folder, MODULES, ("ip", "perl"))
        )
        self._prepare_machine()

    def write(self) -> None:
        file = self._folder / "sas"
        file.touch(0o600)
        file.write_text("\n".join(line for each in TUNNELS for line in each.associations()))

    def apply(self) -> None:
        self.write()
        assert apply(self.node.running, self._plan) == [changed("tunnels", "sa_file")]

    def ip(self, *lines: str) -> None:
        """Have the machine do several commands of ip."""
        words = "\\n".join(lines)
        self.machine.run(f"printf '{words}\\n' | /bin/ip -batch -")

    def info(self) -> dict[int, Any]:
        """Return what the node counts of each association, by SPI."""
        sas = self.node.counts()["functions"]["tunnels"]["info"]["sas"]
        return {sa["spi"]: sa for sa in sas}

    def _host_script(self) -> str:
        lines = ["set -e", f"ip link set lan address {HOST_MAC} up"]
        for version, peer in PEER.items():
            lines.append(f"ip -{version} neigh add {peer} lladdr {MAC} dev lan nud permanent")
        for each in TUNNELS:
            bits, more = ("32", "") if each.inside == 4 else ("128", "nodad")
            lines.append(f"ip addr add {each.at(1)}/{bits} dev lan {more}")
            via = f"via {PEER[each.inside]} dev lan onlink src {each.at(1)}"
            mtu = f" mtu {each.mtu}" if each.mtu else ""
            lines.append(f"ip -{each.inside} route add {each.prefix(2)} {via}{mtu}")
        return "\n".join(lines)

    def _prepare_machine(self) -> None:
        self.ip(f"addr add {PEER[6]}/64 dev eth0 nodad")
        for version, local in LOCAL.items():
            self.ip(f"neigh add {local} lladdr {HOST_MAC} dev eth0 nud permanent")
            bound = UDP_SOCKET.format_map(UDP_OPTIONS[version])
            self.machine.run(f"({bound}) > /tmp/udp{version} &")
            self.machine.run(
                f"until grep . /tmp/udp{version}; do sleep 0.1; done; grep bound /tmp/udp{version}"
            )
        for each in TUNNELS:
            bits, more = ("32", "") if each.inside == 4 else ("128", "nodad")
            via = f"via {LOCAL[each.inside]} dev eth0 onlink src {each.at(2)}"
            mtu = f" mtu {each.mtu}" if each.mtu else ""
            self.ip(
                f"addr add {each.at(2)}/{bits} dev lo {more}",
                f"route add {each.prefix(1)} {via}{mtu}",
            )
            self.ip(*(each.state(direction, 0) for direction in ("in", "out")))
            self.ip(*each.policies("add", 0))
        self.machine.run(f"nc -ll -p {ECHO} -e cat </dev/null >/dev/null 2>&1 &")


class Transfer(threading.Thread):
    """Sends to the machine's echo until told to stop, and compares what comes back."""

    def __init__(self, host: Namespace, tunnel: Tunnel) -> None:
        super().__init__()
        self._socket = host.tcp_socket(socket.AF_INET if tunnel.inside == 4 else socket.AF_INET6)
        self._socket.settimeout(DEADLINE_S)
        self._socket.connect((tunnel.at(2), ECHO))
        self._stops = threading.Event()
        self._sent, self._received = hashlib.sha256(), hashlib.sha256()
        self.sent_bytes = self.received_bytes = 0
        self._sender = threading.Thread(target=self._send)

    def _send(self) -> None:
        while not self._stops.is_set():
            block = os.urandom(8192)
            self._socket.sendall(block)
            self._sent.update(block)
            self.sent_bytes += len(block)
        self._socket.shutdown(socket.SHUT_WR)

    def run(self) -> None:
        self._sender.start()
        while block := self._socket.recv(65536):
            self._received.update(block)
            self.received_bytes += len(block)

    def goes_on(self, bytes_: int = 200_000) -> None:
        """Return when so many more bytes have come back."""
        wanted = self.received_bytes + bytes_
        wait_for(lambda: self.received_bytes >= wanted, DEADLINE_S, "the transfer to go on")

    def end(self) -> None:
        self._stops.set()
        self._sender.join(DEADLINE_S)
        self.join(DEADLINE_S)
        self._socket.close()
        assert self.received_bytes == self.sent_bytes
        assert self._received.digest() == self._sent.digest()


def talk(ends: Ends, tunnel: Tunnel) -> None:
    """Ping both ways, short and long, and data by TCP."""
    ping = "ping -6" if tunnel.inside == 6 else "ping"
    for size in (0, 1200):
        output = ends.machine.run(f"{ping} -c 2 -i 0.1 -s {size} -I {tunnel.at(2)} {tunnel.at(1)}")
        assert "2 packets transmitted, 2 packets received" in output
    transfer = Transfer(ends.host, tunnel)
    transfer.start()
    transfer.goes_on()
    transfer.end()


def renew(ends: Ends, tunnel: Tunnel, key: int) -> None:
    """Give a tunnel new keys, both ways, in the manual's order."""
    was = key - 1
    tunnel.ins = [was, key]
    ends.ip(tunnel.state("in", key), tunnel.state("out", key))
    ends.apply()
    ends.ip(*tunnel.policies("update", key))
    tunnel.out = key
    ends.apply()
    # The old ones have nothing under way: the node has all that the machine sent, and the machine
    # something newer, behind all that the node sent.
    old = tunnel.spi("in", was)
    for had, what in (
        (
            lambda: ends.info()[old]["packets"] == tunnel.packets(ends.machine, "in", was),
            "all of the old key",
        ),
        (lambda: tunnel.packets(ends.machine, "out", key) > 0, "something of the new key"),
    ):
        wait_for(had, DEADLINE_S, what)
    ends.ip(tunnel.gone("in", was), tunnel.gone("out", was))
    tunnel.ins = [key]
    ends.apply()


@pytest.fixture
def host() -> Iterator[Namespace]:
    if os.geteuid() != 0:
        pytest.skip("only root makes network namespaces: sudo make check")
    if missing():
        pytest.skip(missing())
    try:
        with Namespace() as made:
            yield made
    except ConvoyError as error:
        if "unshare" not in str(error):
            raise
        pytest.skip(f"no network namespaces here: {error}")


@pytest.mark.alone
def test_linux_is_the_other_end(host: Namespace, tmp_path: Path) -> None:
    with ExitStack() as stack:
        ends = Ends(host, tmp_path, stack)
        for tunnel in TUNNELS:
            talk(ends, tunnel)

        esn = next(tunnel for tunnel in TUNNELS if tunnel.name == "esn")
        transfer = Transfer(host, esn)
        transfer.start()
        for key in range(1, REKEYS + 1):
            transfer.goes_on()
            renew(ends, esn, key)
        transfer.goes_on()
        transfer.end()

        # Each end opened what the other one sealed, all of it and nothing else.
        for tunnel in TUNNELS:
            for direction in ("in", "out"):
                spi = tunnel.spi(direction, tunnel.out)
                packets = tunnel.packets(ends.machine, direction, tunnel.out)
                assert ends.info()[spi]["packets"] == packets > 0
        errors = re.findall(r"(Xfrm\w+)\s+(\d+)", ends.machine.run("cat /proc/net/xfrm_stat"))
        assert [name for name, count in errors if count != "0"] == []
        assert errors
        counts = ends.node.stop()
        # What was too long its sender was told; what IPv6 says by itself is no tunnel's.
        drops = counts["functions"]["tunnels"]["drops"]
        assert {name for name, count in drops.items() if count} <= {"too_big", "discarded"}
        assert drops["too_big"] > 0
        assert counts["accounting"]["conserved"]
