# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The controller of a network: programs the tables of all nodes, and leads chains around failures.

OpenFlow is os-ken's work, in a process of its own (osken.py); which instance a chain goes to is
Steering's. Here is what joins them: who is there, who is busy, what each table has to have.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from convoy.errors import ConvoyError
from convoy.host.adaptive_wait import GoneError, NextNode
from convoy.host.process import Process
from convoy.host.scope import Scope
from convoy.network.descriptors import datapath_ids
from convoy.network.load import Loaded
from convoy.network.steering import Entry, Move, Shares, Steering, names

LOOK_S = 0.1  # between two looks at everything
ECHO_S = 0.2  # a node is asked whether it is there
SILENT_S = 0.8  # from which it is gone, unless the controller is told otherwise
LOAD_S = 1.0  # between two questions how busy a node is
SETTLE_S = 3.0  # between two moves because somebody is busy
GATHER_S = 10.0  # in which the first nodes connect before chains are spread
READY_S = 60.0  # in which os-ken must listen
PRIORITY = 100
COOKIE = 0x636F6E766F79  # "convoy": entries that are this controller's
COOKIE_MASK = (1 << 64) - 1
GROUPS = 0x636F0000  # groups from here on are this controller's, which have no cookies
GROUPS_MAX = 0x10000
GROUP_EXISTS = (6, 0)  # OpenFlow's error: it is modified then
PROGRAM = Path(__file__).with_name("osken.py")
PYTHONS = (sys.executable, "/usr/bin/python3")  # Debian's has Debian's os-ken


@dataclass(frozen=True)
class Event:
    """Something that happened in the network."""

    at_s: float  # since the controller began
    what: str  # "there", "gone", "moved", "lost", "refused"
    node: str
    move: Move | None = None
    took_ms: float | None = None  # from what happened to the barriers of all nodes it concerned
    words: str = ""

    def document(self) -> dict[str, Any]:
        """Return it for programs."""
        result: dict[str, Any] = {
            "schema": "convoy.network.event/1",
            "at_s": round(self.at_s, 3),
            "event": self.what,
            "node": self.node,
        }
        if self.move is not None:
            result |= {
                "chain": self.move.way.name,
                "from": names(self.move.before) or None,
                "to": names(self.move.now) or None,
                "why": self.move.why,
            }
        if self.took_ms is not None:
            result["took_ms"] = round(self.took_ms, 3)
        if self.words:
            result["words"] = self.words
        return result

    def __str__(self) -> str:
        """Return it for people."""
        text = f"{self.at_s:8.2f} s  {self.what:8}"
        if self.move is None:
            text += f"node {self.node}"
        else:
            before, now = (names(each) or "nobody" for each in (self.move.before, self.move.now))
            text += f"chain {self.move.way.name}: {before} -> {now} ({self.move.why})"
        if self.took_ms is not None:
            text += f", in effect after {self.took_ms:.1f} ms"
        return text + (f": {self.words}" if self.words else "")


def python_with_osken() -> str:
    """Return a Python that has os-ken. Raises ConvoyError."""
    for python in PYTHONS:
        if Path(python).exists():
            command = [python, "-c", "import os_ken"]
            if subprocess.run(command, check=False, capture_output=True).returncode == 0:
                return python
    raise ConvoyError("no Python here has os-ken; apt-get install python3-os-ken")


class _Loads(Scope):
    """How busy nodes are, asked by a thread for each: one that does not answer holds up nobody."""

    def __init__(self) -> None:
        self.busy: dict[str, float] = {}
        self._paths: dict[str, Path] = {}  # where each is asked; one that starts again has another
        self._end = threading.Event()

    def watch(self, node: str, path: Path) -> None:
        """Ask a node from now on."""
        self._paths[node] = path
        threading.Thread(target=self._ask, args=(node, path), daemon=True).start()

    def _ask(self, node: str, path: Path) -> None:
        with NextNode(path) as there:
            while not self._end.wait(LOAD_S) and self._paths[node] == path:
                try:
                    load = there.load()
                except GoneError:
                    load = None
                if self._paths[node] != path:
                    break
                if load is None:
                    self.busy.pop(node, None)
                else:
                    self.busy[node] = load.busy

    def _leave(self) -> None:
        self._end.set()


class _Node:
    """A node that is connected."""

    def __init__(self, now: float) -> None:
        self.heard = self.probed = now
        self.entries: dict[tuple[int, str], Entry] = {}  # that it has, or will have


