# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A tester here, devices on another machine: all kinds are measured, and nothing is left there,
whoever ends first.
"""

import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from convoy.dut.devices import device
from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.report.run_document import environment
from convoy.results.folder import RunFolder

from .machines import DEVICE, SSHD, Machines, machines

AF_XDP = 44  # Python does not name it
SMOKE = ("--quick", "--search", "smoke")


def missing() -> str:
    if os.geteuid() != 0:
        return "only root makes namespaces: sudo make check"
    if len(os.sched_getaffinity(0)) < 2:
        return "needs two cores"
    if find("convoyd") is None or find("convoy-gen") is None:
        return "convoyd and convoy-gen are not built: make build"
    if not SSHD.exists() or shutil.which("ssh") is None:
        return "not installed: openssh-server"
    return ""


pytestmark = pytest.mark.skipif(missing() != "", reason=missing())


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Iterator[Machines]:
    with machines(tmp_path_factory.mktemp("m")) as both:
        yield both


@pytest.fixture
def two(made: Machines) -> Iterator[Machines]:
    """Two machines on which a test leaves nothing."""
    made.install()
    yield made
    made.wait_nothing_left()


def no_af_xdp() -> bool:
    """Whether the kernel was built without AF_XDP."""
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW).close()
    except OSError as error:
        return error.errno == errno.EAFNOSUPPORT
    return False


SWITCHES = ("convoy", "testpmd", "ovs-dpdk")  # with VNFs behind them
KINDS = [
    ("af_packet", ("convoy", "testpmd", "ovs-dpdk", "linux", *(f"{one}+vnf" for one in SWITCHES))),
    pytest.param(
        "af_xdp",
        ("convoy", "testpmd", "convoy+vnf", "testpmd+vnf"),
        marks=pytest.mark.skipif(
            no_af_xdp(), reason="this kernel has no AF_XDP: CONFIG_XDP_SOCKETS=y"
        ),
    ),
]


@pytest.mark.alone
@pytest.mark.parametrize(("kind", "can"), KINDS)
def test_every_device_that_can_is_measured(two, tmp_path, kind, can):
    folder = tmp_path / "run"
    behind = ", ".join(f"{one}+vnf" for one in SWITCHES)
    scenario = two.scenario(f"convoy, testpmd, ovs-dpdk, linux, vm, {behind}")
    ports = f"{kind}:left,{kind}:right"
    words = (scenario, *SMOKE, "--repeats", "1", "--json", "--output", folder)
    done = two.run(*words, ports=ports, tester_ports=ports)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert {row["device"]: row["failed"] for row in document["rows"]} == {
        name: [] for name in can if device(name).presence().here
    }
    trials = list(RunFolder(folder).trials())
    assert {trial.point.port_kind for trial in trials} == {kind}
    note = f"on another machine: root@{DEVICE}"
    assert all(note in trial.notes and trial.commands for trial in trials)
    # No core of this machine is the device's, and no time of it is compared.
    assert all(trial.result.probe is None and not trial.uninterrupted for trial in trials)
    mine = [trial for trial in trials if trial.point.device == "convoy"]
    assert any(trial.device_cpu_ns for trial in mine)
    assert any(trial.cost and trial.cost.packets for trial in mine)
    behind = [trial for trial in trials if trial.point.device == "convoy+vnf"]
    parts = [trial.part_costs.keys() for trial in behind if trial.part_costs]
    assert {"switch", "VNF 1"} in parts
    host = RunFolder(folder).host()
    assert host.self_test is None
    assert set(host.nics) == {"left", "right"}
    assert host.device_host is not None
    assert host.device_host.kernel == os.uname().release
    assert set(host.device_host.nics) == {"left", "right"}
    cannot = {one.device: one.why for one in host.cannot}
    assert cannot["vm"].startswith("not started on another machine")
    for name in {"ovs-dpdk", "linux"} - set(can):
        assert cannot[name] == f"{name} has no {kind} ports to another machine"
    text = (folder / "report.html").read_text("utf-8")
    assert f"The devices stood on another machine</strong>, root@{DEVICE}" in text
    shown = {name.value: value.value for name, value in environment(host).rows}
    assert shown["device's machine: kernel"] == os.uname().release
    assert shown["device's interface left"].startswith(f"{kind}, a virtual interface")


@contextmanager
def in_the_middle(two: Machines, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start a run, and wait until a device is measured."""
    trials = folder / "trials.jsonl"
    command = two.command(two.scenario("convoy"), *SMOKE, "--repeats", "9", "--output", folder)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as run:  # fmt: skip
        try:
            wait_for(
                lambda: run.poll() is not None or (trials.exists() and trials.stat().st_size > 0),
                60,
                "a trial",
            )
            assert run.poll() is None, run.stderr and run.stderr.read()
            assert any("convoyd" in line for line in two.left_there())
            yield run
        finally:
            run.kill()


