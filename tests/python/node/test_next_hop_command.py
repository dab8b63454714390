# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy next-hop on a running node: list, put, remove, and what it refuses."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cli.main import app
from convoy.cli.next_hop import next_hop_of, scid
from convoy.client import Client
from convoy.errors import ConvoyError, InputError
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for

CHAIN = """
ports:
  in: {null: 60}
  out: {null:, convoys: {ip: 192.0.2.1}}
next-hops:
  b: {port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, nfi: 7}
chains: {all: {from: in, to: out}}
workers: {idle: sleep}
"""
TO_C = ["--port", "out", "--mac", "02:00:00:00:00:0c", "--ip", "192.0.2.3"]


def test_put_list_remove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = this_machine()
    plan = make_plan(loads(CHAIN, machine, tmp_path), machine).data

    def convoy(*words: str) -> Result:
        return CliRunner().invoke(app, ["next-hop", *words])

    def hops(*words: str) -> dict[str, dict[str, int]]:
        result: dict[str, dict[str, int]] = json.loads(convoy(*words, "--json").stdout)["next_hops"]
        return result

    with Node(plan) as node:
        monkeypatch.setattr("convoy.cli.running.running_nodes", lambda: [node.running])
        wait_for(lambda: hops("list")["b"]["packets"] > 0, 20, "packets to b")
        made = hops("put", "c", *TO_C, "--for", "vlan=5", "--for", "vni=6", "--nfi", "9")
        assert (made["c"]["nfi"], made["c"]["scids"]) == (9, 2)
        assert set(hops("remove", "b")) == {"c"}
        assert hops("put", "e", *TO_C, "--for", "none")["e"]["scids"] == 0
        assert set(hops("remove", "e")) == {"c"}
        hops("put", "c", *TO_C)
        wait_for(lambda: hops("list")["c"]["packets"] > 0, 20, "packets to c")
        assert "192." not in convoy("list").stdout
        assert "a frame" in convoy("list").stdout
        for words, output in (
            (("remove", "b"), "there is none of that name"),
            (("put", "d", *TO_C), "share SC-IDs and are one instance"),
            (("put", "d", "--port", "x", *TO_C[2:]), "no port is called"),
            (("list", "--pid", "1"), "PID: 1: no convoyd of yours"),
        ):
            refused = convoy(*words)
            assert isinstance(refused.exception, InputError), refused.output
            assert output in str(refused.exception)
        counts = node.stop()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == 0


def test_a_wait_is_adapted_and_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = this_machine()
    plan = make_plan(loads(CHAIN.replace("nfi: 7", "wait: 3us"), machine, tmp_path), machine).data
    words = ["next-hop", "adapt", "b", "--at-most", "20us", "--period", "100", "--json"]
    words += ["--busy-from", "0"]  # what shares its core is busy for less of the time

    def waits(node: Node) -> int:
        with Client(node.running.read) as client:
            return int(client.plan()["next_hops"][0].get("wait_ns", 0))

    def watch(node: Node) -> None:
        try:
            wait_for(lambda: waits(node) not in (0, 3000), 60, "another wait")
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    with Node(plan) as node, Node(plan) as behind:
        monkeypatch.setattr("convoy.cli.running.running_nodes", lambda: [node.running])
        for words_behind in (["--next-node", str(behind.running.read)], ["--frames-per-s", "1"]):
            watching = threading.Thread(target=watch, args=(node,))
            watching.start()
            result = CliRunner().invoke(app, words + words_behind)
            watching.join()
            assert result.exit_code == 0, result.output
            lines = [json.loads(line) for line in result.stdout.splitlines()]
            # Which step is the first depends on the rate, thus on who else has the core.
            given = [line for line in lines if line["wait_ns"] > 0]
            assert given, lines
            assert all(line["wait_ns"] <= 20_000 and line["busy"] > 0 for line in given)
            assert waits(node) == 3000
        for bad, output in (
            (["x", *words[3:], "--frames-per-s", "1"], "NAME: 'x'"),
            ([*words[2:], "--frames-per-s", "1", "--next-node", "1"], "either --next-node or"),
            (words[2:], "either --next-node or"),
            ([*words[2:4], "0us", "--frames-per-s", "1"], "--at-most: 0"),
            ([*words[2:4], "5", "--frames-per-s", "1"], "--at-most: '5': write microseconds"),
            ([*words[2:], "--next-node", "7"], "PID: 7: no convoyd of yours"),
        ):
            refused = CliRunner().invoke(app, [*words[:2], *bad])
            assert isinstance(refused.exception, InputError), refused.output
            assert output in str(refused.exception)
        nobody = CliRunner().invoke(app, [*words, "--next-node", str(tmp_path / "no.sock")])
        assert isinstance(nobody.exception, ConvoyError)
        assert "no.sock" in str(nobody.exception)


HOP = {"port": "out", "mac": "02:00:00:00:00:0b", "ip": "192.0.2.2"}


@pytest.mark.parametrize(
    ("change", "output"),
    [
        ({"mac": "x"}, "--mac: 'x'"),
        ({"ip": "1.2"}, "--ip: '1.2'"),
        ({"nfi": 65536}, "--nfi: 65536: must be less than"),
        ({"udp-port": 0}, "--udp-port: 0"),
        ({"for": [{"vlan": 5000}]}, "--for: 5000"),
    ],
)
def test_a_bad_option_is_named(change: dict[str, object], output: str) -> None:
    with pytest.raises(InputError) as error:
        next_hop_of("b", {**HOP, **change})
    assert str(error.value).startswith(output)


@pytest.mark.parametrize("text", ["vlan", "vlan=x", "mac=5", "vlan=-1", ""])
def test_a_bad_sc_id_says_how(text: str) -> None:
    with pytest.raises(InputError, match="write vlan=ID or vni=ID"):
        scid(text)