class Controller(Scope):
    """Steers a network until its `with` block is left. Nodes go on as they were then."""

    def __init__(
        self,
        loaded: Loaded,
        listen: tuple[str, int],
        on_event: Callable[[Event], None] = lambda event: None,
        wrapper: Sequence[str] = (),
        silent_s: float = SILENT_S,
    ) -> None:
        """Begin to listen. Raises ConvoyError.

        listen: the address and TCP port that nodes connect to.
        on_event: called, by whoever calls step(), with what happens.
        wrapper: put before the command of the process that listens.
        silent_s: a node that says nothing for so long is gone.
        """
        self._names = datapath_ids(loaded)
        self._ids = {name: number for number, name in self._names.items()}
        self._steering = Steering(loaded)
        self._chains = {way.name: number for number, way in enumerate(loaded.ways)}
        self._on_event = on_event
        self._silent_s = silent_s
        self._began = self._looked = time.monotonic()
        self._nodes: dict[str, _Node] = {}
        self._known: set[str] = set()  # nodes that were there some time
        self._spread = False
        self._settled = self._began
        self._read = 0
        self._xids = count(1)
        self._open: dict[int, _Change] = {}  # barriers that were not yet answered
        address, port = listen
        self._process = Process(
            [*wrapper, python_with_osken(), PROGRAM, str(port), address],
            takes_input=True,
            environment={"PYTHONPATH": ""},
        )
        self._process.name = "os-ken"
        try:
            self._process.wait_line(lambda line: '"ready"' in line, READY_S, "it listened")
        except BaseException:
            self._process.close()
            raise
        self._loads = _Loads()
        for name, values in loaded.network.nodes.items():
            if values.read is not None:
                self.watch(name, Path(values.read))

    def watch(self, node: str, read: Path) -> None:
        """Ask a node how busy it is, at its read.sock."""
        self._loads.watch(node, read)

    @property
    def steering(self) -> Steering:
        """Where chains go."""
        return self._steering

    @property
    def there(self) -> set[str]:
        """The nodes that are connected and answer."""
        return set(self._nodes)

    def step(self) -> None:
        """Look at everything once, LOOK_S at most. Raises ConvoyError if os-ken is gone."""
        end = time.monotonic() + LOOK_S
        while (left := end - time.monotonic()) > 0:
            line = self._process.stdout.line(self._read, left)
            if line is None:
                break
            self._read += 1
            if line.startswith("{"):
                self._heard(json.loads(line))
        if not self._process.running():
            raise ConvoyError(f"os-ken ended: {self._process.last_words()}")
        self._look(time.monotonic())

    def _heard(self, event: dict[str, Any]) -> None:
        what = event["event"]
        if what == "ready":
            return
        node = self._names.get(event["node"])
        now = time.monotonic()
        if node is None:
            if what == "connected":
                words = f"datapath id {event['node']:x} is none of this network's"
                self._say("refused", "", words=words)
            return
        if what == "connected":
            self._nodes[node] = _Node(now)
            self._say("there", node)
            self._order(node, "flows")  # what an earlier controller left
            self._order(node, "groups")
            self._program([node], now, [])
            if self._spread and node not in self._known:
                self._moved(self._steering.spread(self._nodes, self._loads.busy), now)
            if self._spread:
                self._follow(now)
            self._known.add(node)
        elif what == "gone":
            self._gone(node, now, "it disconnected")
        elif node in self._nodes:
            self._nodes[node].heard = now
            if what == "barrier":
                self._passed(event["xid"])
            elif what == "flows":
                self._remove_unknown(node, event["flows"])
            elif what == "groups":
                self._remove_unknown_groups(node, event["groups"])
            elif what == "error" and (event["type"], event["code"]) != GROUP_EXISTS:
                words = f"OpenFlow error {event['type']}, code {event['code']}"
                self._say("refused", node, words=words)

    def _look(self, now: float) -> None:
        # Who was not listened to was not silent: this process was held up.
        held_up_s = max(now - self._looked - 2 * LOOK_S, 0.0)
        self._looked = now
        for node, state in list(self._nodes.items()):
            state.heard = min(state.heard + held_up_s, now)
            if now - state.heard > self._silent_s:
                self._order(node, "close")
                self._gone(node, now, f"silent for {self._silent_s:g} s")
            elif now - state.probed > ECHO_S:
                state.probed = now
                self._order(node, "echo")
        if not self._spread:
            if len(self._nodes) == len(self._ids) or (self._nodes and now - self._began > GATHER_S):
                self._spread = True
                self._settled = now
                moves = self._steering.spread(self._nodes, self._loads.busy)
                self._moved(moves, now)
                self._follow(now)
        elif now - self._settled > SETTLE_S:
            move = self._steering.relieve(self._nodes, self._loads.busy)
            if move is not None:
                self._settled = now
                self._moved([move], now)

    def _gone(self, node: str, now: float, words: str) -> None:
        if self._nodes.pop(node, None) is None:
            return
        self._say("gone", node, words=words)
        waiting = [xid for xid, change in self._open.items() if change.waits[xid] == node]
        for xid in waiting:  # nobody waits for what it does no more
            self._passed(xid)
        self._follow(now)

    def _follow(self, now: float) -> None:
        self._moved(self._steering.follow(self._nodes, self._loads.busy), now)

    def _moved(self, moves: list[Move], since: float) -> None:
        for move in [one for one in moves if not one.now]:
            self._say("lost", _nodes(move.before), move, words="no instance is there")
        moves = [one for one in moves if one.now]
        senders = {node for move in moves for node in move.way.senders(move.stage)}
        # Those behind first: when packets come another way, their way on is there.
        order = sorted(
            senders & set(self._nodes),
            key=lambda node: -max(m.stage for m in moves if node in m.way.senders(m.stage)),
        )
        self._program(order, since, moves)

    def _program(self, nodes: list[str], since: float, moves: list[Move]) -> None:
        """Give nodes the entries that they have not, and a barrier each."""
        change = _Change(since, moves)
        for node in nodes:
            state = self._nodes[node]
            wanted = {(one.table, one.way.name): one for one in self._steering.entries(node)}
            fresh = [one for key, one in wanted.items() if state.entries.get(key) != one]
            for entry in fresh:
                self._order_entry(node, entry, (entry.table, entry.way.name) in state.entries)
            state.entries = wanted
            if fresh:
                xid = next(self._xids)
                change.waits[xid] = node
                self._open[xid] = change
                self._order(node, "barrier", xid=xid)
        if moves and not change.waits:
            self._tell(change)

    def _order_entry(self, node: str, entry: Entry, is_there: bool) -> None:
        """Have a node lead a chain's packets; is_there: it leads them elsewhere already."""
        action: dict[str, int] = {}
        if entry.way.by_flow:
            action["group"] = self._group(entry.way.name)
            if not is_there:  # or an earlier controller has left it
                self._order(node, "group", command="ADD", nfis=entry.to, **action)
            self._order(node, "group", command="MODIFY", nfis=entry.to, **action)
            if is_there:
                return
        else:
            ((action["nfi"], _),) = entry.to
        self._order(node, "flow", command="ADD", table_id=entry.table, priority=PRIORITY,
                    match=_match(entry), cookie=COOKIE, **action)  # fmt: skip

    def _group(self, chain: str) -> int:
        """Return a chain's group: a node leads a chain to one next stage."""
        return GROUPS + self._chains[chain]

    def _remove_unknown_groups(self, node: str, groups: list[int]) -> None:
        wanted = {self._group(chain) for _, chain in self._nodes[node].entries}
        for group in groups:
            if GROUPS <= group < GROUPS + GROUPS_MAX and group not in wanted:
                self._order(node, "group", command="DELETE", group=group)

    def _passed(self, xid: int) -> None:
        change = self._open.pop(xid, None)
        if change is not None:
            del change.waits[xid]
            if not change.waits:
                self._tell(change)

    def _tell(self, change: "_Change") -> None:
        took_ms = 1e3 * (time.monotonic() - change.since)
        for move in change.moves:
            self._say("moved", _nodes(move.now), move, took_ms)
        change.moves = []

    def _remove_unknown(self, node: str, flows: list[dict[str, Any]]) -> None:
        """Remove entries of ours that the network has no more."""
        wanted = {(table, str(sorted(_match(one).items())))
                  for (table, _), one in self._nodes[node].entries.items()}  # fmt: skip
        for flow in flows:
            match = _plain(flow["match"])
            key = (flow["table"], str(sorted(match.items())))
            if flow["cookie"] == COOKIE and key not in wanted:
                self._order(node, "flow", command="DELETE_STRICT", table_id=flow["table"],
                            match=match, priority=flow["priority"], cookie=COOKIE,
                            cookie_mask=COOKIE_MASK)  # fmt: skip

    def _order(self, node: str, do: str, **values: Any) -> None:
        self._process.say(json.dumps({"do": do, "node": self._ids[node], **values}))

    def _say(
        self,
        what: str,
        node: str,
        move: Move | None = None,
        took_ms: float | None = None,
        words: str = "",
    ) -> None:
        at_s = time.monotonic() - self._began
        self._on_event(Event(at_s, what, node, move, took_ms, words))

    def _leave(self) -> None:
        self._loads.close()
        self._process.close()


@dataclass
class _Change:
    """Moves that are in effect when nodes have answered."""

    since: float
    moves: list[Move]
    waits: dict[int, str] = field(default_factory=dict)  # by number of their barriers


def _nodes(shares: Shares) -> str:
    return "+".join(one.node for one, _ in shares)


def _match(entry: Entry) -> dict[str, int]:
    match = entry.way.chain.match
    if match.vlan is not None:
        return {"vlan_vid": match.vlan}
    assert match.vni is not None  # load.py: every chain has one
    return {"tunnel_id": match.vni}


def _plain(match: dict[str, Any]) -> dict[str, int]:
    """Return a match as a node says it, without the bit that a tag is there."""
    return {key: value & 0xFFF if key == "vlan_vid" else value for key, value in match.items()}
