# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The page of convoy top --web: in a browser beside a real node, and asked what it must refuse."""

import asyncio
import json
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from convoy.cli.main import app
from convoy.client import Client
from convoy.errors import ConvoyError, InputError
from convoy.host.http import REQUEST_MAX, Request, Response
from convoy.host.node import Node
from convoy.host.process import Process, wait_for
from convoy.top.page import WatchPage
from convoy.top.snapshot import chains_of
from convoy.top.why import WhyWatch
from node.test_node import plan

from .browser import CHROMIUM, DEADLINE_S, Browser

PROGRAM = [sys.executable, "-c", "from convoy.cli.main import main; main()", "top"]
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="not installed: chromium")


@contextmanager
def watching(*options: str) -> Iterator[tuple[Process, str]]:
    """Serve the page; give its URL."""
    with Process([*PROGRAM, "--web", "--listen", "127.0.0.1:0", *options]) as process:
        line = process.stderr.line(0, DEADLINE_S)
        assert line is not None and line.startswith("open http://127.0.0.1:"), line
        yield process, line.removeprefix("open ").strip()
        process.signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0, process.stderr.text()


def total(browser: Browser, key: str) -> int:
    return int(browser.evaluate(f"document.querySelector('[data-total={key}]').dataset.count"))


@needs_chromium
def test_it_shows_what_the_node_counts(tmp_path: Path) -> None:
    with (
        Node(plan().data) as node,
        watching(str(node.process.pid)) as (_, url),
        Client(node.running.read) as client,
        Browser(tmp_path) as browser,
    ):
        browser.open(url)
        browser.wait("document.body.dataset.looks > 2", "some looks")
        before = client.counts()
        browser.wait("document.body.dataset.looks > 4", "two more")
        shown = {key: total(browser, key) for key in ("received", "sent", "dropped")}
        after = client.counts()
        for key, value in shown.items():
            assert before["accounting"][key] <= value <= after["accounting"][key]
        for chain in client.plan()["chains"]:
            text = browser.evaluate(
                f"document.querySelector('[data-chain={chain['name']}]').textContent"
            )
            for name in (chain["in"], chain["out"]):
                assert name in text
        arrows = browser.evaluate(
            "[...document.querySelectorAll('.arrow span')].map((one) => one.textContent)"
        )
        assert any(re.fullmatch(r"[\d.]+ [kMG]", rate) for rate in arrows), arrows
        text = browser.evaluate("document.body.innerText")
        assert all(name in text for name in before["ports"])
        assert "start convoy top --web --why" in text
        assert browser.problems == []


@pytest.mark.alone  # no other node may run: it takes the only one
@needs_chromium
def test_a_node_that_goes_is_gone_and_another_takes_its_place(tmp_path: Path) -> None:
    state = "document.getElementById('state')"
    with watching_the_only_one() as (node, url), Browser(tmp_path) as browser:
        browser.open(url)
        browser.wait(f"{state}.dataset.state === 'live'", "the node")
        pid = node.process.pid
        node.stop()
        browser.wait(f"{state}.dataset.state === 'gone'", "its end")
        assert browser.evaluate("document.body.classList.contains('gone')")
        with Node(plan().data) as other:
            browser.wait(f"{state}.dataset.state === 'live'", "the other")
            browser.wait(
                f"document.getElementById('who').textContent.includes('{other.process.pid}')",
                "its number",
            )
            assert other.process.pid != pid


@contextmanager
def watching_the_only_one() -> Iterator[tuple[Node, str]]:
    with Node(plan().data) as node, watching() as (_, url):
        yield node, url


@needs_chromium
def test_why_from_the_browser(tmp_path: Path) -> None:
    start = "document.getElementById('why-start').click()"
    with (
        Node(plan().data) as node,
        watching(str(node.process.pid), "--why") as (_, url),
        Browser(tmp_path) as browser,
    ):
        browser.open(url)
        browser.wait("!document.getElementById('why-form').hidden", "the form")
        browser.evaluate("document.getElementById('why-filter').value = 'no such word'")
        browser.evaluate(start)
        output = browser.wait("document.getElementById('why-state').textContent", "the refusal")
        assert "no" in output
        assert browser.evaluate("document.getElementById('why-stop').disabled")
        browser.evaluate("document.getElementById('why-filter').value = ''")
        browser.evaluate(start)
        browser.wait("document.querySelectorAll('#why-packets li').length > 5", "packets")
        first = browser.evaluate("document.querySelector('#why-packets pre').textContent")
        assert re.search(r"in [ab], .*chain ", first), first
        browser.evaluate("document.getElementById('why-stop').click()")
        browser.wait("document.getElementById('why-stop').disabled", "the end")
        assert not [problem for problem in browser.problems if "400" not in problem]


