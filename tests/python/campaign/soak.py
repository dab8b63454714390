# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The soak: `make soak HOURS=n`. One node under load, whose memory must not grow.

A stateful firewall and a NAT between two ports of convoy-gen, which opens new flows all the time,
answers each packet and checks each translation. Load is a share of what they carry at most.
Between trials the node is changed, a guest comes and goes, and then nothing is under way: packets
must be accounted for, and files, threads, packet buffers and memory be what they were.
"""

import argparse
import itertools
import json
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.client import Client
from convoy.host.apply import apply
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for
from convoy.results.trial_result import TrialResult
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES
from hostile.front_end import connect
from hostile.guest import Guest
from memory import own_bytes

from .campaign import closes
from .record import environment

SCHEMA = "convoy.soak/2"
POOL = "203.0.113.0/24"
FLOWS = 100_000  # in a trial
HOSTS = 2003  # of these; flow i is of host i % 2003 and of port i % 50
PORTS = 50
MAX_FLOWS = 1 << 20
TRIAL_S = 10.0
PROBE_S = 2.0  # of each of the trials that find what is carried at most
WINDOWS = 128  # of subscribers, one trial each
IDLE_S = 15  # flows that nothing comes for end after this
RULE = "@10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x11/0xFF\n"
MAX_RULES = 2000
DEADLINE_S = 30.0
WARM_UP = 0.15  # of the rounds: the node and its tables have what they need then
GROWTH_BYTES = 256 << 10
MORE = 5  # trials after the time is over, at most
NODE = f"""
ports:
  inside: {{vhost-user: FOLDER/inside}}
  outside: {{vhost-user: FOLDER/outside}}
  near: {{vhost-user: FOLDER/near}}
  far: {{vhost-user: FOLDER/far}}
functions:
  fw: {{firewall: {{stateful: true, default: deny, rules-file: FOLDER/rules}}}}
  nat: {{nat: {{outside: [outside], inside: [10.0.0.0/8], pool: [{POOL}], block-rest-s: 60,
              mappings: {MAX_FLOWS}}}}}
chains:
  gateway: {{from: inside, to: outside, path: [fw, nat], both-ways: true}}
  guests: {{from: near, to: far, both-ways: true}}
