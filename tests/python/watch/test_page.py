# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The page of a real node in a real browser; what it refuses; names that would be markup."""

import asyncio
import html
import http.client
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.client import ClientError
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.metrics.listen import tcp_socket
from convoy.watch.feed import Feed
from convoy.watch.graph import Place, graph_of
from convoy.watch.server import PageServer, is_loopback
from convoy.watch.snapshot import Moment, snapshot

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TEXT = """
ports: {a: {null: 60}, b: {null: }}
functions: {f: {l2fwd: {mode: swap}}, g: {firewall: {default: allow}}}
chains: {all: {from: a, to: b, path: [f, g]}}
memory: {hugepages: never}
"""
MARKUP = "<img src=x onerror=alert(1)>"


def plan() -> dict:
    machine = this_machine()
    return make_plan(loads(TEXT, machine, Path("/nowhere")), machine).data


@contextmanager
def served(feed: Feed) -> Iterator[int]:
    """Serve a feed's latest; give the port."""
    with tcp_socket("127.0.0.1:0") as listens:
        server = PageServer(listens, feed)
        loop = asyncio.new_event_loop()

        async def run() -> None:
            serving = await asyncio.start_server(server._serve, sock=listens, limit=8192)
            async with serving:
                await server._stopped.wait()

        thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
        thread.start()
        try:
            yield listens.getsockname()[1]
        finally:
            loop.call_soon_threadsafe(server._stopped.set)
            thread.join()
            loop.close()


