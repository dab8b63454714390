# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""`scale: auto`: queues go from worker to worker while packets flow, by load and by request."""

import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.client import Client, RefusedError
from convoy.errors import InputError
from convoy.host.apply import apply
from convoy.host.counts import RunningNode, running_nodes
from convoy.host.handover import hand_over
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.node_check import check_plan
from convoy.host.process import wait_for
from convoy.host.programs import CHECKOUT, need
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES

from .test_handover import ended, until_it_forwards

pytestmark = pytest.mark.alone

SOON_S = 30.0
MOVES = int(os.environ.get("CONVOY_MOVES", "200"))
PORTS = ("a", "b", "c", "d")
FLOWS = {"count": 16}
TRAFFIC = {
    "rate_pps": 20_000,
    "duration_s": 0.5,
    "drain_s": 10,
    "tolerance": 1,
    "flows": FLOWS,
    "paths": ["0>1", "1>0", "2>3", "3>2"],
}


def text_of(port: Callable[[str], str], function: str = "l2fwd: {mode: swap}") -> str:
    """Return a descriptor of two chains both ways: a queue of each of four ports."""
    ports = "\n".join(f"  {name}: {{{port(name)}}}" for name in PORTS)
    return f"""
ports:
{ports}
functions:
  f: {{{function}}}
chains:
  ab: {{from: a, to: b, path: [f], both-ways: true}}
  cd: {{from: c, to: d, path: [f], both-ways: true}}
workers: {{cores: [{CORES[0]}, {CORES[-1]}], idle: sleep, scale: auto}}
memory: {{hugepages: never}}
"""


