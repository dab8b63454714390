# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The faults: each is injected at a random moment, undone, and waited for until all is well again.

A fault is a function of the rig and of its own random numbers. It returns what it did, in words,
and after how many seconds what it hit was back (None: nothing went away). An assertion or a
ProcessError is a finding.
"""

import errno
import json
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from convoy.errors import ConvoyError, InputError
from convoy.host.apply import apply
from convoy.host.process import Process, wait_for
from cores import CORES

from .rig import DEADLINE_S, FRAME_BYTES, LONG, RULE, Rig

HELD_BYTES = 1 << 20  # that the node holds for a capture that cannot be written
CAPTURE_HEAD = bytes.fromhex("4d3cb2a1")  # pcap with nanoseconds


@dataclass(frozen=True)
class Result:
    """What was done, and how soon what it hit worked again."""

    words: str
    back_s: float | None = None


Fault = Callable[[Rig, random.Random], Result]


def _pause(rng: random.Random, longest_s: float = 0.3) -> float:
    """Let a random time pass: the moment of a fault is its argument."""
    seconds = rng.uniform(0, longest_s)
    time.sleep(seconds)
    return seconds


def _kill(process: Process) -> None:
    process.signal(signal.SIGKILL)
    process.wait(DEADLINE_S)


def _stop(process: Process, rng: random.Random) -> float:
    """Stop a process for a while; return when it went on."""
    process.signal(signal.SIGSTOP)
    _pause(rng, 1.5)
    since = time.monotonic()
    process.signal(signal.SIGCONT)
    return since


def kill_node(rig: Rig, rng: random.Random) -> Result:
    """Kill the node while all send; start it again."""
    traffic = rng.random() < 0.5
    if traffic:
        rig.tester._process.say(LONG)
    _pause(rng)
    _kill(rig.node.process)
    rig.bystander.detach()
    rig.node.close()
    if traffic:
        result = rig.tester._read(DEADLINE_S, "the trial's end")
        assert result["reason_code"] == "peer_gone", result
    return Result("node: kill -9" + (", during a trial" if traffic else ""), _begin_node(rig))


def restart_node(rig: Rig, rng: random.Random) -> Result:
    """Let the node drain and end; its last counts must close."""
    _pause(rng)
    _end_node(rig)
    return Result("node: SIGTERM, started again", _begin_node(rig))


def _end_node(rig: Rig) -> None:
    counts = rig.node.stop()
    assert counts["accounting"]["conserved"], counts["accounting"]
    rig.bystander.detach()
    rig.node.close()


def _begin_node(rig: Rig) -> float:
    """Start a node; return how soon after it was ready the first packet came through."""
    rig.start_node()
    ready = time.monotonic()
    back = rig.bystander.attach()
    rig.renew_feeder()
    rig.echo(ready)
    rig.trial()
    return back


def stop_node(rig: Rig, rng: random.Random) -> Result:
    """Stop the node for up to 1.5 s."""
    _pause(rng)
    since = _stop(rig.node.process, rng)
    return Result("node: SIGSTOP, SIGCONT", rig.echo(since) - since)


def kill_guest(rig: Rig, rng: random.Random) -> Result:
    """Kill the guest in the middle of its packets; another one comes."""
    _pause(rng)
    _kill(rig.guest)
    rig.guest.close()
    _pause(rng, 0.1)
    rig.start_guest()
    since = rig.connected(0)
    return Result("guest: kill -9", rig.echo(since) - since)


def stop_guest(rig: Rig, rng: random.Random) -> Result:
    """Stop the guest: its rings stand still, full or empty."""
    _pause(rng)
    since = _stop(rig.guest, rng)
    return Result("guest: SIGSTOP, SIGCONT", rig.echo(since) - since)


def kill_peer(rig: Rig, rng: random.Random) -> Result:
    """Kill the node behind memif; another one comes."""
    _pause(rng)
    _kill(rig.peer.process)
    rig.peer.close()
    _pause(rng, 0.1)
    rig.start_peer()
    since = time.monotonic()
    return Result("peer: kill -9", rig.echo(since) - since)


def stop_peer(rig: Rig, rng: random.Random) -> Result:
    """Stop the node behind memif."""
    _pause(rng)
    since = _stop(rig.peer.process, rng)
    return Result("peer: SIGSTOP, SIGCONT", rig.echo(since) - since)


def kill_tester(rig: Rig, rng: random.Random) -> Result:
    """Kill the tester during a trial; another one comes."""
    rig.tester._process.say(LONG)
    _pause(rng)
    _kill(rig.tester._process)
    rig.tester.close()
    rig.start_tester()
    return Result("tester: kill -9, during a trial", rig.trial())


def stop_tester(rig: Rig, rng: random.Random) -> Result:
    """Stop the tester during a trial, which must still end."""
    rig.tester._process.say('{"rate_pps": 2000, "duration_s": 0.5, "drain_s": 1, "tolerance": 1}')
    _pause(rng)
    _stop(rig.tester._process, rng)
    result = rig.tester._read(DEADLINE_S, "the trial's end")
    assert "ok" in result, result
    return Result("tester: SIGSTOP, SIGCONT, during a trial", rig.trial())


def memory_truncated(rig: Rig, rng: random.Random) -> Result:
    """A guest takes the memory back that it shares."""
    _kill(rig.guest)
    rig.guest.close()
    hostile = rig.start_program("campaign.guest", rig.folder / "victim", "truncate")
    with hostile:
        hostile.wait_line(lambda line: line.startswith("connected"), DEADLINE_S, "it connected")
        _pause(rng)
        hostile.end_input()
        hostile.wait_line(lambda line: line.startswith("truncated"), DEADLINE_S, "it truncated")
        _pause(rng, 0.1)
        _kill(hostile)
    rig.start_guest()
    since = rig.connected(0)
    return Result("guest: its memory truncated", rig.echo(since) - since)


def no_files(rig: Rig, rng: random.Random) -> Result:
    """The node can open no file any more, while a guest comes."""
    _kill(rig.guest)
    rig.guest.close()
    before = rig.open_files()
    with _limited(rig, resource.RLIMIT_NOFILE, rig.lowest_free_file()):
        rig.start_guest()
        _pause(rng, 1.0)
        none_more = rig.open_files() <= before
    since = time.monotonic()
    assert none_more
    return Result("node: out of file descriptors", rig.echo(since) - since)


def sockets_removed(rig: Rig, rng: random.Random) -> Result:
    """Somebody removes a socket under way: who is connected goes on, a new start makes it again."""
    control = Path(rig.node.ready["control"])
    victims = [rig.folder / name for name in ("left", "near", "victim", "feed", "link")]
    path = rng.choice([*victims, control, control.with_name("read.sock")])
    _pause(rng)
    path.unlink()
    rig.echo(time.monotonic())
    rig.trial()
    rig.node.counts()  # over the connection that is there
    _end_node(rig)
    _begin_node(rig)
    return Result(f"socket {path.name} removed; a new start makes it again")


def disk_full(rig: Rig, rng: random.Random) -> Result:
    """The file system of a capture and of a log is full; later there is room again."""
    capture, ballast = rig.disk / "capture.pcap", rig.disk / "ballast"
    _pause(rng)
    before = rig.node.counts()
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
    rig.feed(HELD_BYTES // FRAME_BYTES + 100, rng.randrange(1 << 23))
    full = rig.node.counts()
    ballast.unlink()
    since, size = time.monotonic(), capture.stat().st_size

    def written() -> bool:
        rig.feed(1, rng.randrange(1 << 23))
        return capture.stat().st_size > size

    wait_for(written, DEADLINE_S, "the capture to grow again")
    back = time.monotonic() - since
    lost = _dropped(full, "capture") - _dropped(before, "capture")
    unlogged = _unlogged(full) - _unlogged(before)
    assert lost > 0, "nothing was dropped on a full disk"
    _end_node(rig)  # what it held is written now
    _check_capture(capture)
    _begin_node(rig)
    return Result(f"disk full: {lost} packets not captured, {unlogged} events not logged", back)


def _dropped(counts: dict[str, object], port: str) -> int:
    return sum(counts["ports"][port]["drops"].values())  # type: ignore[index]


def _unlogged(counts: dict[str, object]) -> int:
    return int(counts["functions"]["nat"]["info"]["block_log_lost"])  # type: ignore[index]


def _check_capture(path: Path) -> int:
    """Fail unless a capture can be read to its end; return when its last packet came, in s."""
    data, at, seconds = path.read_bytes(), 24, 0
    assert data[:4] == CAPTURE_HEAD, data[:4]
    while at < len(data):
        seconds = int.from_bytes(data[at : at + 4], "little")
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    assert at == len(data), f"{path.name}: its last packet is cut off"
    return seconds


def _begin_controller(rig: Rig) -> Process:
    """Let somebody change the node again and again; return once it has."""
    plan = rig.folder / "plan.json"
    plan.write_text(json.dumps(rig.plan))
    running = rig.node.running
    controller = rig.start_program(
        "campaign.controller", str(running.pid), running.control, plan, rig.folder / "rules"
    )
    controller.wait_line(lambda line: line == "applied", DEADLINE_S, "it changed the node")
    return controller


def _end_controller(rig: Rig, controller: Process) -> None:
    """End it; the node is as it was before."""
    _kill(controller)
    controller.close()
    (rig.folder / "plan.json").unlink()
    (rig.folder / "rules").write_text(RULE)
    apply(rig.node.running, rig.plan)


def kill_controller(rig: Rig, rng: random.Random) -> Result:
    """Kill who changes the node, in the middle of it; others change it then."""
    controller = _begin_controller(rig)
    _pause(rng)
    _kill(controller)
    since = time.monotonic()
    _end_controller(rig, controller)
    return Result("controller: kill -9, while it applies", time.monotonic() - since)


def stop_controller(rig: Rig, rng: random.Random) -> Result:
    """Stop who changes the node, in the middle of it; others change it meanwhile."""
    controller = _begin_controller(rig)
    _pause(rng)
    controller.signal(signal.SIGSTOP)
    since = time.monotonic()
    (rig.folder / "rules").write_text(RULE)
    apply(rig.node.running, rig.plan)
    back = time.monotonic() - since
    controller.signal(signal.SIGCONT)
    _end_controller(rig, controller)
    return Result("controller: SIGSTOP, while it applies", back)


def clock_set(rig: Rig, rng: random.Random) -> Result:
    """Set the node's wall clock by up to a day, and back, while all go on and it is changed."""
    step_s = rng.uniform(-86400, 86400)
    for shift_s in (step_s, 0.0, step_s):
        rig.set_machine(clock_s=shift_s)
        _pause(rng, 0.1)
        rig.feed(100, rng.randrange(1 << 23))  # a log and a capture, with times
        apply(rig.node.running, rig.plan)
        rig.echo(time.monotonic())
        rig.trial()
    begin = time.monotonic()
    _end_node(rig)
    took = time.monotonic() - begin
    last = _check_capture(rig.disk / "capture.pcap")
    assert abs(last - time.time() - step_s) < DEADLINE_S, f"the last packet came at {last}"
    rig.set_machine()
    _begin_node(rig)
    assert took < DEADLINE_S / 3, f"the node took {took:.1f} s to end"
    return Result(f"wall clock set by {step_s:.0f} s, back, and again, when the node ended")


