# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A virtual machine's kernel talks to another host through two nodes: ping and iperf3.

machine - vhost-user - node A - (wire: af_packet, with and without convoys) - node B - tap - host.
The guest's kernel is no test of ours that knows what we expect: it checks every checksum itself.
"""

import hashlib
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.client import Client
from convoy.errors import ConvoyError
from convoy.host.counts import RunningNode
from convoy.host.handover import hand_over
from convoy.host.machine import this_machine
from convoy.host.namespace import Namespace
from convoy.host.node import Node
from convoy.host.process import Process, wait_for

from .machine import Machine, missing
from .test_handover import HANDOVERS, ended

HOST_A = """
ports:
  machine: {{vhost-user: {socket}}}
  wire: {{af_packet: wire, convoys: {{ip: 192.0.2.1}}, mac: "02:00:00:00:00:0a"}}
next-hops: {{other: {{port: wire, mac: "02:00:00:00:00:0b", ip: 192.0.2.2}}}}
chains: {{all: {{from: machine, to: wire, both-ways: true}}}}
workers: {{idle: sleep}}
"""
HOST_B = """
ports:
  lan: {dpdk: "net_tap0,iface=lan"}
  wire: {af_packet: wire, convoys: {ip: 192.0.2.2}, mac: "02:00:00:00:00:0b"}
