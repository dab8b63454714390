# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Two nodes: the active one is killed, and its standby goes on with its flows."""

import json
import os
import random
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

from convoy.client import Client
from convoy.errors import ConvoyError, InputError
from convoy.host.node import Node
from convoy.host.process import Process, wait_for
from convoy.host.programs import need

from .test_flow_store import (
    BALANCER,
    FIREWALL,
    FLOWS,
    NAT,
    POOL,
    SERVICE,
    SOON_S,
    Net,
    answer,
    first,
    killed,
    net_of_two_hosts,
    opened,
    plan_between,
    until_it_says,
)

pytestmark = pytest.mark.alone


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nodes of other tests are not seen there."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    return tmp_path / "dpdk"


@pytest.fixture
def net() -> Iterator[Net]:
    with net_of_two_hosts() as made:
        made.middle.run("ip link set lo up")
        yield made


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return make_key(tmp_path / "key", 1)


def make_key(path: Path, seed: int) -> Path:
    path.write_text(random.Random(seed).randbytes(32).hex() + "\n")
    path.chmod(0o600)
    return path


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def at(port: int) -> str:
    return f"127.0.0.1:{port}"


def with_standby(plan: dict[str, Any], key: Path, **keys: Any) -> dict[str, Any]:
    return plan | {"standby": {"key_file": str(key), **keys}}


class Standby:
    """A convoyd that waits."""

    def __init__(self, process: Process, control: Path) -> None:
        self.process = process
        self.control = control

    def state(self) -> dict[str, Any]:
        with Client(self.control, SOON_S) as client:
            return client.standby()

    def activate(self) -> dict[str, Any]:
        with Client(self.control, SOON_S) as client:
            client.activate()
        return self.until_active()

    def until_active(self) -> dict[str, Any]:
        self.process.wait_line(lambda line: '"ready"' in line, SOON_S, "it forwarded")
        return dict(self.state()["taken_over"])

    def until(self, **expected: Any) -> dict[str, Any]:
        """Wait until its state is so."""
        state: dict[str, Any] = {}

        def is_so() -> bool:
            state.update(self.state())
            return all(state[name] == value for name, value in expected.items())

        try:
            wait_for(is_so, SOON_S, f"{expected}")
        except ConvoyError:
            pytest.fail(f"{expected}: {state}; {self.process.stderr.text()}")
        return state

    def passes(self, more: int = 2) -> None:
        """Wait until all that was is there: so many passes later."""
        start = self.state()["passes"]
        wait_for(lambda: self.state()["passes"] >= start + more, SOON_S, "passes")


@contextmanager
def standby_of(plan: dict[str, Any], net: Net | None = None) -> Iterator[Standby]:
    wrapper = net.middle.command() if net else ()
    with Process([*wrapper, need("convoyd"), "-"], takes_input=True) as process:
        process.say(json.dumps(plan))
        process.end_input()
        line = process.wait_line(lambda line: '"standby"' in line, SOON_S, "it waited")
        yield Standby(process, Path(json.loads(line)["control"]))


def active(plan: dict[str, Any], net: Net) -> Node:
    net.last = Node(plan, wrapper=net.middle.command())
    return net.last


def tcp(number: int, flags: str, payload: bytes, to: str = SERVICE) -> Any:
    return (
        IP(src=f"10.0.0.{number % 6 + 1}", dst=to)
        / TCP(sport=3000 + number, dport=80, flags=flags, seq=1000, ack=1000)
        / payload
    )


def established(net: Net, count: int) -> list[bytes]:
    """Open TCP connections; return how they are outside."""
    out = []
    for i in range(count):
        payload = f"tcp {i:05d}".encode()
        net.send("inside", tcp(i, "S", payload))
        out += net.until("outside", payload)
        net.send("outside", answer(out[-1], payload))
        net.until("inside", payload)
        net.send("inside", tcp(i, "A", payload))
        net.until("outside", payload)
    return out


