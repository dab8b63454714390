# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A real node with traffic: its metrics are what convoy top says, and Prometheus takes them."""

import json
import re
import shutil
import socket
import subprocess
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from typer.testing import CliRunner

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cli.main import app
from convoy.client import Client
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import Process, wait_for
from convoy.host.programs import find
from convoy.metrics.exposition import Format, Kind
from convoy.metrics.node import page_of

from .conftest import DEADLINE_S, Exporter, exporting, samples_of, value
from .test_exposition import PAGE, declared

MONITORING = Path(__file__).parents[3] / "packaging" / "monitoring"
ALERTS = MONITORING / "convoy-alerts.yaml"
DASHBOARD = MONITORING / "convoy-dashboard.json"

CHAIN = """
ports:
  inside: {{af_packet: {interface}}}
  internet: {{null:}}
functions:
  fw:
    firewall:
      default: allow
      rules:
        - deny: {{src: 100.64.0.66, name: bad}}
        - deny: {{src: 100.64.0.67}}
  cgn:
    nat: {{outside: [internet], inside: [100.64.0.0/10], pool: [203.0.113.1], mappings: 4096}}
chains: {{all: {{from: inside, to: internet, path: [fw, cgn]}}}}
flows: {{max: 4096}}
workers: {{idle: sleep}}
memory: {{hugepages: never}}
"""
BAD, WORSE, GOOD = 3, 2, 5


@pytest.fixture
def folder() -> Iterator[str]:
    """The node's; a test's own may be too long for sockets."""
    with tempfile.TemporaryDirectory(prefix="cv-") as folder:
        yield folder


@pytest.fixture
def node(veth: tuple[str, str], folder: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """A node that got ten packets, of which one rule dropped three."""
    if find("convoyd") is None:
        pytest.skip("convoyd is not built: make build")
    monkeypatch.setenv("RUNTIME_DIRECTORY", folder)
    machine = this_machine()
    text = CHAIN.format(interface=veth[0])
    with Node(make_plan(loads(text, machine, Path("/nowhere")), machine).data) as node:
        send(veth[1])
        wait_for(lambda: node.counts()["accounting"]["received"] == 10, DEADLINE_S, "packets")
        yield node


def send(interface: str) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((interface, 0))
        for host, packets in ((66, BAD), (67, WORSE), (5, GOOD)):
            packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(
                src=f"100.64.0.{host}", dst="198.51.100.1"
            )
            for _ in range(packets):
                wire.send(bytes(packet / UDP(sport=5000, dport=53) / b"x"))


def top(node: Node) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["top", str(node.process.pid), "--json"])
    return json.loads(done.stdout)["counts"]


def moving(samples: dict[Any, float]) -> dict[Any, float]:
    """Without what changes while nothing happens."""
    still = re.compile("convoy_(worker_|.*busy_cycles)")
    return {key: number for key, number in samples.items() if not still.match(key[0])}


def test_metrics_are_what_top_says(node, folder):
    with exporting(folder) as exporter:
        samples, counts = exporter.samples(), top(node)
        with Client(node.running.read) as client:
            version = client.hello.version
        assert moving(samples) == moving(samples_of(page_of(counts, version).text()))

        fw = {"function": "fw", "chain": "all"}
        cgn = {"function": "cgn", "chain": "all"}
        drops = "convoy_function_dropped_packets_total"
        assert value(samples, "convoy_port_rx_packets_total", port="inside") == 10
        assert value(samples, drops, **fw, reason="denied") == BAD + WORSE
        # The first burst of a port is always drawn.
        timed = value(samples, "convoy_port_rx_latency_seconds_count", port="inside")
        assert 1 <= timed <= 10
        assert value(samples, "convoy_function_latency_seconds_count", **fw) == timed
        bursts = "convoy_port_rx_burst_frames"
        assert 1 <= value(samples, f"{bursts}_count", port="inside") <= 10
        assert value(samples, f"{bursts}_sum", port="inside") == 10
        assert value(samples, "convoy_function_rule_packets_total", **fw, rule="bad") == BAD
        assert value(samples, "convoy_function_unmatched_packets_total", **fw) == GOOD
        assert value(samples, "convoy_function_packets_total", **cgn) == GOOD
        assert value(samples, "convoy_flow_table_created_flows_total", table="cgn") == 1
        blocks = counts["functions"]["cgn"]["info"]["blocks"]
        assert value(samples, "convoy_nat_ports", **cgn, state="used") == blocks["ports"]
        free = (blocks["total"] - 1) * blocks["ports"]
        assert 60_000 < value(samples, "convoy_nat_ports", **cgn, state="free") == free < 65_536