def core_taken(rig: Rig, rng: random.Random) -> Result:
    """Take the worker's core away, as a cpuset does; later it has it again."""
    pid = rig.node.process.pid
    threads = [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]
    had = {thread: os.sched_getaffinity(thread) for thread in threads}
    workers = [thread for thread in threads if had[thread] == {CORES[0]}]
    assert workers, f"no thread on core {CORES[0]} alone: {had}"
    _pause(rng)
    try:
        for thread in workers:
            os.sched_setaffinity(thread, {CORES[-1]})
        since = time.monotonic()
        back = rig.echo(since) - since
        rig.trial()
        _pause(rng, 1.0)
    finally:
        for thread in workers:
            os.sched_setaffinity(thread, had[thread])
    return Result(f"node: core {CORES[0]} taken away, {CORES[-1]} given", back)


def no_memory(rig: Rig, rng: random.Random) -> Result:
    """The node gets no more memory, while a guest comes and while it is asked to change."""
    before = rig.mapped_bytes()
    _kill(rig.guest)
    rig.guest.close()
    wait_for(lambda: rig.mapped_bytes() < before, DEADLINE_S, "the guest's memory to be unmapped")
    room = rng.randrange(1 << 20)  # the guest's memory needs more
    taken, refused, messages = 0, 0, _refused_messages(rig)
    with _limited(rig, resource.RLIMIT_AS, rig.mapped_bytes() + room):
        rig.start_guest()
        for rules in (1, 100, 20_000):
            (rig.folder / "rules").write_text(RULE * rules)
            try:
                apply(rig.node.running, rig.plan)
                taken += 1
            except ConvoyError as error:
                assert "\n" not in str(error), error
                refused += 1
        wait_for(lambda: _refused_messages(rig) > messages, DEADLINE_S, "a guest to be refused")
        _pause(rng, 1.0)
    since = time.monotonic()
    back = rig.echo(since) - since
    (rig.folder / "rules").write_text(RULE)
    apply(rig.node.running, rig.plan)
    words = f"node: {room >> 10} KiB of memory left: {taken} changes made, {refused} refused"
    return Result(words, back)


