# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Control against workers under ThreadSanitizer: all is changed and read while packets flow."""

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.dns import DNS, DNSQR
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet as Layer
from scapy.packet import Raw

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.client import Client, ClientError, RefusedError
from convoy.host.apply import apply
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for
from convoy.host.programs import CHECKOUT
from cores import CORES
from hostile.front_end import connect
from hostile.guest import Guest
from openflow.conftest import ADD, DELETE, Bytes, flow_mod

CONVOYD = CHECKOUT / "build-tsan/daemon/convoyd"
ROUNDS = 3
DEADLINE_S = 60
LEFT, RIGHT = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
NODE = f"""
ports:
  left: {{vhost-user: left, mac: "{LEFT}"}}
  right: {{vhost-user: right, mac: "{RIGHT}"}}
  wire: {{pcap: {{write: FOLDER/wire.pcap}}, convoys: {{ip: 192.0.2.1}}}}
next-hops:
  b: {{port: wire, mac: "02:00:00:00:00:1b", ip: 192.0.2.2, nfi: 1, wait: 100us}}
  c: {{port: wire, mac: "02:00:00:00:00:1c", ip: 192.0.2.3, nfi: 2, for: []}}
functions:
  fw:
    firewall: {{stateful: true, rules: [{{allow: {{proto: udp}}}}, {{allow: {{dport: DPORT}}}}]}}
  nat: {{nat: {{outside: [right], inside: [10.1.0.0/16], pool: [203.0.113.0/28], mappings: 4096,
       block-log: FOLDER/nat.log}}}}
  rtr:
    router:
      addresses: {{left: [10.2.0.1/24], right: [198.51.100.1/24]}}
      routes-file: FOLDER/routes
  br: {{bridge: {{sides: [left, right]}}}}
  slow: {{policer: {{cir-bps: CIR, per: host, entries: 1024}}}}
  l2: {{l2fwd: {{mode: swap}}}}
  lb: {{balancer: {{mode: nat, table-size: 251, source: 198.51.100.77,
      services: [{{address: 203.0.113.77}}], health: {{by: link, interval-ms: 100}},
      backends: [{{address: 198.51.100.9, mac: "02:00:00:00:00:19", dev: right}},
                 {{address: 198.51.100.8, mac: "02:00:00:00:00:18", dev: right,
                  weight: WEIGHT}}]}}}}
  dns: {{cache: {{outside: [right]}}}}
  six: {{nat64: {{prefix: "2001:db8:64::/96", source: 203.0.113.9,
       eam: [{{ipv4: 192.0.2.0/24, ipv6: "2001:db8::/120"}}],
       source-ipv6: "2001:db8:ffff::1"}}}}
  watch: {{ids: {{rules-file: FOLDER/ids.rules, stateful: true, alerts-file: FOLDER/alerts}}}}
  stone: {{firewall: {{default: allow, rules: [{{deny: {{src: 10.9.0.0/16, dport: DPORT}}}}]}}}}
  esp: {{vpn: {{outside: [right], sa-file: FOLDER/sas, policies: [{{name: all}}]}}}}
  pick: {{classifier: {{rules: [{{match: {{proto: tcp}}, output: tcp}}], outputs: {{tcp: web}}}}}}
chains:
  flows: {{from: left, to: right, match: {{vlan: 1}}, path: [fw, nat], both-ways: true}}
  routed: {{from: left, to: right, match: {{vlan: 2}}, path: [rtr], both-ways: true}}
  bridged: {{from: left, to: right, match: {{vlan: 3}}, path: [br], both-ways: true}}
  metered: {{from: left, to: right, match: {{vlan: 4}}, path: [slow, l2], both-ways: true}}
  service: {{from: left, to: right, match: {{vlan: 5}}, path: [lb], both-ways: true}}
  names: {{from: left, to: right, match: {{vlan: 6}}, path: [dns], both-ways: true}}
  translated: {{from: left, to: right, match: {{vlan: 7}}, path: [six], both-ways: true}}
  watched: {{from: left, to: right, match: {{vlan: 8}}, path: [watch], both-ways: true}}
  sealed: {{from: left, to: right, match: {{vlan: 9}}, path: [esp], both-ways: true}}
  picked: {{from: left, to: right, match: {{vlan: 10}}, path: [pick], both-ways: true}}
  web: {{to: right, path: [stone]}}
  convoys: {{from: left, to: wire, match: {{vlan: 11}}, path: [stone]}}
  more: {{from: right, to: wire, match: {{vlan: 11}}}}
  stages: {{from: left, to: right, match: {{vlan: 12}}, path: [stone, l2], deployment: pipeline}}
  changed: {{from: left, to: right, match: {{vlan: 13}}, path: [EXTRA]}}
flows: {{max: 8192}}
workers: {{cores: [{CORES[0]}, {CORES[-1]}], idle: sleep}}
memory: {{hugepages: never, mb: 512}}
openflow: {{listen: punix:openflow.sock}}
"""
VLANS = range(1, 14)
FIRST = {"DPORT": "80", "CIR": "8000000", "WEIGHT": "1", "EXTRA": ""}
CHANGES = ({"DPORT": "443"}, {"CIR": "4000000"}, {"WEIGHT": "2"}, {"DPORT": "8080"}, {})
# Where workers share chains, chains stay as they are. Without these lines they come and go.
SHARED = ("flows", "service", "watched", "stages", "translated", "sealed", "names")
REMEMBERED = ("bridged", "metered")
CHAIN_CHANGES = ({"EXTRA": "l2"}, {"EXTRA": "stone", "DPORT": "443"}, {"vlan: 13": "vlan: 14"}, {})


