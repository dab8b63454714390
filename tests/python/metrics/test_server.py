# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The exporter: nodes that go and come back, options, slow and hostile clients."""

import http.client
import itertools
import re
import signal
import socket
import stat
import subprocess
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from convoy.cli.main import app
from convoy.errors import InputError
from convoy.host.process import wait_for
from convoy.metrics.server import CLIENTS_MAX, REQUEST_S

from .conftest import (
    COMMAND,
    DEADLINE_S,
    Exporter,
    Samples,
    exporting,
    made_up,
    samples_of,
    value,
)

PROMETHEUS = (  # what 2.42 sends
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


def test_a_node_goes_and_comes_back(fake, tmp_path):
    with exporting(tmp_path) as exporter:
        assert exporter.samples() == {("convoy_up", frozenset()): 0}
        node = fake(made_up())
        assert value(exporter.samples(), "convoy_received_packets_total") == 12
        node.close()
        assert exporter.samples() == {("convoy_up", frozenset()): 0}
        (tmp_path / "dpdk/convoyd-1/read.sock").unlink()
        fake(made_up(), pid=2)
        assert value(exporter.samples(), "convoy_up") == 1
        fake(made_up(), pid=3)
        assert exporter.samples() == {("convoy_up", frozenset()): 0}  # which one?
    output = exporter.process.stderr.text()
    assert "no node runs there" in output
    assert "Connection refused" in output
    assert output.count("the node answers again") == 2
    assert "2 nodes run there; name one by PID" in output


@pytest.mark.parametrize("counts", [{"schema": "convoy.counts/9"}, {"schema": "convoy.counts/3"}])
def test_counts_that_it_cannot_read(fake, tmp_path, counts):
    fake(counts)
    with exporting(tmp_path) as exporter:
        assert exporter.samples() == {("convoy_up", frozenset()): 0}
        assert re.search("this one reads|cannot be read", exporter.process.stderr.line(1, 10))


def test_the_format_is_the_one_that_was_asked_for(fake, tmp_path):
    fake(made_up())
    with exporting(tmp_path) as exporter:
        for accept in (PROMETHEUS, "*/*", ""):
            kind, text = exporter.get(accept)
            assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
            assert text.endswith("# EOF\n")
        kind, text = exporter.get("text/plain")
        assert kind == "text/plain; version=0.0.4; charset=utf-8"
        assert "# EOF" not in text


def ask(exporter, request: bytes) -> bytes:
    with socket.create_connection(exporter.address, DEADLINE_S) as client:
        client.sendall(request)
        answer = b""
        with suppress(ConnectionResetError):
            while piece := client.recv(65536):
                answer += piece
        return answer


REQUESTS = [
    (b"GET /metrics HTTP/1.0\r\n\r\n", b"200 OK"),
    (b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n", b"200 OK"),
    (b"HEAD /metrics HTTP/1.1\r\n\r\n", b"200 OK"),
    (b"GET / HTTP/1.1\r\n\r\n", b"404 Not Found"),
    (b"POST /metrics HTTP/1.1\r\n\r\n", b"405 Method Not Allowed"),
    (b"\r\n\r\n", b"400 Bad Request"),
    (b"\xff\xfe \x00 \x01\r\n\r\n", b"400 Bad Request"),
    (b"GET /metrics\r\n\r\n", b"400 Bad Request"),
    (b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 5000, b"431 "),
]


def test_requests(fake, tmp_path):
    fake(made_up())
    with exporting(tmp_path) as exporter:
        for request, status in REQUESTS:
            answer = ask(exporter, request)
            # Who goes on sending may miss why it was disconnected.
            assert answer.startswith(b"HTTP/1.1 " + status) or (status == b"431 " and not answer)
            head, _, body = answer.partition(b"\r\n\r\n")
            if request.startswith(b"HEAD"):
                assert not body
            elif status == b"200 OK":
                assert int(re.search(rb"Content-Length: (\d+)", head)[1]) == len(body)
                samples_of(body.decode())


def assert_serves(exporter) -> None:
    assert "\nconvoy_up 1\n" in exporter.get()[1]


def test_half_requests_and_silence_hold_up_nobody(fake, tmp_path):
    fake(made_up())
    with exporting(tmp_path) as exporter, ExitStack() as stack:
        clients = []
        for i in range(3 * CLIENTS_MAX):
            client = stack.enter_context(socket.create_connection(exporter.address, DEADLINE_S))
            clients.append(client)
            if i % 2:
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost:")
        assert_serves(exporter)
        assert 1 < open_sockets(exporter) <= CLIENTS_MAX + 1  # it was not their turn to go
        for client in clients[-CLIENTS_MAX:]:  # each is disconnected after its time
            client.settimeout(REQUEST_S + DEADLINE_S)
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""
        assert_serves(exporter)


def open_sockets(exporter) -> int:
    folder = Path(f"/proc/{exporter.process.pid}/fd")
    links = []
    for link in folder.iterdir():
        with suppress(OSError):
            links.append(str(link.readlink()))
    with_self_pipe = 2  # of asyncio
    return sum(link.startswith("socket:") for link in links) - with_self_pipe


def test_who_asks_and_never_reads_holds_up_nobody(fake, tmp_path):
    fake(made_up(10, 500))  # more than the buffers of a unix socket hold
    path = tmp_path / "metrics.sock"
    with exporting(tmp_path, "--unix", path) as exporter, ExitStack() as stack:
        for _ in range(CLIENTS_MAX - 1):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(str(path))
            client.sendall(REQUEST)
        assert b"\nconvoy_up 1\n" in ask_unix(path)
        assert open_sockets(exporter) > 1  # they are waited for still
        wait_for(lambda: open_sockets(exporter) <= 1, DEADLINE_S, "clients to be disconnected")
        assert b"\nconvoy_up 1\n" in ask_unix(path)


REQUEST = b"GET /metrics HTTP/1.1\r\n\r\n"


def ask_unix(path: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(DEADLINE_S)
        client.connect(str(path))
        client.sendall(REQUEST)
        return b"".join(iter(lambda: client.recv(65536), b""))


def patiently(exporter: Exporter) -> Samples:
    """Scrape as Prometheus does: who was too slow with a request asks again."""
    for _ in range(9):
        with suppress(http.client.RemoteDisconnected):
            return exporter.samples()
    return exporter.samples()


def test_a_flood_of_connections(fake, tmp_path):
    fake(made_up())
    stop, count = threading.Event(), itertools.count()

    def flood(exporter) -> None:
        with ExitStack() as stack:
            while not stop.is_set():
                with suppress(OSError):
                    stack.enter_context(socket.create_connection(exporter.address, 1))
                if next(count) % 200 == 199:
                    stack.pop_all().close()

    with exporting(tmp_path) as exporter:
        threads = [threading.Thread(target=flood, args=[exporter]) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            wait_for(lambda: next(count) > 1000, DEADLINE_S, "connections")
            for _ in range(5):
                assert value(patiently(exporter), "convoy_up") == 1
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert_serves(exporter)


def test_a_unix_socket(fake, tmp_path):
    fake(made_up())
    path = tmp_path / "metrics.sock"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()  # a killed exporter's
    with exporting(tmp_path, "--unix", path, "--unix-mode", "0660") as exporter:
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        answer = ask_unix(path)
        assert value(samples_of(answer.partition(b"\r\n\r\n")[2].decode()), "convoy_up") == 1
        second = run(tmp_path, "--unix", path)
        assert (second.returncode, "somebody listens there" in second.stderr) == (2, True)
        exporter.process.signal(signal.SIGTERM)
        assert exporter.process.wait(DEADLINE_S) == 0
    assert not path.exists()


def run(*words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--listen", "0.0.0.0:9103"], "only a loopback address is possible"),
        (["--listen", "192.0.2.1:9103"], "only a loopback address is possible"),
        (["--listen", "[::]:9103"], "only a loopback address is possible"),
        (["--listen", "9103"], "write ADDRESS:PORT"),
        (["--listen", "127.0.0.1:x"], "write ADDRESS:PORT"),
        (["--listen", "127.0.0.1:65536"], "write ADDRESS:PORT"),
        (["--listen", "example.org:80"], "write ADDRESS:PORT"),
        (["--listen", "127.0.0.1:0", "--unix", "/tmp/x"], "leave it or --listen away"),
        (["--unix", "/nowhere/x"], "No such file or directory"),
        (["--unix", "/dev/null"], "is there and no socket"),
        (["--unix", "/tmp/" + 200 * "x"], "path too long"),
        (["--unix", "/tmp/x", "--unix-mode", "rw"], "write it as 0660"),
        (["--once", "--unix", "/tmp/x"], "leave --listen and --unix away"),
    ],
)
def test_wrong_options_start_nothing(tmp_path, words, problem):
    refused([tmp_path, *words], problem)


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        ("nonsense", "give a process id, a node's folder"),
        ("/dev/null", "give a process id, a node's folder"),
        ("999999999", "no convoyd of yours"),
    ],
)
def test_wrong_nodes(node, problem):
    refused([node, "--once"], problem)


def refused(words: list[object], problem: str) -> None:
    error = CliRunner().invoke(app, ["metrics", *map(str, words)]).exception
    assert isinstance(error, InputError), error
    assert problem in str(error)


def test_once(fake, tmp_path):
    ended = run(tmp_path, "--once")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert samples_of(ended.stdout) == {("convoy_up", frozenset()): 0}
    fake(made_up())
    ended = run(tmp_path, "--once")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert value(samples_of(ended.stdout), "convoy_up") == 1
