# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The plugin with a running node: containers get its ports, and packets pass."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cli.main import app
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES
from node.test_handover import ended

from .plugin import ANOTHER, CONTAINER, SHORT, Plugin

THIRD = "5c" * 32
TRIAL = {"rate_pps": 10_000, "duration_s": 0.02, "drain_s": 5, "tolerance": 1}
# A container's two ports are joined, so that a tester in it is alone.
SERVER = """
ports:
  pod0: {vhost-user: BASE/pod0/pod0.sock, socket-mode: "0666"}
  pod1: {memif: BASE/pod1/pod1.sock, socket-mode: "0666"}
"""
CLIENT = """
ports:
  pod0: {vhost-user: BASE/pod0/pod0.sock, mode: client}
  pod1: {memif: BASE/pod1/pod1.sock, role: client}
"""
CHAINS = f"""
chains: {{all: {{from: pod0, to: pod1, path: [], both-ways: true}}}}
memory: {{mb: 128}}
workers: {{cores: [{CORES[0]}], idle: sleep}}
"""


class Pods:
    """Two networks of one node: its vhost-user port is for one, its memif port for the other."""

    def __init__(self, folder: Path, short: Path, ports: str) -> None:
        self.base = short / "pods"
        for name in ("pod0", "pod1"):
            (self.base / name).mkdir(parents=True)
        self.runtime = short / "run"
        self.runtime.mkdir()
        text = (ports + CHAINS).replace("BASE", str(self.base))
        machine = this_machine()
        self._plan = make_plan(loads(text, machine, folder), machine).data
        listens = ports is SERVER
        vhost = {"iftype": "vhostuser", "vhost": {"mode": "server" if listens else "client"}}
        memif = {"iftype": "memif", "memif": {"role": "master" if listens else "slave"}}
        shared = {"sharedDir": str(self.base), "node": str(self.runtime)}
        self.vhost = Plugin(folder, {"name": "vhost", **shared, "host": vhost})
        self.memif = Plugin(folder, {"name": "memif", **shared, "host": memif})

    @contextmanager
    def node(self) -> Iterator[Node]:
        with Node(self._plan, environment={"RUNTIME_DIRECTORY": str(self.runtime)}) as node:
            yield node

    def add(self, container: str = CONTAINER) -> list[str]:
        """Attach a container to both; return the tester's ports in it."""
        paths = [
            network.add(container, name)["interfaces"][0]["socketPath"]
            for network, name in ((self.vhost, "net1"), (self.memif, "net2"))
        ]
        return [f"virtio-user:{paths[0]}", f"memif:{paths[1]}"]

    def delete(self, container: str = CONTAINER) -> None:
        self.vhost.fine("DEL", container, "net1")
        self.memif.fine("DEL", container, "net2")


@pytest.fixture(autouse=True)
def programs() -> None:
    if find("convoyd") is None or find("convoy-gen") is None:
        pytest.skip("not built: make build")


def has_no_peer(node: Node) -> bool:
    ports = node.counts()["ports"].values()
    return all(port["device"]["link"] == "down" for port in ports)


def packets_pass(tester: ConvoyGen) -> None:
    """What is sent at each of its ports comes out at the other."""

    def passes() -> bool:
        total = tester.trial({**TRIAL, "paths": ["0>1", "1>0"]}).total
        return total is not None and total.received_pkts == total.offered_pkts > 0

    wait_for(passes, 60, "packets to pass")


def test_a_containers_packets_pass(tmp_path, short_path):
    pods = Pods(tmp_path, short_path, SERVER)
    with pods.node() as node:
        pods.vhost.fine("STATUS")
        ports = pods.add()
        for network, name in ((pods.vhost, "net1"), (pods.memif, "net2")):
            network.fine("CHECK", interface=name)
        with ConvoyGen(ports, core=CORES[-1]) as tester:
            packets_pass(tester)
            reply = pods.vhost.refused("ADD", ANOTHER)
            assert reply["code"] == 11 and "all 1 ports for containers are taken" in reply["msg"]
            assert pods.vhost.refused("STATUS")["code"] == 50
        counts = node.stop()
        assert counts["ports"]["pod0"]["rx_packets"] == counts["ports"]["pod1"]["tx_packets"] > 0


def test_a_node_that_was_killed_comes_back_where_the_container_is(tmp_path, short_path):
    pods = Pods(tmp_path, short_path, SERVER)
    with pods.node() as node:
        ports = pods.add()
        with ConvoyGen(ports, core=CORES[-1]) as tester:
            packets_pass(tester)
            node.process.signal(signal.SIGKILL)
            node.process.wait(60)
            with pods.node():
                packets_pass(tester)
                pods.vhost.fine("CHECK", interface="net1")


def test_the_next_container_gets_the_port(tmp_path, short_path):
    pods = Pods(tmp_path, short_path, SERVER)
    with pods.node() as node:
        pods.add()
        pods.delete()
        assert pods.vhost.files() == ["pod0", "pod0/pod0.sock", "pod1", "pod1/pod1.sock"]
        with ConvoyGen(pods.add(ANOTHER), core=CORES[-1]) as tester:
            packets_pass(tester)
            # It lives on when its attachment is gone: nobody gets its port, nor its packets.
            pods.delete(ANOTHER)
            assert pods.vhost.refused("ADD", THIRD)["code"] == 11
        wait_for(lambda: has_no_peer(node), 60, "it to go")
        with ConvoyGen(pods.add(THIRD), core=CORES[-1]) as tester:
            packets_pass(tester)