flows: {{max: {MAX_FLOWS}, timeouts: {{udp-new: {IDLE_S}, udp: {IDLE_S}}}}}
workers: {{cores: [{CORES[0]}]}}
"""


@dataclass(frozen=True)
class Round:
    """One trial and what the node had when it was over; bytes, seconds, packets."""

    at_s: float
    sent: int
    lost: int
    wrong: int
    p50_ns: int
    p99_ns: int
    late_ns: int  # the longest time from a packet's schedule until the tester sent it
    tester_busy: float  # share of the tester's time
    busy: float  # of the worker's cycles
    dropped: int  # by the node
    late: int  # of the trial before: came, or were dropped, when it was over
    flows: int
    did: str
    node_bytes: int
    node_files: int
    node_threads: int
    buffers: int
    tester_bytes: int
    tester_files: int
    findings: tuple[str, ...]


def _count(pid: int, what: str) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/{what}").iterdir())


class Lost:
    """Packets that were lost, and it is not known where: they may come when a trial is over.

    A tester that waited for its core does not wait for packets as long as it should.
    """

    def __init__(self) -> None:
        """Begin; nothing was lost."""
        self.uncounted = 0  # in the last trial
        self._dropped: int | None = None  # by the node, until the last trial was over

    def count(
        self, lost: int, unanswered: int, dropped: tuple[int, int], came: int
    ) -> tuple[int, int]:
        """Count a trial: packets lost, dropped before it and until its end, of earlier ones.

        Returns packets of the trial before that came or were dropped since, and those that were
        not.
        """
        before, after = dropped
        late = came + (0 if self._dropped is None else before - self._dropped)
        missing = max(0, self.uncounted - late)
        self.uncounted = max(0, lost - (after - before) - unanswered)
        self._dropped = after
        return late, missing


class Soak:
    """The node, the tester, and what is done between trials."""

    def __init__(
        self, folder: Path, seed: int, node: Node, tester: ConvoyGen, plan: Mapping[str, Any]
    ):
        """Both run; folder: of sockets and rules."""
        self.folder = folder
        self.node = node
        self.tester = tester
        self.plan = plan
        self.random = random.Random(seed)
        self._trials = 0
        self.lost = Lost()
        self.rate_pps = 0.0
        self.begin = time.monotonic()

    def trial(self, rate: float | str, seconds: float) -> TrialResult:
        """Do one, of flows that nobody has seen for a while."""
        window, self._trials = self._trials % WINDOWS, self._trials + 1
        return self.tester.trial(
            {
                "size": 64, "rate_pps": rate, "duration_s": seconds, "drain_s": 1, "answers": True,
                "translated": POOL, "tolerance": 1,
                "flows": {
                    "count": FLOWS, "order": "shuffle", "written": "sending",
                    "src_ip": f"10.{window}.0.1-10.{window}.{HOSTS >> 8}.{HOSTS & 255}",
                    "src_port": f"1024-{1023 + PORTS}", "dst_ip": "198.51.100.1", "dst_port": "53",
                },
            }
        )  # fmt: skip

    def find_rate(self, load: float) -> tuple[float, float]:
        """Return the rate of a load, and the most that is carried, in packets per second."""
        rates = []
        for _ in range(7):
            total = self.trial("max", PROBE_S).total
            assert total is not None
            rates.append(total.received_pps or 0.0)
        most = statistics.median(rates)
        self.rate_pps = load * most
        return self.rate_pps, most

    def apply(self) -> str:
        """Give the firewall many rules, and one again."""
        for rules in (self.random.randint(2, MAX_RULES), 1):
            (self.folder / "rules").write_text(RULE * rules)
            apply(self.node.running, self.plan)
        return "applied"

    def guests(self) -> str:
        """Let two guests come, send packets across, and hang up."""
        with (
            Guest(*connect(self.folder / "near", DEADLINE_S)) as near,
            Guest(*connect(self.folder / "far", DEADLINE_S)) as far,
        ):
            near.start()
            far.start()
            sent = [bytes(12) + b"\x88\xb5" + self.random.randbytes(46) for _ in range(16)]
            assert near.send(sent) == len(sent)
            got: list[bytes] = []

            def all_came() -> bool:
                got.extend(far.received())
                return len(got) >= len(sent)

            wait_for(all_came, DEADLINE_S, "packets of a guest")
            assert got == sent
        return "guests"

    def ask(self) -> str:
        """Let eight clients ask for counters, and go."""
        clients = [Client(Path(self.node.ready["read"])) for _ in range(8)]
        for client in clients:
            client.counts()
        for client in clients:
            client.close()
        return "asked"

    def round(self) -> Round:
        """Do a trial, and what comes after it."""
        before = self.node.counts()
        result = self.trial(self.rate_pps, TRIAL_S)
        after = self.node.counts()
        wrong = []
        total, checked = result.total, result.translated
        assert total is not None, result.reason
        assert checked is not None
        latency = total.latency
        if latency is None:
            wrong.append("no packet came back")
        if not result.ok:
            wrong.append(f"the trial is not good: {result.reason}")
        bad = {name: count for name, count in checked.wrong_pkts.items() if count}
        if bad:
            wrong.append(f"wrong packets: {bad}")
        dropped = (before["accounting"]["dropped"], after["accounting"]["dropped"])
        unanswered = result.answers.unanswered_pkts if result.answers else 0
        came = result.earlier_trial_pkts + result.settled_frames
        late, missing = self.lost.count(total.lost_pkts, unanswered, dropped, came)
        if missing:
            wrong.append(f"{missing} packets of the trial before lost uncounted")
        did = self.random.choice([self.apply, self.guests, self.ask])()
        counts = self.node.counts()
        self.node.forget_client()
        if not closes(counts["accounting"]):
            wrong.append(f"accounting does not close: {counts['accounting']}")
        worker, earlier = after["workers"][0], before["workers"][0]
        cycles = worker["total_cycles"] - earlier["total_cycles"]
        node, tester = self.node.process.pid, self.tester.thread
        return Round(
            at_s=round(time.monotonic() - self.begin, 1), sent=total.sent_pkts,
            lost=total.lost_pkts, wrong=sum(bad.values()), p50_ns=latency.p50_ns if latency else 0,
            p99_ns=latency.p99_ns if latency else 0, late_ns=total.late_max_ns,
            tester_busy=round(result.tester.busy_share or 0, 3),
            busy=round((worker["busy_cycles"] - earlier["busy_cycles"]) / cycles, 3),
            dropped=dropped[1] - dropped[0], late=late,
            flows=sum(table["flows_ipv4"] for table in counts["flows"].values()),
            did=did, node_bytes=own_bytes(node), node_files=_count(node, "fd"),
            node_threads=_count(node, "task"), buffers=counts["buffers"]["in_use"],
            tester_bytes=own_bytes(tester), tester_files=_count(tester, "fd"),
            findings=tuple(wrong),
        )  # fmt: skip


def leaks(rounds: Sequence[Round]) -> list[str]:
    """Return what has grown, from the first quarter after the warm-up to the last one."""
    steady = rounds[int(len(rounds) * WARM_UP) :]
    quarter = max(len(steady) // 4, 1)
    grown = []
    for key, most in (
        ("node_bytes", GROWTH_BYTES), ("tester_bytes", GROWTH_BYTES), ("node_files", 0),
        ("node_threads", 0), ("tester_files", 0), ("buffers", 0),
    ):  # fmt: skip
        # What the tester needs goes up and down with how late it is; a leak raises the least, too.
        middle = min if key == "tester_bytes" else statistics.median
        first, last = (
            middle(getattr(one, key) for one in part)
            for part in (steady[:quarter], steady[-quarter:])
        )
        if last > first + most:
            grown.append(f"{key}: {first:,.0f}, and {last:,.0f} at the end")
    return grown


def _row(rounds: Sequence[Round]) -> str:
    last = rounds[-1]
    p50, p99, late = (
        statistics.median(getattr(one, key) for one in rounds)
        for key in ("p50_ns", "p99_ns", "late_ns")
    )
    return (
        f"| {last.at_s / 60:.0f} | {sum(one.sent for one in rounds):,} | "
        f"{sum(one.lost for one in rounds):,} | {sum(one.wrong for one in rounds)} | "
        f"{p50 / 1e3:.1f}, {p99 / 1e3:.1f}, {late / 1e3:.1f} | {last.flows:,} | "
        f"{last.node_bytes >> 10:,} | {last.node_files}, {last.node_threads} | {last.buffers} | "
        f"{last.tester_bytes >> 10:,} |"
    )


def as_markdown(about: Mapping[str, Any], rounds: Sequence[Round], every_s: float) -> str:
    """Return a row for each so many seconds, and a line for each finding."""
    lines = [
        f"Seed {about['seed']}, commit {about['commit']}, {about['date']}, {about['processor']}: "
        f"{len(rounds)} trials of {TRIAL_S:g} s at {about['rate_pps']:,.0f} packets/s, each "
        f"answered: {about['load']:.0%} of {about['most_pps']:,.0f}.",
        "",
        "| min | packets sent | lost | wrong | median, 99 %, latest sent, us | flows | node, KiB | "
        "its files, threads | buffers | tester, KiB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for _, part in itertools.groupby(rounds, key=lambda one: one.at_s // every_s):
        lines.append(_row(list(part)))
    findings = [f"* {one.at_s:.0f} s: {what}" for one in rounds for what in one.findings]
    findings += [f"* {what}" for what in leaks(rounds)]
    return "\n".join([*lines, "", *(findings or ["No findings."])]) + "\n"


def as_json(about: Mapping[str, Any], rounds: Sequence[Round]) -> str:
    """Return all of it, a list for each of a round's figures."""
    columns = {key.name: [getattr(one, key.name) for one in rounds] for key in fields(Round)}
    body = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in columns.items())
    return f'{json.dumps(dict(about))[:-1]}, "rounds": {{\n{body}\n}}}}\n'


