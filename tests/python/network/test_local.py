# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Five nodes in namespaces, an os-ken controller, two chains: instances end while packets flow."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convoy.errors import ConvoyError
from convoy.host.process import wait_for
from convoy.host.programs import find
from convoy.network.controller import PYTHONS, Event
from convoy.network.load import load, loads
from convoy.network.local import LocalNetwork
from convoy.network.steering import names
from convoy.results.trial_result import TrialResult
from convoy.tester.convoy_gen import ConvoyGen

pytestmark = pytest.mark.alone
EXAMPLE = Path(__file__).parents[3] / "examples/network/pa-flow.yaml"
DEADLINE_S = 60.0
SILENT_S = 5.0  # a busy machine may keep a node from its core
FLOWS = {"count": 64, "vlan": "100-101"}
EASY = {"rate_pps": 5000, "packets": 4000, "duration_s": 30, "drain_s": 5, "tolerance": 1}


class Running:
    """The network, steered by a thread of its own."""

    def __init__(self, events: list[Event], network: LocalNetwork) -> None:
        self.events = events
        self.network = network
        self.error: ConvoyError | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._end.is_set():
                self.network.step()
        except ConvoyError as error:
            self.error = error

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        assert self.error is None

    def moves(self) -> list[tuple[str, str]]:
        """Return what has moved so far: the chain, and to which instance."""
        return [
            (event.move.way.name, names(event.move.now))
            for event in self.events
            if event.what == "moved" and event.move is not None
        ]

    def await_move(self, chain: str, instance: str) -> None:
        wait_for(lambda: (chain, instance) in self.moves(), DEADLINE_S, f"{chain} at {instance}")


@pytest.fixture
def running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Running]:
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    if find("convoyd") is None or find("convoy-gen") is None:
        pytest.skip("convoyd and convoy-gen are not built: make build")
    command = [PYTHONS[-1], "-c", "import os_ken"]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("no os-ken: apt-get install python3-os-ken")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    events: list[Event] = []
    text = EXAMPLE.read_text().replace(
        "path: [fw, rtr]", f"path: [fw, rtr]\n    {request.param}", 1
    )
    with LocalNetwork(loads(text), events.append, silent_s=SILENT_S) as network:
        one = Running(events, network)
        try:
            yield one
        finally:
            one.close()


def _trial(tester: ConvoyGen, **values: Any) -> TrialResult:
    result = tester.trial({**EASY, "flows": FLOWS, **values})
    assert result.ok, result.reason
    return result


def _until_it_forwards(tester: ConvoyGen) -> None:
    def forwards() -> bool:
        total = _trial(tester, packets=64, drain_s=1).total
        return total is not None and total.received_pkts == total.offered_pkts

    wait_for(forwards, DEADLINE_S, "the network to forward")


def _assert_all(result: TrialResult) -> None:
    total = result.total
    assert total is not None
    assert total.received_pkts == total.offered_pkts > 0
    assert total.reordered_pkts == total.duplicated_pkts == total.corrupt_pkts == 0


def _received(network: LocalNetwork) -> dict[str, int]:
    return {node: of["accounting"]["received"] for node, of in network.counts().items()}


@pytest.mark.parametrize("running", ["spread: chains"], indirect=True)
def test_chains_are_led_around_nodes_that_end(running: Running, tmp_path: Path) -> None:
    network = running.network
    running.await_move("voice", "fw-b")
    running.await_move("voice", "rtr-d")
    sockets = [tmp_path / "convoy" / f"{name}.sock" for name in ("clients", "servers")]
    # Nodes and tester share cores: what is sent meanwhile lies in the ring.
    with ConvoyGen([f"vhost-user:{socket},ring=4096" for socket in sockets]) as tester:
        _until_it_forwards(tester)
        _assert_all(_trial(tester))
        counts = network.counts()
        for node in ("a", "b", "c", "d"):  # each has one of the two chains
            assert counts[node]["accounting"]["received"] >= EASY["packets"] / 2

        # Killed while packets flow: those of its chain go another way, none twice or out of order.
        killed = threading.Timer(1.0, lambda: network.nodes["a"].process.signal(signal.SIGKILL))
        killed.start()
        total = _trial(tester, packets=15_000).total
        killed.join()
        running.await_move("web", "fw-b")
        assert total is not None and total.received_pkts > total.offered_pkts / 2
        assert total.reordered_pkts == total.duplicated_pkts == total.corrupt_pkts == 0
        _assert_all(_trial(tester))

        # It comes back, and the other one falls silent.
        wait_for(lambda: "a" not in network.nodes, DEADLINE_S, "a to be missed")
        network.start("a")
        assert network.controller is not None
        there = network.controller
        wait_for(lambda: "a" in there.there, DEADLINE_S, "a to connect")
        stopped = network.nodes["b"].process
        stopped.signal(signal.SIGSTOP)
        try:
            running.await_move("voice", "fw-a")
            _assert_all(_trial(tester))
        finally:
            stopped.signal(signal.SIGCONT)
        wait_for(lambda: "b" in there.there, DEADLINE_S, "b to connect again")
        _assert_all(_trial(tester))
    running.close()
    for node, counts_of in network.stop().items():
        assert counts_of["accounting"]["conserved"], (node, counts_of["accounting"])


@pytest.mark.parametrize("running", ["spread: flows"], indirect=True)
def test_flows_of_a_chain_take_all_instances(running: Running, tmp_path: Path) -> None:
    network = running.network
    controller = network.controller
    assert controller is not None
    wait_for(lambda: len(controller.there) == 5, DEADLINE_S, "all nodes to connect")
    sockets = [tmp_path / "convoy" / f"{name}.sock" for name in ("clients", "servers")]
    flows = {"count": 64, "vlan": "100"}
    with ConvoyGen([f"vhost-user:{socket},ring=4096" for socket in sockets]) as tester:
        _until_it_forwards(tester)
        before = _received(network)
        _assert_all(_trial(tester, flows=flows))
        came = {node: after - before[node] for node, after in _received(network).items()}
        for one, other in (("a", "b"), ("c", "d")):  # each has some of 64 flows
            assert min(came[one], came[other]) > EASY["packets"] / 10
            assert came[one] + came[other] >= EASY["packets"]

        # Those of one that is killed go to the other; its own stay, in order.
        killed = threading.Timer(1.0, lambda: network.nodes["a"].process.signal(signal.SIGKILL))
        killed.start()
        total = _trial(tester, packets=15_000, flows=flows).total
        killed.join()
        running.await_move("web", "fw-b")
        assert total is not None and total.received_pkts > total.offered_pkts / 2
        assert total.reordered_pkts == total.duplicated_pkts == total.corrupt_pkts == 0
        wait_for(lambda: "a" not in network.nodes, DEADLINE_S, "a to be missed")
        network.start("a")
        running.await_move("web", "fw-a+fw-b")
        _assert_all(_trial(tester, flows=flows))
        assert _received(network)["a"] > EASY["packets"] / 10
    assert not [event for event in running.events if event.what == "refused"]


def test_a_network_without_root_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ConvoyError, match="need root"), LocalNetwork(load(EXAMPLE)):
        pass