def ask(port: int, path: str = "/", method: str = "GET", **fields: str) -> tuple[int, str, bytes]:
    """Return the status, the policy and the body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers={k.replace("_", "-"): v for k, v in fields.items()})
    answer = connection.getresponse()
    return answer.status, answer.headers.get("Content-Security-Policy", ""), answer.read()


def gone() -> Path:
    raise ClientError("no node runs there")


def dom(port: int, folder: Path) -> str:
    """Return what a browser made of the page."""
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=3000", "--dump-dom",
        f"http://127.0.0.1:{port}/",
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.skipif(find("convoyd") is None, reason="convoyd is not built: make build")
def test_feed_says_what_the_node_counts_and_when_it_is_gone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with Node(plan()) as node:
        feed = Feed(lambda: node.running.read)
        first, before = feed.read(), node.counts()["accounting"]["received"]
        second, after = feed.read(), node.counts()["accounting"]["received"]
    assert first["counts"]["received"] <= before <= second["counts"]["received"] <= after
    assert [way["packets_per_s"] for way in first["ways"]] == [None] * 3
    assert second["totals"]["received"] > 0
    dropped = {(one["of"], one["reason"]) for one in second["drops"]}
    assert dropped == {("g", "bad_header")}
    third = feed.read()
    assert third["up"] is False
    assert third["problem"]


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make setup")
@pytest.mark.skipif(find("convoyd") is None, reason="convoyd is not built: make build")
def test_browser_shows_the_numbers_of_the_node(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with Node(plan()) as node:
        feed = Feed(lambda: node.running.read)
        feed.read()
        state = feed.read()
    feed.latest = json.dumps(state).encode()
    with served(feed) as port:
        seen = dom(port, tmp_path)
    counts = dict(re.findall(r'data-count="(\w+)">([\d,]+) packets', seen))
    assert {key: int(value.replace(",", "")) for key, value in counts.items()} == {
        key: state["counts"][key] for key in ("received", "sent", "dropped")
    }
    assert f"{state['drops'][0]['packets']:,}</td>" in seen
    assert "bad_header" in seen
    assert f"node {state['pid']}" in seen


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make setup")
def test_names_are_text(tmp_path):
    feed = Feed(gone)
    hostile = {"stages": [], "functions": [{"name": MARKUP}]}
    accounting = {"received": 1, "sent": 0, "dropped": 1}
    counts = {
        "ports": {}, "flows": {}, "workers": [], "next_hops": {}, "accounting": accounting,
        "functions": {MARKUP: {"type": MARKUP, "drops": {MARKUP: 3}}},
    }  # fmt: skip
    shown = snapshot(graph_of(hostile), Moment(1.0, counts), None)
    feed.latest = json.dumps({"up": True, "pid": 1, "version": MARKUP, **shown}).encode()
    with served(feed) as port:
        seen = dom(port, tmp_path)
    assert "<img" not in seen
    assert seen.count(html.escape(MARKUP, quote=False)) >= 4


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make setup")
def test_a_node_that_is_gone_is_shown(tmp_path):
    feed = Feed(gone)
    feed.latest = json.dumps(feed.read()).encode()
    with served(feed) as port:
        assert "the node is gone: no node runs there" in dom(port, tmp_path)


def test_only_its_own_page_reads():
    with served(Feed(gone)) as port:
        here = f"127.0.0.1:{port}"
        for path in ("/", "/page.js", "/page.css", "/state.json"):
            status, policy, body = ask(port, path)
            assert (status, policy.startswith("default-src 'none'")) == (200, True)
            assert body
        assert ask(port, Host=f"localhost:{port}")[0] == 200
        assert ask(port, "/state.json", Origin=f"http://{here}")[0] == 200
        assert ask(port, Host=f"evil.example:{port}")[0] == 421
        assert ask(port, Host="127.0.0.1:1")[0] == 421
        assert ask(port, "/state.json", Origin="http://evil.example")[0] == 421
        assert ask(port, "/state.json", Sec_Fetch_Site="cross-site")[0] == 421
        assert ask(port, "/../page.py")[0] == 404
        assert ask(port, "/state.json", "POST")[0] == 405
        assert ask(port, "/", X=(8192 * "x"))[0] == 431
        assert ask(port, "/", "HEAD")[2] == b""


@pytest.mark.parametrize(
    ("host", "is_one"),
    [("127.0.0.1:80", True), ("[::1]:80", True), ("localhost:80", True), ("127.0.0.1", False),
     ("127.0.0.1:81", False), ("10.0.0.1:80", False), ("localhost.evil.example:80", False),
     ("", False)],
)  # fmt: skip
def test_loopback(host, is_one):
    assert is_loopback(host, 80) is is_one


def test_graph_of_outputs_rings_and_circles():
    graph = graph_of({
        "functions": [{"name": n, "outputs": o} for n, o in
                      [("f", [{"name": "x", "chain": "web"}]), ("g", None), ("h", None)]],
        "stages": [
            {"chain": "all", "source": {"port": "a"}, "path": ["f"], "sink": {"ring": "r"}},
            {"chain": "all", "source": {"ring": "r"}, "path": ["g"], "sink": {"port": "b"}},
            {"chain": "all", "source": {"handoff": True}, "path": ["f"], "sink": {"port": "b"}},
            {"chain": "web", "source": {"outputs": True}, "path": ["h", "f"],
             "sink": {"port": "b"}},
        ],
        "next_hops": [{"name": "n", "port": "b"}],
    })  # fmt: skip
    names = {(one.name, to.name): chains for (one, to), chains in graph.ways.items()}
    assert names == {
        ("a", "f"): ["all"], ("f", "g"): ["all"], ("g", "b"): ["all"], ("f", "h"): ["web"],
        ("h", "f"): ["web"], ("f", "b"): ["web"], ("b", "n"): [],
    }  # fmt: skip
    assert graph.columns[Place("rx", "a")] == 0
    assert max(graph.columns, key=graph.columns.__getitem__) == Place("next_hop", "n")


@pytest.mark.skipif(find("convoyd") is None, reason="convoyd is not built: make build")
def test_feed_finds_the_next_node(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    place: list[Path] = []

    def where() -> Path:
        return place[0] if place else gone()

    with Feed(where) as feed:
        wait_for(lambda: b"no node runs there" in feed.latest, 20, "the feed to say it is gone")
        with Node(plan()) as node:
            place.append(node.running.read)
            wait_for(lambda: json.loads(feed.latest)["up"], 20, "the node to be found")