def main() -> None:
    """Run it; exit code 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=0.05, help="for how long")
    parser.add_argument("--load", type=float, default=0.8, help="share of what is carried at most")
    parser.add_argument("--seed", type=int, default=1, help="of what is done between trials")
    parser.add_argument("--record", type=Path, help="write the table to FILE.md and FILE.json")
    options = parser.parse_args()
    if not options.hours > 0:
        parser.error(f"--hours {options.hours:g}: more than 0")
    if not 0 < options.load <= 1:
        parser.error(f"--load {options.load:g}: more than 0, up to 1")
    if len(CORES) < 2:
        parser.error("needs two cores; this process may use one: see taskset")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started must end
    with tempfile.TemporaryDirectory(prefix="cvs") as name:
        sys.exit(soak(Path(name), options))


def soak(folder: Path, options: argparse.Namespace) -> int:
    """Run it in a folder; return the exit code."""
    (folder / "rules").write_text(RULE)
    machine = this_machine()
    plan = make_plan(loads(NODE.replace("FOLDER", str(folder)), machine, folder), machine).data
    ports = [f"vhost-user:{folder / side}" for side in ("inside", "outside")]
    rounds: list[Round] = []
    with (
        Node(plan, environment={"RUNTIME_DIRECTORY": str(folder)}) as node,
        ConvoyGen(ports, core=CORES[-1]) as tester,
    ):
        run = Soak(folder, options.seed, node, tester, plan)
        rate, most = run.find_rate(options.load)
        about = environment(options.seed, options.hours) | {
            "schema": SCHEMA, "load": options.load, "rate_pps": round(rate),
            "most_pps": round(most),
        }  # fmt: skip
        print(f"soak: {rate:,.0f} packets/s of {most:,.0f}", flush=True)
        end = time.monotonic() + options.hours * 3600
        every = options.hours * 3600 / 12
        try:
            # What was lost last may still come.
            while not rounds or time.monotonic() < end + (run.lost.uncounted > 0) * MORE * TRIAL_S:
                rounds.append(run.round())
                print(_row(rounds[-1:]), *rounds[-1].findings, flush=True)
            if run.lost.uncounted:
                what = f"{run.lost.uncounted} packets lost uncounted"
                rounds[-1] = replace(rounds[-1], findings=(*rounds[-1].findings, what))
                print(what, flush=True)
        finally:  # whatever ends it
            if options.record and rounds:
                write(options.record, about, rounds, every)
    print(as_markdown(about, rounds, every))
    return int(bool(leaks(rounds)) or any(one.findings for one in rounds))


def write(record: Path, about: Mapping[str, Any], rounds: Sequence[Round], every_s: float) -> None:
    """Write the table, and every round."""
    record.with_suffix(".md").write_text(as_markdown(about, rounds, every_s), "utf-8")
    record.with_suffix(".json").write_text(as_json(about, rounds), "utf-8")


if __name__ == "__main__":
    main()