def test_another_filter_takes_the_place_of_the_first() -> None:
    with Node(plan().data) as node, Client(node.running.control) as other:
        watch = WhyWatch(lambda: node.running.control, lambda packet: [packet.end])
        for expression in ("", "tcp", "") * 3:
            watch.start(expression, False)
            assert watch.since(0)["armed"]
        wait_for(lambda: bool(watch.since(0)["packets"]), DEADLINE_S, "packets")
        with pytest.raises(ConvoyError, match="another `convoy why`"):
            other.arm_why()
        with pytest.raises(InputError, match="no"):
            watch.start("no such word", False)
        assert not watch.since(0)["armed"]
        watch.start("", False)
        watch.stop()
        other.arm_why()
        with pytest.raises(ConvoyError, match="another `convoy why`"):
            watch.start("", False)


FUNCTION = {"type": "x", "packets": 1, "bytes": 1, "busy_cycles": 1, "originated": 0}
EVIL = '<img src=x onerror="document.title=1">'
SNAPSHOT = {
    "schema": "convoy.watch/1", "pid": 1, "version": EVIL, "tsc_hz": 1,
    "ports": {EVIL: {"kind": EVIL, "link": EVIL, "rx_packets": 0, "rx_bytes": 0, "tx_packets": 0,
                     "tx_bytes": 0, "drops": {EVIL: 1}}},
    "chains": [{"name": EVIL, "in": EVIL, "out": EVIL, "path": [EVIL], "outputs": {}}],
    "functions": {EVIL: {**FUNCTION, "absorbed": 0, "held": 0, "drops": {EVIL: 2}, "outputs": {}}},
    "next_hops": {EVIL: {"port": EVIL, "packets": 1, "frames": 1}},
    "flows": {EVIL: {"flows_ipv4": 1, "flows_ipv6": 2, "max": 4, "max_ipv6": 2, "created": 3,
                      "timed_out": 0, "drops": {EVIL: 1}}},
    "workers": [], "accounting": {"received": 1, "originated": 0, "sent": 1,
                                               "dropped": 0},
}  # fmt: skip
SERVE = """
import asyncio, itertools, json, sys
from convoy.host.http import HttpServer
from convoy.host.listen import tcp_socket, url_of
from convoy.top.page import WatchPage
snapshot, at = json.loads(sys.argv[1]), itertools.count(0, 1000)
page = WatchPage(lambda: {**snapshot, "at_ms": next(at)}, None)
async def serve(listens):
    await HttpServer(listens, page.respond).run()
with tcp_socket("127.0.0.1:0") as listens:
    print(url_of(listens, "/") + "#" + page.token, flush=True)
    asyncio.run(serve(listens))
"""


@needs_chromium
def test_names_are_texts_only(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVE, json.dumps(SNAPSHOT)]
    with Process(command) as process, Browser(tmp_path) as browser:
        browser.open(process.stdout.line(0, DEADLINE_S).strip())
        browser.wait("document.body.dataset.looks > 2", "some looks")
        assert browser.evaluate("document.querySelectorAll('img').length") == 0
        assert browser.evaluate("document.title") == "Convoy 1"
        assert browser.evaluate("document.body.innerText").count("onerror") > 6
        assert browser.problems == []


def ask(page: WatchPage, method: str, target: str, body: bytes = b"", **fields: str) -> Response:
    given = {"host": "127.0.0.1:9104", "x-convoy-token": page.token}
    given |= {name.replace("_", "-"): value for name, value in fields.items()}
    return asyncio.run(page.respond(Request(method, target, given, body)))


class Why:
    """What would be traced."""

    def __init__(self) -> None:
        self.started: list[tuple[str, bool]] = []

    def start(self, expression: str, drops: bool) -> None:
        if expression == "bad":
            raise InputError("bad: no such word")
        self.started.append((expression, drops))

    def stop(self) -> None:
        self.started.clear()

    def since(self, number: int) -> dict[str, Any]:
        return {"after": number}