def plan_of(text: str, running: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a plan of three workers, of which the third has no queue when it begins."""
    machine = this_machine()
    plan = make_plan(loads(text, machine, Path("/nowhere")), machine, running).data
    if running is None:
        plan["workers"].append(plan["workers"][0])
    return plan


def counts_of(node: RunningNode) -> dict[str, Any]:
    with Client(node.read) as client:
        return client.counts()


def placed(counts: dict[str, Any]) -> dict[str, int]:
    """Return the worker of each port's queue; each has one."""
    queues = [(one["port"], i) for i, w in enumerate(counts["workers"]) for one in w["queues"]]
    assert len(dict(queues)) == len(queues)
    return dict(queues)


def move(node: RunningNode, port: str, worker: int) -> None:
    with Client(node.control) as client:
        client.move_queue(port, 0, worker)


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service's folder: nodes of other tests are not seen there."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    return tmp_path / "dpdk"


@pytest.fixture
def text(tmp_path: Path) -> str:
    return text_of(lambda name: f"vhost-user: {tmp_path}/{name}.sock")


@pytest.fixture
def tester(tmp_path: Path) -> Iterator[ConvoyGen]:
    ports = [f"vhost-user:{tmp_path}/{name}.sock,ring=1024" for name in PORTS]
    with ConvoyGen(ports, core=CORES[-1]) as running:
        yield running


class Churn:
    """Something that is done again and again while packets flow, which all arrive, in order."""

    def __init__(self, tester: ConvoyGen) -> None:
        self._tester = tester
        self.sent = self.lost = 0

    def run(self, change: Callable[[], None]) -> None:
        errors: list[BaseException] = []

        def guarded() -> None:
            try:
                change()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=guarded)
        thread.start()
        while thread.is_alive() or self.sent == 0:
            total = self._tester.trial(TRAFFIC).total
            assert total is not None
            self.sent += total.sent_pkts
            self.lost += total.sent_pkts - total.received_pkts
            assert (total.reordered_pkts, total.duplicated_pkts, total.corrupt_pkts) == (0, 0, 0)
        thread.join()
        assert not errors, errors

    def check(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """All is accounted for: nothing but what found the tester's ring full."""
        full = sum(port["drops"]["tx_full"] for port in after["ports"].values())
        assert after["accounting"]["received"] == before["accounting"]["received"] + self.sent
        assert self.lost == full == after["accounting"]["dropped"]


def test_queues_move_and_nothing_is_lost_or_out_of_order(text, tester):
    rng = random.Random(1)

    with Node(plan_of(text)) as node:
        until_it_forwards(tester)
        before = counts_of(node.running)
        churn = Churn(tester)

        def change() -> None:
            for _ in range(MOVES):
                move(node.running, rng.choice(PORTS), rng.randrange(3))

        churn.run(change)
        after = counts_of(node.running)
        churn.check(before, after)
        assert placed(after).keys() == set(PORTS)
        assert sum(worker["taken"] for worker in after["workers"]) >= MOVES / 3
        final = node.stop()
    assert final["accounting"]["conserved"]


def test_it_goes_over_to_other_plans_with_queues_moved(text, tester):
    plain = text.replace(", scale: auto", "")
    other = text.replace("mode: swap", "mode: rewrite")

    with Node(plan_of(text)) as node:
        until_it_forwards(tester)
        before = counts_of(node.running)
        churn = Churn(tester)

        def change() -> None:
            rng = random.Random(2)
            for _ in range(10):
                for each in (other, plain, text):
                    for port in PORTS if each is not text else ():
                        if each is other:
                            move(node.running, port, rng.randrange(3))
                    with Client(node.running.read) as client:
                        running = client.plan()
                    apply(node.running, plan_of(each, running))

        churn.run(change)
        after = counts_of(node.running)
        churn.check(before, after)
        assert placed(after).keys() == set(PORTS)


def test_a_fixed_plan_has_its_queues_where_it_says(text, tester):
    plan = plan_of(text)
    with Node(plan) as node:
        until_it_forwards(tester)
        for port in PORTS:
            move(node.running, port, 2)
        assert set(placed(counts_of(node.running)).values()) == {2}
        # A plan in which queues move leaves them where they are.
        apply(node.running, plan_of(text.replace("swap", "rewrite"), plan))
        assert set(placed(counts_of(node.running)).values()) == {2}
        apply(node.running, plan_of(text.replace(", scale: auto", ""), plan))
        assert "queues" not in counts_of(node.running)["workers"][0]
        with pytest.raises(RefusedError, match=r"no queue 0 of a port .a. moves to a worker 1"):
            move(node.running, "a", 1)
        before, churn = counts_of(node.running), Churn(tester)
        churn.run(lambda: None)
        churn.check(before, counts_of(node.running))


def test_a_handover_takes_place_with_queues_moved(text, tester, runtime_folder):
    with Node(plan_of(text)) as node, ended(runtime_folder):
        until_it_forwards(tester)
        before = counts_of(node.running)
        churn = Churn(tester)

        def change() -> None:
            running, rng = node.running, random.Random(3)
            for _ in range(4):
                for port in PORTS:
                    move(running, port, rng.randrange(3))
                running = hand_over(running).after

        churn.run(change)
        after = counts_of(running_nodes()[0])
        churn.check(before, after)
        assert placed(after).keys() == set(PORTS)


def test_queues_without_packets_gather_and_workers_without_queues_sleep(text):
    with Node(plan_of(text)) as node:
        wait_for(
            lambda: len(set(placed(counts_of(node.running)).values())) == 1,
            SOON_S,
            "one worker for all queues",
        )
        before = counts_of(node.running)
        alone = [i for i, worker in enumerate(before["workers"]) if not worker["queues"]]
        assert len(alone) == 2
        threading.Event().wait(1)
        after = counts_of(node.running)
        for i in alone:  # an iteration each 2 ms
            polls = [each["workers"][i]["poll_iterations"] for each in (before, after)]
            assert polls[1] - polls[0] < 1000


def test_a_busy_worker_gives_queues_away():
    # Null ports always have packets. A worker that shares its core has what is left of it.
    with Node(plan_of(text_of(lambda name: "'null': 60"))) as node:
        for port in PORTS:
            move(node.running, port, 0)
        wait_for(
            lambda: len(set(placed(counts_of(node.running)).values())) == 3,
            SOON_S,
            "three workers for the queues",
        )
        assert node.stop()["accounting"]["conserved"]


@pytest.mark.parametrize(
    "function",
    [
        "nat: {outside: [a], inside: [10.0.0.0/8], pool: [192.0.2.1]}",
        "firewall: {stateful: true}",
        "bridge: {sides: [a, b]}",
        "policer: {cir-bps: 8000}",
        "cache: {outside: [a]}",
    ],
)
def test_what_remembers_moves_neither_here_nor_there(function):
    text = text_of(lambda name: "'null': 60", function)
    text = text.replace("from: c, to: d, path: [f]", "from: c, to: d, path: []")
    plan = plan_of(text)
    moving = {stage["chain"] for stage in plan["stages"] if "moves" in stage}
    assert moving == {"cd", "cd.back"}
    check_plan(need("convoyd"), plan)
    for stage in plan["stages"]:
        stage["moves"] = True
    with pytest.raises(InputError, match='function "f" remembers what passed on one worker'):
        check_plan(need("convoyd"), plan)


@pytest.mark.parametrize(
    "path", sorted((CHECKOUT / "examples").glob("*.yaml")), ids=lambda p: p.stem
)
def test_what_moves_in_examples_moves_for_convoyd(path):
    text = path.read_text()
    if "\nworkers:" in text:
        pytest.skip("says who works")
    machine = this_machine()
    loaded = loads(text + "\nworkers: {scale: auto}\n", machine, path.parent)
    try:
        plan = make_plan(loaded, machine).data
    except InputError as error:
        assert "no queue can move" in str(error)
        return
    check_plan(need("convoyd"), plan)