@pytest.mark.parametrize("by", ["command", "silence"])
def test_established_flows_go_on(net, key, by):
    port = free_port()
    plan = plan_between(FIREWALL, NAT)
    waits = {"take_over_ms": 600} if by == "silence" else {}
    with standby_of(with_standby(plan, key, listen=at(port), **waits), net) as standby:
        with active(with_standby(plan, key, to=at(port)), net) as node:
            out = established(net, 40)
            outer = [Ether(frame)[IP].payload.sport for frame in out]
            standby.until(state="follows", flows=40)
            standby.passes()
            says = node.counts()["standby"]
            assert (says["role"], says["state"], says["flows"]) == ("active", "follows", 40)
            assert says["lag_ms"] < 5000
            killed(node)
        if by == "command":
            standby.until(state="alone")
        taken = standby.activate() if by == "command" else standby.until_active()
        assert taken | {"ms": 0} == {"why": by, "restored": 40, "lost": 0, "ms": 0}
        for i, frame in enumerate(out):
            payload = f"again {i:05d}".encode()
            # Outside first: nothing but the flow lets it in.
            sent = Ether(frame)[IP]
            net.send(
                "outside",
                IP(src=sent.dst, dst=POOL)
                / TCP(sport=80, dport=outer[i], flags="PA", seq=5, ack=7)
                / payload,
            )
            (inside,) = net.until("inside", payload)
            assert Ether(inside)[IP].dst == f"10.0.0.{i % 6 + 1}"
            assert Ether(inside)[TCP].dport == 3000 + i
            net.send("inside", tcp(i, "PA", payload))
            (outside,) = net.until("outside", payload)
            assert (Ether(outside)[IP].src, Ether(outside)[TCP].sport) == (POOL, outer[i])
        # What is of no connection stays outside, and inside.
        unknown = next(p for p in range(1024, 65536) if p not in outer)
        net.send("outside", IP(src=SERVICE, dst=POOL) / TCP(sport=80, dport=unknown) / b"unknown")
        net.send("inside", tcp(9999, "PA", b"middle"))
        net.send("inside", tcp(777, "S", b"new"))
        (new,) = net.until("outside", b"new")
        assert Ether(new)[TCP].sport not in outer
        net.send("outside", answer(new, b"known"))
        net.until("inside", b"known")
        assert b"unknown" not in net.came["inside"]
        assert b"middle" not in net.came["outside"]


@pytest.mark.parametrize(
    ("functions", "workers"), [((FIREWALL, NAT, BALANCER), 1), ((FIREWALL, NAT), 2)]
)
def test_translations_go_on(net, key, functions, workers):
    port = free_port()
    plan = plan_between(*functions, workers=workers)
    with standby_of(with_standby(plan, key, listen=at(port)), net) as standby:
        with active(with_standby(plan, key, to=at(port)), net) as node:
            out, back = opened(net)
            standby.until(state="follows", flows=FLOWS)
            standby.passes()
            killed(node)
        taken = standby.activate()
        assert (taken["restored"], taken["lost"]) == (FLOWS, 0)
        for i, frame in enumerate(out):
            payload = f"flow {i:06d}".encode()
            net.send("outside", answer(frame, payload))
            assert net.until("inside", payload) == [back[i]]
            net.send("inside", first(i, payload))
            assert net.until("outside", payload) == [frame]


def test_a_standby_comes_later_and_comes_back(net, key):
    port = free_port()
    plan = plan_between(FIREWALL, NAT)
    with active(with_standby(plan, key, to=at(port)), net) as node:
        established(net, 10)
        assert node.counts()["standby"]["state"] == "disconnected"
        for _ in range(2):  # killed, and there again: the copy is made anew
            with standby_of(with_standby(plan, key, listen=at(port)), net) as standby:
                standby.until(state="follows", flows=10)
                standby.process.signal(signal.SIGKILL)
                standby.process.wait(SOON_S)
            wait_for(
                lambda: node.counts()["standby"]["state"] == "disconnected", SOON_S, "its loss"
            )
        with standby_of(with_standby(plan, key, listen=at(port)), net) as standby:
            standby.until(state="follows", flows=10)
            changed = json.loads(json.dumps(with_standby(plan, key, to=at(port))))
            rule = {"action": "deny", "src": "10.9.0.0/16"}
            changed["functions"][0]["config"]["rules"].insert(0, rule)
            with Client(node.running.control, SOON_S) as client:  # flows may be in other files
                client.apply(changed)
            standby.until(state="follows", connections=2)
        assert node.stop()["accounting"]["conserved"]


