# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Real clients and servers behind functions, and what is made of their words.

How fast anybody is is no matter of these tests.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from convoy.dut.devices import device
from convoy.dut.kernel import script
from convoy.dut.openflow import flows
from convoy.errors import ConvoyError, InputError
from convoy.host.private import private_folder
from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.report.applications import sentences, served, table
from convoy.report.document import MISSING
from convoy.report.papers import beside
from convoy.report.run_data import Run
from convoy.results.applications import ApplicationPoint, ApplicationTrial
from convoy.results.folder import RunFolder
from convoy.results.scenario import Scenario, SetupSpec
from convoy.run import application as applications
from convoy.run.application import application
from convoy.run.application_run import ApplicationRun
from convoy.run.order import both_ways_setup, order
from convoy.run.two_hosts import SERVER, TwoHosts, both_ways
from cores import CORES

from . import results

CONVOY = [sys.executable, "-c", "from convoy.cli.main import main; main()"]
TCP = {"end": {"sum_received": {"bits_per_second": 2.5e9}, "sum_sent": {"retransmits": 3}}}
UDP = {"end": {"sum": {"packets": 1000, "lost_packets": 250, "bytes": 18000, "seconds": 2.0}}}
WRK = {"requests": 500, "duration_us": 250000, "bytes": 1e6, "errors": 0, "p50_us": 7, "p99_us": 9}
CURL = {"size_download": 5e6, "time_total": 1.1, "time_starttransfer": 0.1}

READ = [
    (applications.read_iperf_tcp, TCP, 0, {"mbps": 2500.0, "retransmits": 3.0}),
    (applications.read_iperf_udp, UDP, 0, {"mbps": 0.054, "pps": 375.0, "lost_ratio": 0.25}),
    (applications.read_wrk, WRK, 0,
     {"requests_per_s": 2000.0, "mbps": 32.0, "p50_ns": 7e3, "p99_ns": 9e3}),
    (applications.read_curl, CURL, 0, {"mbps": 40.0}),
    (applications.read_curl, CURL, 28, {"mbps": 40.0}),  # its time was up, as is meant
]  # fmt: skip
REFUSED = [
    (applications.read_iperf_tcp, {"error": "no route"}, 1, "no route"),
    (applications.read_iperf_udp, {"end": {"sum": UDP["end"]["sum"] | {"packets": 0}}}, 0, "sent"),
    (applications.read_wrk, WRK | {"errors": 1}, 0, "1 errors"),
    (applications.read_wrk, WRK | {"requests": 0}, 0, "0 requests"),
    (applications.read_curl, CURL | {"errormsg": "no such file"}, 78, "no such file"),
    (applications.read_curl, CURL | {"size_download": 0}, 28, "exit code 28"),
]


@pytest.mark.parametrize(("read", "output", "code", "figures"), READ)
def test_what_a_client_says_is_read(read, output, code, figures):
    assert read(json.dumps(output), code) == pytest.approx(figures)


@pytest.mark.parametrize(("read", "output", "code", "words"), REFUSED)
def test_what_is_no_result_is_none(read, output, code, words):
    with pytest.raises(ConvoyError, match=words):
        read(json.dumps(output), code)


def test_words_that_are_no_json():
    with pytest.raises(ConvoyError, match="unable to connect"):
        applications.read_wrk("unable to connect to 198.19.0.1:80", 1)


def test_what_comes_back_meets_the_mirrored_function():
    there, back = both_ways("firewall", 15)
    assert [len(f.config["rules"]) for f in (there, back)] == [15, 15]
    rules = flows((there,), (back,))
    assert "table=0,priority=65000,in_port=2,actions=goto_table:2" in rules
    assert any(line.startswith("table=0,") and "tp_dst=80" in line for line in rules)
    assert any(line.startswith("table=2,") and "tp_src=80" in line for line in rules)
    assert rules[-1] == "table=3,priority=1,in_port=2,actions=output:1"
    text = script(there, back=back).text
    assert 'iifname "right" ip saddr 198.19.0.1/32 meta l4proto 6 th sport 80 accept' in text
    with pytest.raises(InputError, match="same kind"):
        script(there, back=both_ways("router", 15)[1])


