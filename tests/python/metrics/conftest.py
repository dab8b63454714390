# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""An exporter as people start it, and a made-up node that it scrapes."""

import json
import re
import socket
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from convoy.host.process import Process

COMMAND = [sys.executable, "-c", "from convoy.cli.main import main; main()", "metrics"]
DEADLINE_S = 60.0

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


# Six packets: 64, 256 and 300 ns, 2 us, 70 ms twice.
LATENCY = {
    "packets": 6,
    "ns": 140_002_620,
    "up_to_ns": {"64": 1, "256": 1, "512": 1, "2048": 1, "134217728": 2},
}


def made_up(ports: int = 2, functions: int = 3) -> dict[str, Any]:
    """Counts of a node, as large as asked for."""
    reasons = ("no_chain", "segmented", "too_big", "tx_full", "ring_full", "no_buffer")
    drops = ("denied", "default_denied", "bad_header", "fragment", "non_ip", "invalid")
    return {
        "schema": "convoy.counts/3",
        "ports": {
            f"p{i}": {
                "kind": "vhost-user",
                **{f"{way}_{what}": 1000 * i for way in ("rx", "tx") for what in UNITS},
                "drops": dict.fromkeys(reasons, i),
                "rx_bursts": {"1": 5, "8": 2, "256": 1},
                **dict.fromkeys(("rx_wait", "rx_latency", "tx_latency"), LATENCY),
                "device": {"link": "up", "rx_errors": 0, "kicks": 5, "broken_queues": 0},
            }
            for i in range(ports)
        },
        "next_hops": {"b": {"port": "p0", "sizes": {"1": 10, "23": 4, "255": 1}}},
        "functions": {
            f"f{i}": {
                "type": "firewall",
                "packets": 10**15 + i,
                "bytes": 64 * i,
                "busy_cycles": 20 * i,
                "drops": dict.fromkeys(drops, i),
                "originated": 0,
                "absorbed": 0,
                "held": 0,
                "copied_out": 0,
                "latency": LATENCY,
                "chains": [f"c{i % 100}"],
                "info": {
                    "rules_count": 2,
                    "rules": [{"index": j, "packets": 7, "name": f"r{j}"} for j in range(2)],
                    "default_packets": 4,
                },
            }
            for i in range(functions)
        },
        "flows": {},
        "workers": [
            {
                "core": 1,
                "poll_iterations": 9,
                "busy_cycles": 3,
                "total_cycles": 9,
                "longest_iteration_ns": 1500,
            }
        ],
        "accounting": dict.fromkeys(
            ("received", "originated", "sent", "dropped", "absorbed", "held"), 12
        ),
        "buffers": {"total": 16383, "in_use": 40},
        "tsc_hz": 2_500_000_000,
    }


UNITS = ("packets", "frames", "bytes")


class FakeNode:
    """Whatever answers at a node's read.sock."""

    def __init__(self, path: Path, counts: dict[str, Any], version: str = "1.2.3") -> None:
        self._result = json.dumps(counts)
        self._version = version
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._listens = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listens.bind(str(path))
        self._listens.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        hello = {"protocol": 1, "version": self._version, "pid": 1, "may_change": False}
        greeting = json.dumps({"method": "hello", "params": hello | {"request_max": 65536}})
        with suppress(OSError):
            while True:
                with self._listens.accept()[0] as peer, peer.makefile("rb") as requests:
                    peer.sendall(greeting.encode() + b"\n")
                    for line in requests:
                        number = json.loads(line)["id"]
                        peer.sendall(f'{{"id":{number},"result":{self._result}}}\n'.encode())

    def close(self) -> None:
        """It is gone; its socket stays, as that of a killed one does."""
        with suppress(OSError):
            self._listens.shutdown(socket.SHUT_RDWR)
        self._listens.close()
        self._thread.join()


class Exporter:
    """A running convoy metrics."""

    def __init__(self, process: Process) -> None:
        self.process = process
        line = process.stderr.line(0, DEADLINE_S)
        assert line is not None, process.last_words()
        self.where = line.strip().removeprefix("metrics: ")

    @property
    def address(self) -> tuple[str, int]:
        match = re.fullmatch(r"http://([0-9.]+):(\d+)/metrics", self.where)
        assert match, self.where
        return match[1], int(match[2])

    def get(self, accept: str = "application/openmetrics-text; version=1.0.0") -> tuple[str, str]:
        """Return the content type and the text."""
        request = urllib.request.Request(self.where, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def samples(self) -> Samples:
        return samples_of(self.get()[1])


def samples_of(text: str) -> Samples:
    """What a scrape says, read by a strict parser that is not ours."""
    result: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in result, key
            result[key] = sample.value
    return result


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


@contextmanager
def exporting(place: object, *options: object) -> Iterator[Exporter]:
    words = [*COMMAND, place, *(options or ("--listen", "127.0.0.1:0"))]
    with Process([str(word) for word in words]) as process:
        yield Exporter(process)


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Callable[..., FakeNode]]:
    """Makes nodes in the test's folder, which the exporter is given."""
    nodes = []

    def make(counts: dict[str, Any], pid: int = 1) -> FakeNode:
        nodes.append(FakeNode(tmp_path / "dpdk" / f"convoyd-{pid}" / "read.sock", counts))
        return nodes[-1]

    yield make
    for node in nodes:
        node.close()