next-hops: {other: {port: wire, mac: "02:00:00:00:00:0a", ip: 192.0.2.1}}
chains: {all: {from: lan, to: wire, both-ways: true}}
workers: {idle: sleep}
"""
HANDED_OVER = """
ports: {{machine: {{vhost-user: {socket}}}, next: {{vhost-user: {next}}}}}
chains: {{all: {{from: machine, to: next, both-ways: true}}}}
workers: {{idle: sleep}}
"""
BEHIND = """
ports: {{lan: {{dpdk: "net_tap0,iface=lan"}}, next: {{virtio-user: {next}}}}}
chains: {{all: {{from: lan, to: next, both-ways: true}}}}
workers: {{idle: sleep}}
"""
QUIET = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1\n"
MACHINE, HOST = "10.9.0.2", "10.9.0.1"


@pytest.fixture
def hosts() -> Iterator[tuple[Namespace, Namespace]]:
    """Two hosts with a wire between them."""
    if os.geteuid() != 0:
        pytest.skip("only root makes network namespaces: sudo make check")
    if missing():
        pytest.skip(missing())
    try:
        with Namespace() as a, Namespace() as b:
            for each in (a, b):
                each.run(QUIET)
            a.run(f"ip link add wire type veth peer name wire netns {b.pid}")
            for each in (a, b):
                each.run("ip link set wire up promisc on")
            yield a, b
    except ConvoyError as error:
        if "unshare" not in str(error):
            raise
        pytest.skip(f"no network namespaces here: {error}")


def node(text: str, folder: Path, inside: Namespace | None, **values: Any) -> Node:
    machine = this_machine()
    plan = make_plan(loads(text.format(**values) if values else text, machine, folder), machine)
    return Node(plan.data, wrapper=inside.command() if inside else ())


def talk(machine: Machine) -> None:
    """Ping, and data by TCP and in short UDP packets, both ways."""
    for size in (56, 1400):
        output = machine.run(f"ping -c 4 -i 0.1 -s {size} {HOST}")
        assert "4 packets transmitted, 4 packets received" in output
    for way in ("", "-R"):
        output = machine.run(_served(f"iperf3 -c {HOST} -n 1M {way}"))
        assert re.search(r"1\.\d+ MBytes .* sender", output), output
        # What arrives is not iperf's to say: it stops to read when the other one stops to send.
        assert re.search(r"[1-9][\d.]* [KM]Bytes .* receiver", output), output
        machine.run(_served(f"iperf3 -c {HOST} -u -l 64 -b 1M -n 20K {way}"))


def ports(one: Node) -> dict[str, Any]:
    return dict(one.counts()["ports"])


def travelled(one: Node) -> tuple[int, int]:
    """Return packets and frames that went to the next hop."""
    other = one.counts()["next_hops"]["other"]
    return other["packets"], other["frames"]


def _served(command: str) -> str:
    """Return the command, again if the server is still busy with the one before."""
    again = "n=$((n+1)); [ $n -lt 5 ] || exit 1; sleep 1"
    return f"(n=0; until {command}; do {again}; done)"


@pytest.mark.alone
def test_ping_and_iperf(hosts: tuple[Namespace, Namespace], tmp_path: Path) -> None:
    inside_a, inside_b = hosts
    socket = tmp_path / "machine.sock"
    with ExitStack() as stack:
        a = stack.enter_context(node(HOST_A, tmp_path, inside_a, socket=socket))
        b = stack.enter_context(node(HOST_B, tmp_path, inside_b))
        inside_b.run(f"ip addr add {HOST}/24 dev lan; ip link set lan up")
        server = Process(inside_b.command("iperf3", "-s", "--forceflush"))
        stack.enter_context(server)
        server.wait_line(lambda line: "listening" in line, 30, "it listened")
        machine = stack.enter_context(Machine(socket, f"{MACHINE}/24", tmp_path))

        talk(machine)
        packets, frames = (sum(each) for each in zip(travelled(a), travelled(b), strict=True))
        assert packets > 2000
        assert frames < packets, "nothing was aggregated"

        for one in (a, b):
            with Client(one.running.control, 30) as client:
                client.remove_next_hop("other")
        before = ports(a)["wire"]
        talk(machine)
        after = ports(a)["wire"]
        packets = after["tx_packets"] - before["tx_packets"]
        assert packets > 500
        assert packets == after["tx_frames"] - before["tx_frames"]

        # What the machine sent has all come out, and none of it was lost on the way.
        sent = ports(a)["machine"]["rx_packets"]
        wait_for(lambda: ports(b)["lan"]["tx_packets"] >= sent, 30, "all packets at the host")
        for counts in (a.stop(), b.stop()):
            assert counts["accounting"]["conserved"]
            assert counts["accounting"]["held"] == 0
            lost = {name: sum(port["drops"].values()) for name, port in counts["ports"].items()}
            lost.pop("machine", None)  # its queue may have been full
            assert set(lost.values()) == {0}


@pytest.mark.alone
def test_a_machine_notices_no_handover(
    hosts: tuple[Namespace, Namespace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TCP by iperf3 and curl goes on while one process after the other forwards."""
    if shutil.which("curl") is None:
        pytest.skip("not installed: curl (Debian: apt-get install curl)")
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    inside = hosts[1]
    paths = {"socket": tmp_path / "machine.sock", "next": tmp_path / "next.sock"}
    page = os.urandom(1 << 20)
    (tmp_path / "page").write_bytes(page)
    with ExitStack() as stack:
        first = stack.enter_context(node(HANDED_OVER, tmp_path, None, **paths))
        stack.enter_context(ended(tmp_path / "dpdk"))
        stack.enter_context(node(BEHIND, tmp_path, inside, **paths))
        inside.run(f"ip addr add {HOST}/24 dev lan; ip link set lan up")
        for command in (
            ["iperf3", "-s", "--forceflush"],
            ["python3", "-m", "http.server", "-d", tmp_path],
        ):
            stack.enter_context(Process(inside.command(*map(str, command))))
        machine = stack.enter_context(
            Machine(paths["socket"], f"{MACHINE}/24", tmp_path, programs=("curl",))
        )
        fetch = f"curl -sf -o /tmp/page http://{HOST}:8000/page && sha256sum /tmp/page"
        running: RunningNode = first.running
        outputs: list[str] = []
        talking = threading.Thread(
            target=lambda: outputs.extend(
                machine.run(command)
                for command in (f"iperf3 -c {HOST} -t 4", f"iperf3 -c {HOST} -t 4 -R", fetch)
            )
        )
        talking.start()
        done = 0
        while talking.is_alive() or done < HANDOVERS:
            running = hand_over(running).after
            done += 1
        talking.join()
        assert done >= HANDOVERS
        assert len(outputs) == 3, outputs
        assert hashlib.sha256(page).hexdigest() in outputs[2]