def test_a_connection_that_is_cut_ends_the_devices_and_the_run_is_resumed(two, tmp_path):
    folder = tmp_path / "run"
    with in_the_middle(two, folder) as run:
        two.tester.run("ip link set ctl down")
        try:
            _, reply = run.communicate(timeout=120)
            wait_for(lambda: not two.left_there(), 60, "the end of the devices there")
        finally:
            two.tester.run("ip link set ctl up")
    assert run.returncode == 1, reply
    assert f"convoy: root@{DEVICE}: the connection is lost: " in reply
    assert f"convoy bench resume {folder}" in reply.replace("\n", " ")
    two.wait_nothing_left()
    points = folder / "points.jsonl"
    text = points.read_text() if points.exists() else ""
    assert '"outcome":"failed"' not in text  # nothing that resuming would leave out
    plan = folder / "plan.yaml"
    plan.write_text(plan.read_text().replace("repeats: 9", "repeats: 1"))
    words = ("bench", "resume", str(folder), "--ssh-config", str(two.ssh_config))
    resumed = subprocess.run(
        two.python(*words), capture_output=True, text=True, timeout=120, check=False
    )
    assert resumed.returncode == 0, resumed.stderr
    assert '"outcome":"measured"' in points.read_text()


def test_an_agent_that_is_killed_leaves_nothing(two, tmp_path):
    with in_the_middle(two, tmp_path / "run") as run:
        for pid in two.pids_there("device-agent"):
            os.kill(pid, signal.SIGKILL)
        _, reply = run.communicate(timeout=120)
    assert run.returncode == 1, reply
    assert "the connection is lost" in reply


def test_a_tester_that_is_killed_leaves_nothing_there(two, tmp_path):
    with in_the_middle(two, tmp_path / "run") as run:
        run.kill()
        run.communicate(timeout=120)


REFUSED = [
    pytest.param({"host": "root@nowhere.invalid"},
                 r"root@nowhere\.invalid: no device agent there: ssh: Could not resolve hostname",
                 id="unknown host"),
    pytest.param({"port": "2223"}, rf"{DEVICE} port 2223: Connection refused", id="refused"),
    pytest.param({"host": f"nobody@{DEVICE}"}, r"Permission denied \(publickey", id="no key"),
    pytest.param({"agent": None}, r"install Convoy there, or say where its command is",
                 id="no command"),
    pytest.param({"ports": "left,none"}, rf"root@{DEVICE}: none: no such interface here; there "
                 r"are ctl, left, lo, right", id="no interface there"),
    pytest.param({"ports": "left,ctl"}, rf"ctl: has the address {re.escape(DEVICE)}, so it serves",
                 id="an interface in use"),
    pytest.param({"ports": "dpdk:ffff:1f:1f.7,dpdk:ffff:1f:1f.6"}, "no such PCI device here",
                 id="no card"),
    pytest.param({"says": '{"schema":"convoy.device-agent/1","convoy":"9.9","commit":null}'},
                 r"has convoy 9\.9, this machine has 0\..*install the same on both",
                 id="versions differ"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "why"), REFUSED)
def test_what_cannot_be_is_refused_before_anything_is_made(two, tmp_path, changed, why):
    config = two.ssh_config.read_text()
    try:
        if "port" in changed:
            two.ssh_config.write_text(config.replace("Port 2222", f"Port {changed['port']}"))
        if "agent" in changed:
            two.agent.unlink()
        if "says" in changed:
            two.install(f"echo '{changed['says']}'; exec cat")
        folder = tmp_path / "run"
        more = {key: changed[key] for key in ("host", "ports") if key in changed}
        done = two.run(two.scenario("convoy"), *SMOKE, "--output", folder, **more)
    finally:
        two.ssh_config.write_text(config)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert re.search(why, done.stderr), done.stderr
    assert not folder.exists()
