# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a hostile memif client does to a node, and what the node's other ports notice: nothing."""

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convoy.host.node import Node
from convoy.host.process import wait_for
from convoy.host.programs import CHECKOUT
from cores import OWN_CORE
from port.plans import joined

from .front_end import DEADLINE_S
from .memif import (
    FLAGS_AT,
    HEAD_AT,
    INIT,
    MEMORY_BYTES,
    NEXT,
    RINGS,
    SLOTS,
    TAIL_AT,
    TO_CLIENT,
    TO_SERVER,
    Client,
    Type,
    region,
    ring,
)
from .targets import FINDINGS, SANITIZERS

U32 = 1 << 32
FULL = (1 << 64) - 2  # an eventfd's counter: one more must wait


class Attacked:
    """A node with a memif port that sends without end what another port makes, and one to it."""

    def __init__(self, node: Node, path: Path) -> None:
        self.node = node
        self.path = path

    def client(self) -> Client:
        """Return a client that has said nothing yet."""
        return Client(self.path)

    def counts(self) -> dict[str, Any]:
        """Return the memif port's own counts."""
        device = self.node.counts()["ports"]["link"]["device"]
        assert isinstance(device, dict)
        return device

    def made(self) -> int:
        """Return how many packets the neighbour has made."""
        return int(self.node.counts()["ports"]["make"]["rx_packets"])

    def open_files(self) -> int:
        """Return how many files the node has open."""
        return sum(1 for _ in Path(f"/proc/{self.node.process.pid}/fd").iterdir())

    def goes_on(self) -> None:
        """Fail unless the neighbour's packets move and no sanitizer found anything."""
        before = self.made()
        wait_for(lambda: self.made() > before + 1000, DEADLINE_S, "the neighbour to go on")
        words = self.node.process.stderr.text()
        assert not any(finding in words for finding in FINDINGS), words[-4000:]

    def is_well(self) -> None:
        """Fail unless it goes on and serves the next client, both ways."""
        self.goes_on()
        with self.client().connect() as honest:
            before = self.counts()["rx_pkts"]
            for _ in range(100):
                honest.send_packet(bytes(60))
                wait_for(honest.taken, DEADLINE_S, "a packet to be taken")
            assert self.counts()["rx_pkts"] == before + 100
            honest.offer()
            wait_for(
                lambda: honest.index(TO_CLIENT, TAIL_AT) == honest.index(TO_CLIENT, HEAD_AT),
                DEADLINE_S,
                "packets to come",
            )


@pytest.fixture(scope="module")
def attacked() -> Iterator[Attacked]:
    program = CHECKOUT / "build-asan/daemon/convoyd"
    if not program.exists():
        pytest.skip("convoyd is not built: make build-asan")
    # Not pytest's: a socket's path has 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        path = Path(name) / "s"
        ports = {
            "make": {"kind": "null", "frame_bytes": 60},
            "link": {"kind": "memif", "path": str(path)},
        }
        environment = SANITIZERS | {"XDG_RUNTIME_DIR": name, "RUNTIME_DIRECTORY": name}
        ways = [("make", "link"), ("link", "make")]
        with Node(joined(ports, ways, OWN_CORE), program, environment=environment) as node:
            one = Attacked(node, path)
            yield one
            accounting = node.stop()["accounting"]
            assert accounting["conserved"]


def test_an_honest_client(attacked: Attacked):
    attacked.is_well()


# Length, flags, region, offset of a packet: none is one.
NOTHING = [
    (60, 0, 1, -1),
    (60, 0, 65535, -1),
    (60, 0, 0, MEMORY_BYTES - 59),
    (60, 0, 0, U32 - 1),
    (U32 - 1, 0, 0, -1),
    (U32 - 60, 0, 0, 60),
    (13, 0, 0, -1),
    (0, 0, 0, -1),
    (0, NEXT, 9, U32 - 1),
    (65535, NEXT, 0, -1),
]


def test_packets_that_lie_nowhere(attacked: Attacked):
    with attacked.client().connect() as hostile:
        before = attacked.counts()
        for i, (length, flags, where, offset) in enumerate(NOTHING):
            hostile.describe(TO_SERVER, i, length, flags, where, offset)
        hostile.describe(TO_SERVER, len(NOTHING), 60)
        hostile.put(len(NOTHING) + 1)
        wait_for(hostile.taken, DEADLINE_S, "all to be given back")
        after = attacked.counts()
        assert after["rx_pkts"] == before["rx_pkts"]
        assert after["rx_errors"] > before["rx_errors"]
        assert after["broken_queues"] == 0
    attacked.is_well()


@pytest.mark.parametrize("flags", [0, NEXT])
def test_a_ring_full_of_nothing(attacked: Attacked, flags: int):
    with attacked.client().connect() as hostile:
        for slot in range(SLOTS):
            hostile.describe(TO_SERVER, slot, 0, flags)
        for _ in range(20):
            hostile.put(SLOTS)
            wait_for(hostile.taken, DEADLINE_S, "all to be given back")
        attacked.goes_on()
    attacked.is_well()


@pytest.mark.parametrize(("way", "by"), [(TO_SERVER, SLOTS + 1), (TO_SERVER, -1), (TO_CLIENT, 99)])
def test_an_index_that_cannot_be(attacked: Attacked, way: int, by: int):
    with attacked.client().connect() as hostile:
        hostile.set_index(way, HEAD_AT, hostile.index(way, HEAD_AT) + by)
        wait_for(lambda: attacked.counts()["broken_queues"] == 1, DEADLINE_S, "a broken queue")
        attacked.goes_on()
    attacked.is_well()