def test_who_may_ask() -> None:
    page = WatchPage(lambda: {"pid": 1}, None)
    assert ask(page, "GET", "/snapshot").status == "200 OK"
    for host in ("localhost:9104", "[::1]:9104", "127.0.0.1"):
        assert ask(page, "GET", "/snapshot", host=host).status == "200 OK"
    other = WatchPage(dict, None, "127.0.0.2")
    assert ask(other, "GET", "/snapshot", host="127.0.0.2:9104").status == "200 OK"
    assert ask(page, "GET", "/snapshot", host="127.0.0.2:9104").status == "403 Forbidden"
    for host in ("evil.example", "evil.example:9104", "127.0.0.1.evil.example:80", ""):
        assert ask(page, "GET", "/snapshot", host=host).status == "403 Forbidden"
        assert ask(page, "GET", "/", host=host).status == "403 Forbidden"
    for token in ("", "x", page.token[:-1], page.token + "x", "\xe9"):
        answer = ask(page, "GET", "/snapshot", x_convoy_token=token)
        assert answer.status == "403 Forbidden"
        assert b"pid" not in answer.body
    for path in ("/", "/page.css", "/page.js"):
        answer = ask(page, "GET", path, x_convoy_token="")
        assert answer.status == "200 OK"
        assert page.token.encode() not in answer.body
        assert "default-src 'none'" in answer.fields["Content-Security-Policy"]
        assert ask(page, "POST", path).status == "405 Method Not Allowed"
    for path in ("/../page.py", "/page.py", "/snapshot/", "/why/", "//"):
        assert ask(page, "GET", path).status == "404 Not Found"
    assert ask(page, "POST", "/why", b"{}").status == "403 Forbidden"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"1", b"\xff", b"[" * 5000, b'{"filter": 1, "drops": false}',
        b'{"filter": "", "drops": 1}', b'{"filter": ""}',
        json.dumps({"filter": "x" * 1001, "drops": False}).encode(),
        b'{"filter": "bad", "drops": false}',
    ],
)  # fmt: skip
def test_what_cannot_be_traced(body: bytes) -> None:
    why = Why()
    page = WatchPage(dict, why)
    assert ask(page, "POST", "/why", body).status == "400 Bad Request"
    assert why.started == []


def test_what_can_be_traced() -> None:
    why = Why()
    page = WatchPage(dict, why)
    assert ask(page, "POST", "/why", b'{"filter": "udp", "drops": true}').status == "200 OK"
    assert why.started == [("udp", True)]
    assert json.loads(ask(page, "GET", "/why?after=12").body) == {"after": 12}
    for after in ("-1", "x", "9" * 20, "%31"):
        status = ask(page, "GET", f"/why?after={after}").status
        assert status == ("200 OK" if after == "%31" else "400 Bad Request")
    assert ask(page, "DELETE", "/why").status == "200 OK"
    assert why.started == []
    assert ask(page, "PUT", "/why").status == "405 Method Not Allowed"


def test_a_node_that_does_not_answer_is_told() -> None:
    def gone() -> dict[str, Any]:
        raise InputError("it has gone")

    answer = ask(WatchPage(gone, None), "GET", "/snapshot")
    assert answer.status == "503 Service Unavailable"
    assert json.loads(answer.body) == {"error": "it has gone"}


def test_requests_are_bounded(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVE, json.dumps(SNAPSHOT)]
    with Process(command) as process:
        url = process.stdout.line(0, DEADLINE_S)
        port = int(re.search(r":(\d+)/", url)[1])
        for request, status in (
            (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"200"),
            (b"GET /" + b"x" * 2 * REQUEST_MAX, b"431"),
            (b"POST /why HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n", b"413"),
            (b"POST /why HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
            (b"POST /why HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
            (b"nonsense\r\n\r\n", b"400"),
        ):
            with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as client:
                client.sendall(request)
                assert client.recv(12).split()[1] == status


def test_chains_of_a_plan() -> None:
    plan_data = {
        "functions": [{"name": "sort", "outputs": [{"name": "web", "chain": "w"}]}, {"name": "fw"}],
        "chains": [{"name": "all", "in": "a", "out": "b"}, {"name": "w", "out": "b"}],
        "stages": [
            {"chain": "all", "path": ["sort"]},
            {"chain": "all", "path": ["fw"]},
            {"chain": "w", "path": []},
        ],
    }
    assert chains_of(plan_data) == [
        {"name": "all", "in": "a", "out": "b", "path": ["sort", "fw"],
         "outputs": {"sort": {"web": "w"}}},
        {"name": "w", "in": None, "out": "b", "path": [], "outputs": {}},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--why"], "--why: is of --web; add it"),
        (["--listen", "127.0.0.1:0"], "--listen: is of --web"),
        (["--web", "--json"], "--json: prints; leave --web away"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["top", *options])
    assert isinstance(done.exception, InputError)
    assert says in str(done.exception)


def test_only_this_machine_is_served() -> None:
    with Node(plan().data) as node:
        done = CliRunner().invoke(
            app, ["top", str(node.process.pid), "--web", "--listen", "0.0.0.0:0"]
        )
    assert isinstance(done.exception, InputError)
    assert "only a loopback" in str(done.exception)