def trial(**more):
    point = ApplicationPoint(
        scenario="s", setup="firewall", device=more.pop("device", "a"),
        functions=("firewall",), port_kind="af_packet", application="http",
        repeat=more.pop("repeat", 0),
    )  # fmt: skip
    return ApplicationTrial(
        point=point, outcome="measured", duration_s=1.0, figure="requests_per_s", **more
    )


def test_trials_come_back_from_a_folder_and_become_rows(tmp_path):
    folder = RunFolder(tmp_path)
    kept = [
        trial(figures={"requests_per_s": 900.0, "mbps": 9.0}),
        trial(figures={"requests_per_s": 1100.0, "mbps": 11.0}, repeat=1),
        trial(device="b").model_copy(update={"outcome": "failed", "why": "no luck"}),
    ]
    for one in kept:
        folder.append(one)
    assert list(folder.applications()) == kept
    assert list(folder.trials()) == []  # the tester's
    rows = served(kept)
    assert [row.value for row in rows] == [1000.0, None]
    output = sentences(rows)
    assert output[0] == "HTTP (nginx, wrk) behind firewall: a 1000 [900 .. 1100] requests/s."
    assert "no luck" in output[1]
    assert [row[5].missing for row in table(rows).rows] == [False, True]


def test_rules_are_compared_with_the_vnf_behind_the_switch():
    setups = {name: SetupSpec(functions=("firewall",)) for name in ("firewall", "firewall in a VM")}
    points = [
        ("firewall", "ovs-dpdk", "iperf3-udp", 512, 900.0),
        ("firewall", "ovs-dpdk+vnf", "iperf3-udp", 512, 600.0),
        ("firewall in a VM", "ovs-dpdk+vnf", "iperf3-udp", 512, 300.0),
        ("firewall", "ovs-dpdk", "ftp", None, 500.0),
        ("firewall", "ovs-dpdk+vnf", "ftp", None, 400.0),
    ]
    rows = served(
        trial(figures={"mbps": mbps}).model_copy(update={"point": ApplicationPoint(
            scenario="x", setup=setup, device=device, functions=("firewall",),
            port_kind="af_packet", application=app, frame_bytes=size, repeat=0,
        )})
        for setup, device, app, size, mbps in points
    )  # fmt: skip
    references = ("dataplane-vs-vnf-table2-mbps",)
    run = Run(
        folders=(), rows=(), hosts=(), plans=(), commands=(), cannot=(), applications=rows,
        scenarios={"x": results.scenario(setups=setups, references=references)},
    )  # fmt: skip
    (one,) = beside(run, "x")
    assert [(column.name, column.unit) for column in one.columns[6:]] == [
        ("ovs-dpdk", "here"), ("ovs-dpdk+vnf", "here"), ("ovs-dpdk+vnf in a VM", "here"),
        ("ovs-dpdk+vnf", "rules / it"), ("ovs-dpdk+vnf in a VM", "rules / it"),
    ]  # fmt: skip
    texts = [[cell.written for cell in line] for line in one.rows]
    assert texts == [
        ["iperf3-udp", "firewall", "512", "886", "750", "1.18", "900.0", "600.0", "300.0",
         "1.50", "3.00"],
        ["ftp", "firewall", *[MISSING] * 4, "500.0", "400.0", MISSING, "1.25", MISSING],
    ]  # fmt: skip