def frames(side: str) -> list[bytes]:
    """Return frames of all chains, as they come from one side."""
    mac = LEFT if side == "left" else RIGHT
    near, far = ("10", "198.51.100") if side == "left" else ("198", "10.1.0")
    made: list[Layer] = []
    for vlan in VLANS:
        link = Ether(src=f"02:00:00:00:01:{vlan:02x}", dst=mac) / Dot1Q(vlan=vlan)
        for i in range(6):
            source = f"{near}.{vlan if near == '10' else 51}.{0 if near == '10' else 100}.{i + 2}"
            ip = IP(src=source, dst=f"{far}.{i + 2}")
            made.append(link / ip / UDP(sport=1000 + i, dport=53 + i) / Raw(bytes(20 + 30 * i)))
            made.append(link / ip / TCP(sport=1000 + i, dport=80, flags="S", seq=1))
            made.append(link / ip / TCP(sport=1000 + i, dport=80, flags="A", seq=2) / Raw(b"evil"))
            made.append(link / ip / ICMP())
        query = DNS(rd=1, qd=DNSQR(qname="a.example"))
        made.append(link / IP(src="10.6.0.2", dst="9.9.9.9") / UDP(sport=999, dport=53) / query)
        made.append(link / IP(src="10.5.0.2", dst="203.0.113.77") / UDP(sport=999, dport=53))
        made.append(link / IPv6(src="2001:db8::1", dst="2001:db8:64::808:808") / UDP())
    gateway = "10.2.0.1" if side == "left" else "198.51.100.1"
    neighbour = gateway[:-1] + "9"
    link = Ether(src="02:00:00:00:02:02", dst=mac) / Dot1Q(vlan=2)
    made.append(link / ARP(op=1, psrc=neighbour, pdst=gateway, hwsrc="02:00:00:00:02:02"))
    made.append(link / ARP(op=2, psrc=neighbour, pdst=gateway, hwsrc="02:00:00:00:02:02"))
    return [bytes(one).ljust(60, b"\0") for one in made]


class Traffic:
    """Guests of both sides that send all the time, and now and then go and come again."""

    def __init__(self, folder: Path) -> None:
        """Begin."""
        self._folder = folder
        self._ends = threading.Event()
        self.renew = threading.Event()
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=[s]) for s in ("left", "right")]
        for thread in self._threads:
            thread.start()

    def _guest(self, side: str) -> Guest:
        front_end, offered = connect(self._folder / side)
        return Guest(front_end, offered).start()

    def _run(self, side: str) -> None:
        try:
            rng, all_frames = random.Random(side), frames(side)
            guest = self._guest(side)
            while not self._ends.is_set():
                if self.renew.is_set() and side == "left":
                    guest.close()
                    guest = self._guest(side)
                    self.renew.clear()
                guest.received()
                guest.send(rng.sample(all_frames, 16))
                time.sleep(0.002)
            guest.close()
        except BaseException as error:
            self.errors.append(error)

    def close(self) -> None:
        """End."""
        self._ends.set()
        for thread in self._threads:
            thread.join()


def plan_of(text: str, folder: Path, change: dict[str, str]) -> dict[str, Any]:
    """Return the plan, with something otherwise."""
    text = text.replace("FOLDER", str(folder))
    for name, value in (
        change | {name: FIRST[name] for name in FIRST if name not in change}
    ).items():
        text = text.replace(name, value)
    machine = this_machine()
    return make_plan(loads(text, machine, folder), machine).data


def write_files(folder: Path, number: int) -> None:
    """Write the files that functions read; they differ from number to number."""
    key = bytes(range(20)).hex()
    (folder / "routes").write_text("".join(
        f"20.{number}.{i}.0/24 via 198.51.100.9 dev right\n" for i in range(100)))  # fmt: skip
    (folder / "ids.rules").write_text(
        f'alert ip any any -> any any (msg:"x"; content:"evil"; sid:{number + 1};)\n')  # fmt: skip
    sas = folder / "sas"
    sas.write_text(
        f"out 0x101 policy all local 198.51.100.1 peer 198.51.100.9 key {key}\n"
        f"in {0x200 + number} policy all local 198.51.100.1 key {key}\n"
    )
    sas.chmod(0o600)


def when_free(change: Callable[[], object]) -> None:
    """Change the node, once nobody else does."""

    def is_done() -> bool:
        try:
            change()
        except ClientError as error:
            if "changed by somebody else" not in str(error):
                raise
            return False
        return True

    wait_for(is_done, DEADLINE_S, "the node to take a change")