def test_counters_only_grow(node, folder, veth):
    counters = {metric.sample for metric in declared() if metric.kind == Kind.COUNTER}
    with exporting(folder) as exporter:
        before = exporter.samples()
        for _ in range(20):
            send(veth[1])
            now = exporter.samples()
            assert now.keys() == before.keys()  # traffic adds no label
            for key, number in before.items():
                assert key[0] not in counters or now[key] >= number, key
            before = now


def test_the_page_shows_what_was_scraped(node, folder):
    """Its example, but for numbers that depend on the machine."""
    with exporting(folder) as exporter:
        text = exporter.get()[1]
    example = re.search(r"\$ convoy metrics --once\n(.*?)```", PAGE.read_text(), re.S)
    lines = [line for line in example[1].splitlines() if line != "..."]
    assert len(lines) > 10
    for line in lines:
        if "cycles" in line and line[0] != "#":
            line = line.rpartition(" ")[0] + " "
            assert any(each.startswith(line) for each in text.splitlines()), line
        else:
            assert line in text.splitlines()


def promtool(*words: object, text: str | None = None) -> str:
    if shutil.which("promtool") is None:
        pytest.skip("no promtool here (Debian: apt-get install prometheus)")
    done = subprocess.run(
        ["promtool", *map(str, words)],
        input=text, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_promtool_finds_nothing_wrong(node, folder):
    with exporting(folder) as exporter:
        kind, text = exporter.get("text/plain")
        assert kind == Format.TEXT
    assert promtool("check", "metrics", text=text) == ""
    promtool("check", "rules", ALERTS)


def expressions() -> list[str]:
    """What the dashboard asks Prometheus for."""
    return [
        target["expr"]
        .replace("$__rate_interval", "30s")
        .replace("$job", ".*")
        .replace("$instance", ".*")
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        for target in panel["targets"]
    ]


def test_dashboard_and_alerts_name_metrics_that_there_are():
    names = {metric.sample for metric in declared()}
    for metric in declared():
        if metric.kind == Kind.HISTOGRAM:
            names |= {f"{metric.name}_{part}" for part in ("bucket", "sum", "count")}
    text = "\n".join(expressions()) + re.sub(r"(?m)^ *(#|summary|description).*", "",
                                             ALERTS.read_text())  # fmt: skip
    named = set(re.findall(r"\bconvoy_\w+", text))
    assert len(named) > 20
    assert not named - names


class Prometheus:
    """Scrapes an exporter each second."""

    def __init__(self, process: Process, port: int) -> None:
        self._process, self._port = process, port

    def ask(self, path: str, **words: str) -> Any:
        query = urllib.parse.urlencode(words)
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}?{query}"
        with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
            document = json.load(answer)
        assert document["status"] == "success", document
        return document["data"]

    def result(self, query: str) -> list[Any]:
        try:
            return self.ask("query", query=query)["result"]
        except OSError as error:
            assert getattr(error, "code", 503) == 503, f"{query}: {error}"
            assert self._process.running, self._process.last_words()
            return []  # not ready yet


@pytest.fixture
def exporter(node: Node, folder: str) -> Iterator[Exporter]:
    with exporting(folder) as exporter:
        yield exporter


@pytest.fixture
def prometheus(exporter: Exporter, tmp_path: Path) -> Iterator[Prometheus]:
    if shutil.which("prometheus") is None:
        pytest.skip("no prometheus here (Debian: apt-get install prometheus)")
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [
            {
                "job_name": "convoy",
                "static_configs": [{"targets": ["{}:{}".format(*exporter.address)]}],
            }
        ],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        "prometheus",
        f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with Process(words) as process:
        yield Prometheus(process, port)


def test_prometheus_scrapes_it_and_answers_the_dashboard(node, veth, prometheus):
    wait_for(lambda: prometheus.result("convoy_up == 1"), DEADLINE_S, "a scrape")
    send(veth[1])
    busy = 'rate(convoy_port_rx_packets_total{port="inside"}[30s]) > 0'
    wait_for(lambda: prometheus.result(busy), DEADLINE_S, "a rate")
    # This node has no next hop, no convoys, no balancer and no ring; its flow table drops nothing.
    lacks = re.compile("next_hop|rx_frame|balancer|ring_latency|flow_table_dropped")
    for expression in expressions():
        result = prometheus.result(expression)
        assert result or lacks.search(expression) or "> 0" in expression, expression
    rules = prometheus.ask("rules")["groups"][0]["rules"]
    assert len(rules) == ALERTS.read_text().count("- alert:")
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    node.stop()
    down = 'ALERTS{alertname="ConvoyNodeDown"}'
    wait_for(lambda: prometheus.result(down), DEADLINE_S, "the alert")