def test_the_other_pool_is_refused(net, key):
    port = free_port()
    other = json.loads(json.dumps(plan_between(FIREWALL, NAT)))
    other["functions"][1]["config"]["pool"] = ["203.0.113.2"]
    with (
        standby_of(with_standby(other, key, listen=at(port)), net) as standby,
        active(with_standby(plan_between(FIREWALL, NAT), key, to=at(port)), net) as node,
    ):
        says = 'function "nat": its flows do not come: the active node has other parameters'
        wait_for(lambda: says in standby.process.stderr.text(), SOON_S, says)
        node.stop()


def test_another_number_of_workers_is_refused(net, key):
    port = free_port()
    two, one = plan_between(FIREWALL, workers=2), plan_between(FIREWALL)
    with (
        standby_of(with_standby(one, key, listen=at(port)), net) as standby,
        active(with_standby(two, key, to=at(port)), net) as node,
    ):
        says = "other functions, parameters, limits or number of workers"
        wait_for(lambda: says in standby.process.stderr.text(), SOON_S, says)
        until_it_says(node, says)
        node.stop()


def test_another_key_is_refused(net, key, tmp_path):
    port = free_port()
    plan = plan_between(FIREWALL)
    with (
        standby_of(with_standby(plan, key, listen=at(port)), net) as standby,
        active(with_standby(plan, make_key(tmp_path / "k2", 2), to=at(port)), net) as node,
    ):
        until_it_says(node, "copies no flows")
        state = standby.state()
        assert (state["state"], state["connections"], state["flows"]) == ("alone", 0, 0)
        assert state["refused"] > 0
        node.stop()


def test_a_standby_ends_when_asked(net, key):
    plan = with_standby(plan_between(FIREWALL), key, listen=at(free_port()))
    with standby_of(plan, net) as standby:
        with Client(standby.control, SOON_S) as client, pytest.raises(Exception, match="standby"):
            client.counts()
        standby.process.signal(signal.SIGTERM)
        assert standby.process.wait(SOON_S) == 0


def test_untrusted_peers_hold_nobody_up(net, key):
    port = free_port()
    plan = plan_between(FIREWALL, NAT)
    with standby_of(with_standby(plan, key, listen=at(port)), net) as standby:
        namespace = f"/proc/{standby.process.pid}/ns/net"
        lingering = untrusted_peers(namespace, port)
        with active(with_standby(plan, key, to=at(port)), net) as node:
            established(net, 8)
            standby.until(state="follows", flows=8)
            lingering.append(untrusted_peers(namespace, port))
            standby.passes(10)
            killed(node)
        assert standby.activate()["restored"] == 8


def untrusted_peers(namespace: str, port: int) -> list[Any]:
    """Connect from inside a namespace: some say nothing, some nonsense, one half a record."""
    import ctypes

    made: list[Any] = []

    def connect() -> None:
        with Path(namespace).open("rb") as net:
            if ctypes.CDLL(None).setns(net.fileno(), 0x40000000) != 0:
                return
        hello = struct.pack(">BHH", 22, 0x0301, 512) + b"\1"  # of a ClientHello that never comes
        for data in [b"", b"", b"GET / HTTP/1.0\r\n\r\n", hello, os.urandom(4096)] * 8:
            try:
                one = socket.create_connection(("127.0.0.1", port), 2)
                one.sendall(data)
                made.append(one)
            except OSError:
                pass

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    assert made
    return made


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "standby: say where it is"),
        ({"to": "192.0.2.1"}, "must be ADDRESS:PORT"),
        ({"to": "192.0.2.1:70000"}, "must be ADDRESS:PORT"),
        ({"to": "192.0.2.1:7000", "take_over_ms": 5}, "take_over_ms: is of a node that waits"),
    ],
)
def test_bad_plans(key, keys, words):
    plan = plan_between(FIREWALL)
    plan["ports"] = [{"name": port["name"], "kind": "null"} for port in plan["ports"]]
    with pytest.raises(InputError, match=words), Node(with_standby(plan, key, **keys)):
        pass


def test_bad_keys(net, key):
    plan = with_standby(plan_between(FIREWALL), key, to="127.0.0.1:7")
    for text, mode, words in [
        ("12", 0o600, "64 hexadecimal digits"),
        ("1" * 65, 0o600, "64 hexadecimal digits"),
        ("1" * 64, 0o644, "others may read"),
    ]:
        key.write_text(text)
        key.chmod(mode)
        with pytest.raises(Exception, match=words), active(plan, net):
            pass