def test_containers_that_listen(tmp_path, short_path):
    """The node connects to what the container makes."""
    pods = Pods(tmp_path, short_path, CLIENT)
    with pods.node():
        vhost, memif = pods.add()
        with ConvoyGen([f"{vhost},server", f"{memif},server"], core=CORES[-1]) as tester:
            packets_pass(tester)
        pods.delete()
        assert pods.vhost.files() == ["pod0", "pod1"]


def test_a_port_whose_folder_a_container_replaced_is_made_anew(tmp_path, short_path):
    pods = Pods(tmp_path, short_path, CLIENT)
    folder = pods.base / SHORT
    with pods.node():
        pods.add()
        (folder / "pod0").rename(folder / "stolen")
        (folder / "pod0").symlink_to(tmp_path)
        assert pods.vhost.refused("CHECK", interface="net1")["code"] == 101
        pods.delete()
    assert pods.vhost.files() == ["pod0", "pod1"]
    assert not (pods.base / "pod0").is_symlink()


def test_without_its_node(tmp_path, short_path):
    pods = Pods(tmp_path, short_path, SERVER)
    assert pods.vhost.refused("ADD")["code"] == 11
    assert pods.vhost.refused("STATUS")["code"] == 50
    with pods.node():
        pods.add()
        other = {"iftype": "vhostuser", "vhost": {"mode": "client"}}
        assert "none of its ports" in pods.vhost.refused("ADD", ANOTHER, host=other)["msg"]
    assert pods.vhost.refused("CHECK", interface="net1")["code"] == 11
    pods.delete()
    assert pods.vhost.files() == ["pod0", "pod1"]


@pytest.fixture
def namespace() -> Iterator[Path]:
    name = f"cvcni{os.getpid()}"
    if os.getuid() != 0 or shutil.which("ip") is None:
        pytest.skip("only root makes network namespaces: sudo make check")
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        pytest.skip("no network namespaces here")
    yield Path("/run/netns") / name
    subprocess.run(["ip", "netns", "del", name], check=True)


def test_by_cnitool(tmp_path, short_path, namespace):
    """CNI's own runtime, in a network namespace."""
    tool = shutil.which("cnitool")
    if tool is None:
        pytest.skip(
            "no cnitool in PATH: go install github.com/containernetworking/cni/cnitool@v1.3.0"
        )
    pods = Pods(tmp_path, short_path, SERVER)
    configs = tmp_path / "net.d"
    configs.mkdir()
    for network in (pods.vhost, pods.memif):
        name = network.config["name"]
        text = {"cniVersion": "1.1.0", "name": name, "plugins": [network.config]}
        (configs / f"{name}.conflist").write_text(json.dumps(text))

    def call(command: str, name: str, interface: str) -> Any:
        done = subprocess.run(
            [tool, command, name, namespace], capture_output=True, text=True, check=False,
            env={"PATH": os.environ["PATH"], "NETCONFPATH": str(configs), "CNI_IFNAME": interface,
                 "CNI_PATH": str(tmp_path), "HOME": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with pods.node():
        call("status", "vhost", "net1")
        match = [json.loads(call("add", *one)) for one in (("vhost", "net1"), ("memif", "net2"))]
        paths = [one["interfaces"][0]["socketPath"] for one in match]
        assert match[0]["interfaces"][0]["sandbox"] == str(namespace)
        for one in (("vhost", "net1"), ("memif", "net2")):
            call("check", *one)
        kinds = [f"virtio-user:{paths[0]}", f"memif:{paths[1]}"]
        with ConvoyGen(kinds, core=CORES[-1]) as tester:
            packets_pass(tester)
        call("del", "vhost", "net1")
        assert len(pods.memif.records()) == 1
        call("gc", "memif", "net2")  # with an empty list
    assert pods.vhost.files() == ["pod0", "pod1"]


def test_more_ports_come_while_packets_flow(tmp_path, short_path, monkeypatch):
    """By convoy apply --handover; the container that is there stays connected."""
    base, runtime = short_path / "pods", short_path / "run"
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(runtime))
    runtime.mkdir()
    plugin = Plugin(
        tmp_path,
        {"sharedDir": str(base), "node": str(runtime), "host": {"iftype": "vhostuser"}},
    )

    def descriptor(pairs: int) -> str:
        ports = [f"  pod{i}: {{vhost-user: {base}/pod{i}/s}}" for i in range(2 * pairs)]
        chains = [
            f"  c{i}: {{from: pod{2 * i}, to: pod{2 * i + 1}, path: [], both-ways: true}}"
            for i in range(pairs)
        ]
        for i in range(2 * pairs):
            (base / f"pod{i}").mkdir(parents=True, exist_ok=True)
        more = f"memory: {{mb: 128}}\nworkers: {{cores: [{CORES[0]}], idle: sleep}}"
        return "\n".join(["ports:", *ports, "chains:", *chains, more])

    def container(of: str) -> list[str]:
        match = [plugin.add(of, name)["interfaces"][0]["socketPath"] for name in ("net1", "net2")]
        return [f"virtio-user:{path}" for path in match]

    machine = this_machine()
    plan = make_plan(loads(descriptor(1), machine, tmp_path), machine).data
    with (
        Node(plan),
        ended(runtime / "dpdk"),
        ConvoyGen(container(CONTAINER), core=CORES[-1]) as first,
    ):
        packets_pass(first)
        assert plugin.refused("ADD", ANOTHER)["code"] == 11
        (tmp_path / "more.yaml").write_text(descriptor(2))
        ran = CliRunner().invoke(app, ["apply", str(tmp_path / "more.yaml"), "--handover"])
        assert ran.exit_code == 0, ran.output
        packets_pass(first)
        with ConvoyGen(container(ANOTHER), core=CORES[-1]) as second:
            packets_pass(second)
        packets_pass(first)