def _refused_messages(rig: Rig) -> int:
    return int(rig.node.counts()["ports"]["victim"]["device"]["refused_messages"])


@contextmanager
def _limited(rig: Rig, what: int, limit: int) -> Iterator[None]:
    """Have the node get no more of a resource."""
    pid = rig.node.process.pid
    limits = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (limit, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, what, limits)


def no_buffers(rig: Rig, rng: random.Random) -> Result:
    """No packet buffer is free, for all that send; what they sent waits in their queues."""
    _pause(rng)
    before = _put_off(rig)
    rig.set_machine(no_buffers=True)
    try:
        wait_for(lambda: _put_off(rig) > before, DEADLINE_S, "a reception to be put off")
        _pause(rng, 1.0)
        waited = _put_off(rig) - before
    finally:
        rig.set_machine()
    since = time.monotonic()
    return Result(f"node: no packet buffer: {waited} receptions put off", rig.echo(since) - since)


def _put_off(rig: Rig) -> int:
    ports = rig.node.counts()["ports"].values()
    return sum(port["device"].get("rx_no_buffer", 0) for port in ports)


def rules_rewritten(rig: Rig, rng: random.Random) -> Result:
    """A file of rules is truncated and rewritten while the node is asked to read it again."""
    path = rig.folder / "rules"
    whole = (RULE * 500).encode()
    ends = threading.Event()
    moments = random.Random(rng.random())

    def rewrite() -> None:
        while not ends.is_set():
            cut = moments.choice([whole, whole[: moments.randrange(len(whole))], b"\0" * 100])
            path.write_bytes(cut)
            os.truncate(path, moments.randrange(len(cut)))

    writer = threading.Thread(target=rewrite)
    writer.start()
    taken = refused = 0
    try:
        for _ in range(10):
            try:
                apply(rig.node.running, rig.plan)
                taken += 1
            except InputError as error:
                assert "\n" not in str(error), error
                refused += 1
    finally:
        ends.set()
        writer.join()
        path.write_text(RULE)
    apply(rig.node.running, rig.plan)
    return Result(f"rules rewritten under way: {taken} times taken, {refused} refused")


FAULTS: dict[str, Fault] = {
    fault.__name__.replace("_", "-"): fault
    for fault in (
        kill_node, restart_node, stop_node, kill_guest, stop_guest, kill_peer, stop_peer,
        kill_tester, stop_tester, kill_controller, stop_controller, memory_truncated, no_files,
        no_memory, no_buffers, core_taken, clock_set, sockets_removed, disk_full, rules_rewritten,
    )
}  # fmt: skip

# Those whose work the bystander may notice: the node itself is away.
HITS_ALL = {
    "kill-node", "restart-node", "stop-node", "sockets-removed", "disk-full", "clock-set",
}  # fmt: skip