def next_hops(node: Node, _: Path) -> None:
    """Put and remove next hops."""
    with Client(node.running.control) as client:
        given = next(one for one in client.plan()["next_hops"] if one["name"] == "c")
        for i in range(20):
            when_free(partial(client.put_next_hop, {**given, "name": "d", "nfi": i}))
            with contextlib.suppress(RefusedError):  # a plan that was applied has it no more
                when_free(partial(client.remove_next_hop, "d"))


def openflow(node: Node, folder: Path) -> None:
    """Add and delete flow entries."""
    controller = Bytes(next(folder.rglob("openflow.sock")))
    for turn in range(40):
        controller.send(b"".join(flow_mod(ADD, 1 + vni % 2, vni=vni) for vni in range(5000, 5050)))
        controller.barrier(turn)
        controller.send(b"".join(flow_mod(DELETE, vni=vni) for vni in range(5000, 5050)))
        controller.barrier(turn)
    controller.close()


def why(node: Node, _: Path) -> None:
    """Trace packets, mirror them, and stop again."""
    for i in range(10):
        with Client(node.running.control) as client:
            client.arm_why(("", "udp", "vlan 2", "tcp")[i % 4], drops=i % 3 == 0)
            client.read_why(wait_ms=20)
            reader, writer = socket.socketpair()
            with reader, writer, contextlib.suppress(RefusedError):  # nobody reads it
                client.mirror(writer, begins=True, wait_ms=20)
            client.disarm_why()


def scraped(node: Node, _: Path) -> None:
    """Read everything that can be read."""
    with Client(node.running.read) as client:
        for _ in range(20):
            client.counts()
            client.plan()
            when_free(client.history)
            when_free(client.state)


def telemetry(node: Node, _: Path) -> None:
    """Ask DPDK's telemetry, too."""
    path = node.running.control.parent / "dpdk_telemetry.v2"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stream:
        stream.connect(str(path))
        stream.recv(1 << 20)
        stream.send(b"/")
        commands = [one for one in stream.recv(1 << 20).decode().split('"') if one[:1] == "/"]
        for one in (one for one in commands if one.startswith("/convoy")):
            stream.send(one.encode())
            stream.recv(1 << 20)


def moves(node: Node, _: Path) -> None:
    """Move queues from worker to worker."""
    rng = random.Random(1)
    with Client(node.running.control) as client:
        for _ in range(40):
            with contextlib.suppress(ClientError):  # the router holds packets of it
                client.move_queue(rng.choice(("left", "right")), 0, rng.randrange(2))


WORK: tuple[Callable[[Node, Path], None], ...] = (next_hops, openflow, why, scraped, telemetry)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    if not CONVOYD.exists():
        pytest.skip("convoyd is not built: make build-tsan")
    if len(CORES) < 2:
        pytest.skip("workers take turns on one core")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    yield tmp_path


def without(text: str, chains: Sequence[str]) -> str:
    """Return a descriptor without some chains."""
    return "".join(
        line for line in text.splitlines(keepends=True)
        if not line.startswith(tuple(f"  {chain}: {{from" for chain in chains))
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "changes", "work"),
    [
        (NODE, CHANGES, WORK),
        (without(NODE, SHARED), CHAIN_CHANGES, WORK),
        (
            without(NODE, (*SHARED, *REMEMBERED)).replace(
                "idle: sleep", "scale: auto, idle: sleep"
            ),
            CHAIN_CHANGES,
            (moves, *WORK),
        ),
    ],
    ids=["functions change", "chains change", "queues move"],
)
def test_control_and_workers_do_not_race(
    folder: Path,
    text: str,
    changes: Sequence[dict[str, str]],
    work: Sequence[Callable[[Node, Path], None]],
) -> None:
    write_files(folder, 0)

    def applied(node: Node, folder: Path) -> None:
        """Change functions, rules, routes, chains, rules of ids, associations."""
        for number, change in enumerate(changes):
            write_files(folder, number)
            when_free(partial(apply, node.running, plan_of(text, folder, change)))

    environment = {
        "XDG_RUNTIME_DIR": str(folder),
        "TSAN_OPTIONS": f"log_path={folder}/race:history_size=4",
    }
    errors: list[BaseException] = []

    def repeatedly(what: Callable[[Node, Path], None], node: Node) -> None:
        try:
            for _ in range(ROUNDS):
                what(node, folder)
        except BaseException as error:
            errors.append(error)

    # The runtime's own thread takes no signal, by which rights are given up.
    options = ["--no-sandbox"]
    with Node(plan_of(text, folder, {}), CONVOYD, environment=environment, options=options) as node:
        traffic = Traffic(folder / "convoy")
        threads = [
            threading.Thread(target=repeatedly, args=[what, node]) for what in (applied, *work)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            traffic.renew.set()
            time.sleep(0.5)
        traffic.close()
        counts = node.stop()
    assert not errors, errors
    assert not traffic.errors, traffic.errors
    assert [path.read_text() for path in folder.glob("race.*")] == []
    assert counts["accounting"]["conserved"]
    functions = counts["functions"].items()
    assert [name for name, one in functions if one["chains"] and one["packets"] == 0] == []
