# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy run as a command, with a stub for convoyd."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from convoy.host.process import wait_for

from .conftest import COMMAND, DEADLINE_S

pytestmark = pytest.mark.timeout(2 * DEADLINE_S)


@contextmanager
def start(environment, *arguments, **how):
    with subprocess.Popen(
        [*COMMAND, "run", *map(str, arguments)],
        env=environment,
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(stream, words: str) -> str:
    text = ""
    while words not in text:
        line = stream.readline()
        assert line, f"ended without {words!r}: {text}"
        text += line
    return text


def test_counts_at_the_end(convoy, stand_in, chain):
    stand_in("ends")
    done = convoy("run", chain)
    assert done.returncode == 0, done.stderr
    assert "fw        firewall" in done.stdout
    assert "received 0 = sent 0 + dropped 0 + held 0: conserved" in done.stdout
    assert "memory: 1024 MiB without hugepages" in done.stderr


def test_json_is_one_document(convoy, stand_in, chain):
    stand_in("good")
    done = convoy("run", "--json", "--duration", "0.1", chain)
    document = json.loads(done.stdout)
    assert document["schema"] == "convoy.run/1"
    assert document["ended_by"] == "duration"
    assert document["counts"]["schema"] == "convoy.counts/3"


def test_a_handover_is_no_failure(convoy, stand_in, chain):
    stand_in("hands over")
    done = convoy("run", chain)
    assert done.returncode == 0, done.stderr
    assert "handed over: convoyd 4711 goes on" in done.stdout
    document = json.loads(convoy("run", "--json", chain).stdout)
    ended = {key: document[key] for key in ("schema", "ok", "ended_by", "pid", "counts")}
    assert ended == {
        "schema": "convoy.run/1", "ok": True, "ended_by": "handover", "pid": 4711, "counts": None,
    }  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_drains_and_prints(environment, stand_in, chain, number):
    stand_in("good")
    with start(environment, "--json", chain) as process:
        read_until(process.stderr, "forwarding")
        process.send_signal(number)
        out, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert json.loads(out)["ended_by"] == "signal"


def test_what_the_node_says_is_passed_on(environment, stand_in, chain):
    stand_in("talks")
    with start(environment, "--json", chain) as process:
        output = read_until(process.stderr, "forwarding")
        if "port a: peer gone" not in output:
            read_until(process.stderr, "port a: peer gone")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=DEADLINE_S)
    assert json.loads(out)["ok"] is True


def test_bad_input_starts_nothing(convoy, stand_in, chain):
    stand_in("no port")
    done = convoy("run", chain)
    assert done.returncode == 2
    assert done.stderr == f"convoy: {chain}:1: ports.a: interface x: no such device\n"


def test_a_port_that_cannot_be_opened_is_named_with_its_line(convoy, stand_in, chain):
    stand_in("taken")
    chain.write_text(chain.read_text().replace(", b:", ",\n  b:"))
    done = convoy("run", chain)
    assert done.returncode == 1
    assert done.stderr == f"convoy: {chain}:2: ports.b.path: /s: another process listens there\n"


@pytest.mark.parametrize(
    ("time", "words"),
    [("1x", "write a time like 30s"), ("-1", "write a time like 30s"), ("481h", "up to 480h")],
)
def test_a_time_that_is_none(convoy, chain, time, words):
    done = convoy("run", chain, "--duration", time)
    assert done.returncode == 2
    assert done.stderr.startswith(f"convoy: --duration: '{time}': ")
    assert words in done.stderr


def test_a_node_that_dies(convoy, stand_in, chain):
    stand_in("dies")
    done = convoy("run", chain)
    assert done.returncode == 1
    assert "convoyd ended without its counts (exit code -6)" in done.stderr


def test_packets_that_are_not_conserved(convoy, stand_in, chain):
    stand_in("lossy")
    done = convoy("run", "--json", "--duration", "0", chain)
    assert done.returncode == 1
    assert json.loads(done.stdout)["ok"] is False


def convoyds(folder: Path) -> list[int]:
    result = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder / "bin" / "convoyd").encode() in path.read_bytes():
                result.append(int(path.parent.name))
        except OSError:
            continue
    return result


def test_no_node_is_left_when_the_command_is_killed(environment, stand_in, chain, tmp_path):
    stand_in("deaf")
    with start(environment, chain) as process:
        read_until(process.stderr, "forwarding")
        assert convoyds(tmp_path)
        process.kill()
    wait_for(lambda: not convoyds(tmp_path), 60, "convoyd is gone")


def test_live_counters_on_a_terminal(environment, stand_in, chain):
    stand_in("good")
    master, slave = pty.openpty()
    environment["TERM"] = "xterm"
    with start(environment, chain, stdout=slave, stderr=slave) as process:
        os.close(slave)
        seen = terminal_until(master, "packets/s")
        process.send_signal(signal.SIGINT)
        seen += terminal_until(master, "conserved")
        process.wait(DEADLINE_S)
    os.close(master)
    assert process.returncode == 0
    assert "Ctrl-C stops" in seen
    assert "20.0" in seen  # cycles per packet


def terminal_until(master: int, words: str) -> str:
    text, end = "", time.monotonic() + DEADLINE_S
    while words not in text:
        assert select.select([master], [], [], max(0, end - time.monotonic()))[0], text
        text += os.read(master, 65536).decode(errors="replace")
    return text