@pytest.mark.parametrize(
    ("length", "where", "offset"),
    [(2048, 7, -1), (2048, 0, MEMORY_BYTES - 2047), (U32 - 1, 0, -1), (2048, 0, U32 - 1024)],
)
def test_buffers_that_lie_nowhere(attacked: Attacked, length: int, where: int, offset: int):
    with attacked.client().connect() as hostile:
        hostile.describe(TO_CLIENT, 0, length, 0, where, offset)
        hostile.set_index(TO_CLIENT, HEAD_AT, 1)
        wait_for(lambda: attacked.counts()["broken_queues"] == 1, DEADLINE_S, "a broken queue")
        assert hostile.index(TO_CLIENT, TAIL_AT) == 0
        attacked.goes_on()
    attacked.is_well()


def test_a_client_that_takes_back_its_memory(attacked: Attacked):
    with attacked.client().connect() as hostile:
        hostile.offer()
        os.ftruncate(hostile.memory_file, 0)
        wait_for(lambda: attacked.counts()["link"] == "down", DEADLINE_S, "its queues revoked")
        attacked.goes_on()
    attacked.is_well()


def test_an_eventfd_that_is_full_and_waits(attacked: Attacked):
    with attacked.client() as hostile:
        hostile.connect()
        os.set_blocking(hostile.event, True)
        os.eventfd_write(hostile.event, FULL)
        hostile.memory[RINGS[TO_CLIENT] + FLAGS_AT] = 0  # it wants interrupts
        for _ in range(10):
            hostile.offer()
            wait_for(
                lambda: hostile.index(TO_CLIENT, TAIL_AT) == hostile.index(TO_CLIENT, HEAD_AT),
                DEADLINE_S,
                "packets to come",
            )
        attacked.goes_on()
    attacked.is_well()


def test_a_client_that_wants_interrupts_gets_them(attacked: Attacked):
    with attacked.client().connect() as client:
        client.memory[RINGS[TO_CLIENT] + FLAGS_AT] = 0
        client.offer()
        wait_for(lambda: client.index(TO_CLIENT, TAIL_AT) != 0, DEADLINE_S, "packets to come")
        wait_for(lambda: _notified(client), DEADLINE_S, "the eventfd to be told")


def _notified(client: Client) -> bool:
    with contextlib.suppress(BlockingIOError):
        return os.eventfd_read(client.event) > 0
    return False


def test_messages_that_are_none(attacked: Attacked):
    before = attacked.open_files()
    for data in (b"", b"x", bytes(127), bytes(129), bytes(128), bytes(65536)):
        with attacked.client() as hostile:
            hostile.send_bytes(data)
            assert hostile.receive()[0] in (0, Type.DISCONNECT)
    for kind in range(12):
        with attacked.client() as hostile:
            hostile.send(kind, b"", [hostile.memory_file] * 8)
            assert hostile.receive()[0] in (0, Type.DISCONNECT)
    wait_for(lambda: attacked.open_files() <= before, DEADLINE_S, "files to be closed")
    attacked.is_well()


REFUSED = [
    ("a file on disk", Type.ADD_REGION, region(size=4096), "disk", "no memfd"),
    ("a size that is not the file's", Type.ADD_REGION, region(size=1 << 30), "memory", "ends at"),
    ("a size without end", Type.ADD_REGION, region(size=(1 << 64) - 1), "memory", "64 GiB"),
    ("a ring without a region", Type.ADD_RING, ring(TO_SERVER), "event", "not added"),
    ("a second INIT", Type.INIT, INIT, None, "second time"),
    ("CONNECT without rings", Type.CONNECT, b"", None, "each way"),
]


@pytest.mark.parametrize(
    ("kind", "payload", "file", "reason"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_what_is_refused(
    attacked: Attacked, kind: Type, payload: bytes, file: str | None, reason: str
):
    before = attacked.open_files()
    with attacked.client() as hostile, Path(__file__).open("rb") as disk:
        files = {"disk": disk.fileno(), "memory": hostile.memory_file, "event": hostile.event}
        assert hostile.ask(Type.INIT, INIT)[0] == Type.ACK
        answer = hostile.ask(kind, payload, [] if file is None else [files[file]])
        assert answer[0] == Type.DISCONNECT
        assert reason in answer[1]
        assert hostile.receive()[0] == 0
    wait_for(lambda: attacked.open_files() <= before, DEADLINE_S, "files to be closed")
    attacked.is_well()


def test_a_client_that_says_nothing_makes_room(attacked: Attacked):
    with attacked.client() as silent:
        attacked.goes_on()
        assert silent.receive()[0] == 0  # after 5 seconds
    attacked.is_well()


def test_a_second_client_is_turned_away(attacked: Attacked):
    peers = attacked.counts()["peers"] + 1
    with attacked.client().connect() as first:
        # It is counted behind the answer that it gets.
        wait_for(lambda: attacked.counts()["peers"] == peers, DEADLINE_S, "the first to be counted")
        with contextlib.closing(_second(attacked)) as second:
            assert second.recv(128) == b""
        assert attacked.counts()["peers"] == peers
        first.send_packet(bytes(60))
        wait_for(first.taken, DEADLINE_S, "a packet to be taken")


def _second(attacked: Attacked) -> socket.socket:
    second = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    second.settimeout(DEADLINE_S)
    second.connect(str(attacked.path))
    return second