def scenario(**more):
    return Scenario.model_validate(
        {
            "title": "t", "from": "f", "asks": "a", "devices": ["convoy", "testpmd"],
            "setups": {"router": {"functions": ["router"]}, "forward": {"functions": []}},
            "search": False, "applications": {"run": ["iperf3-tcp"]}, **more,
        }
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes two hosts: sudo make check")
def test_a_scenario_of_applications_alone():
    if find("convoyd") is None:
        pytest.skip("convoyd is not built: make build")
    devices = {name: device(name) for name in ("convoy", "testpmd")}
    plan = order({"s": scenario()}, devices, 2, 2, 1)
    assert [(one.setup, one.device.name, one.repeat) for one in plan.device_runs] == [
        ("router", "convoy", 0), ("router", "convoy", 1),
    ]  # fmt: skip
    why = {cannot.device: cannot.why for cannot in plan.cannot}
    assert "no ports that a host's interface can be" in why["testpmd"]


GUESTS = pytest.mark.skipif(
    "CONVOY_GUESTS" not in os.environ, reason="guests boot for minutes: CONVOY_GUESTS=1"
)
CASES = [
    ("convoy", "firewall", ("iperf3-udp", "ftp"), {}),
    ("ovs-dpdk", "router", ("http",), {}),
    ("linux", "firewall", ("ftp",), {}),
    ("ovs-dpdk+vnf", "firewall", ("iperf3-udp", "ftp"), {"vnf": "linux"}),
    ("convoy+vnf", "router", ("http",), {"vnf": "linux"}),
    pytest.param("ovs-dpdk+vnf", "firewall", ("http",), {"vnf": "vm"}, marks=GUESTS),
]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes two hosts: sudo make check")
@pytest.mark.parametrize(("name", "kind", "apps", "options"), CASES)
def test_clients_are_served_through_a_function(name, kind, apps, options):
    missing = [device(name).presence().missing, *(application(app).missing() for app in apps)]
    if any(missing):
        pytest.skip(next(filter(None, missing)))
    core = CORES[-1]
    spec = SetupSpec(functions=(kind,), entries=15, options={name: options})
    points = [
        ApplicationPoint(
            scenario="s", setup=kind, device=name, functions=(kind,),
            port_kind="af_packet", application=app, repeat=0,
            frame_bytes=64 if application(app).by_size else None,
        )
        for app in apps
    ]  # fmt: skip
    kept: list[ApplicationTrial] = []
    with private_folder() as folder:
        folder.chmod(0o711)
        setup = both_ways_setup(device(name), spec, "af_packet", (core,), folder)
        with device(name).start(setup) as running, TwoHosts(core) as hosts:
            running.ready(60)
            ApplicationRun(hosts, 2, core, core).measure(
                points, setup, running, kept.append, Path(folder)
            )
            # A router lets all through; no rule of the firewall allows this port.
            assert open_to(hosts, 8080, 10 if kind == "router" else 0.3) == (kind == "router")
    assert [(one.outcome, one.why) for one in kept] == [("measured", "")] * len(apps)
    for one in kept:
        assert one.figures["mbps"] > 0
        assert any("offloads" in note for note in one.notes)
        if one.point.application == "iperf3-udp":
            assert json.loads(one.client_output)["start"]["test_start"]["blksize"] == 64 - 46


def processes_with(text):
    result = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if text.encode() in (folder / "cmdline").read_bytes():
                result.append((folder / "comm").read_text().strip())
    return result


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes two hosts: sudo make check")
def test_nothing_is_left_of_a_server_when_the_run_is_killed(tmp_path):
    if application("ftp").missing():
        pytest.skip(application("ftp").missing())
    (tmp_path / "one.yaml").write_text(
        "title: t\nfrom: f\nasks: a\ndevices: [linux]\nsearch: false\n"
        "setups: {firewall: {functions: [firewall]}}\napplications: {run: [ftp]}\n"
    )
    # Where a server that gives up root may go, as it may not below tmp_path.
    with tempfile.TemporaryDirectory(prefix="cv-test-", dir="/tmp") as place:
        Path(place).chmod(0o711)
        command = [*CONVOY, "bench", "run", str(tmp_path / "one.yaml"), "--search", "full"]
        with subprocess.Popen(
            [*command, "--output", str(tmp_path / "run")],
            env={**os.environ, "TMPDIR": place},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as ours:
            try:

                def busy():  # one listens; a session is two
                    return processes_with(place).count("vsftpd") >= 3

                wait_for(lambda: busy() or ours.poll() is not None, 60, "a session")
                assert ours.poll() is None
            finally:
                ours.kill()
        wait_for(lambda: not processes_with(place), 20, "the end of all processes")


def open_to(hosts: TwoHosts, port: int, timeout_s: float) -> bool:
    """Whether a listener of the server can be reached at a port that no rule allows."""
    with hosts.server.tcp_socket() as listener, hosts.client.tcp_socket() as one:
        listener.bind((SERVER, port))
        listener.listen()
        one.settimeout(timeout_s)
        try:
            one.connect((SERVER, port))
        except TimeoutError:
            return False
        return True
