# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""unbound behind the cache, dig and dnsperf before it: the same answers, but for TTLs.

Two network namespaces, and between them the node, which is no hop: frames pass as they are.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from convoy.errors import ConvoyError
from convoy.host.namespace import Namespace, shell
from convoy.host.node import Node
from convoy.host.offload import turn_off
from convoy.host.process import Process, wait_for
from cores import CORES

DEADLINE_S = 30.0
SIDES = ("client", "server")
SERVER = "10.0.0.53"
SERVER6 = "2001:db8::53"
LIAR = "10.0.0.54"
NETWORK = {
    "client": ("10.0.0.1/24", "2001:db8::1/64"),
    "server": (f"{SERVER}/24", f"{LIAR}/24", f"{SERVER6}/64"),
}
UNBOUND = f"""
server:
  interface: {SERVER}
  interface: {SERVER6}
  interface: 127.0.0.1
  access-control: 0.0.0.0/0 allow_snoop
  access-control: ::/0 allow_snoop
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "."
  pidfile: ""
  use-syslog: no
  module-config: "iterator"
  rrset-roundrobin: no
  local-zone: "example." static
  local-data: "example. 600 SOA ns.example. host.example. 1 2 3 4 60"
  local-data: "www.example. 300 A 192.0.2.1"
  local-data: "www.example. 300 A 192.0.2.2"
  local-data: "www.example. 100 AAAA 2001:db8::80"
  local-data: "alias.example. 200 CNAME www.example."
  local-data: "example. 3600 MX 10 mail.example."
  local-data: "once.example. 0 A 192.0.2.3"
  local-data: 'long.example. 300 TXT "{"x" * 250}" "{"y" * 250}" "{"z" * 250}"'
  local-data: "_dns._udp.example. 50 SRV 1 2 53 ns.example."
remote-control:
  control-enable: no
"""
# What dig asks; whether the answer can be learned.
QUESTIONS = {
    "www.example A": True,
    "www.example AAAA": True,
    "WwW.eXaMpLe A +noedns": True,
    "example MX +dnssec": True,
    "example SOA +norecurse": True,
    "_dns._udp.example SRV +cdflag": True,
    "alias.example CNAME +adflag": True,
    "no.such.example A": True,  # NXDOMAIN
    "www.example MX": True,  # NODATA
    "long.example TXT +bufsize=4096": True,
    "long.example TXT +noedns": False,  # truncated
    "once.example A": False,  # TTL 0
    "www.example ANY": False,
    "version.bind CH TXT": False,
    "www.example A +cookie=0102030405060708": False,
    "www.example A +subnet=192.0.2.0/24": False,
    "www.example A +nsid": False,
    "www.example A +tcp": False,
}
DIG = (
    "dig +nocookie +ignore +tries=1 +time=5 "
    "+noall +comments +question +answer +authority +additional"
)
# Whoever asks LIAR gets answers to something else first, and a truncated one at last.
LYING = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("{LIAR}", 53))
o = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
o.bind(("{LIAR}", 5353))
print("listening", flush=True)
record = bytes.fromhex("c00c000100010000012c0004c0000209")
while True:
    q, peer = s.recvfrom(512)
    end = q.index(0, 12) + 5
    body = q[12:end] + record
    head = bytes.fromhex("818000010001 00000000")
    right = q[:2] + head + body
    s.sendto(bytes([q[0] ^ 1]) + q[1:2] + head + body, peer)  # another id
    s.sendto(q[:2] + head + body.replace(b"forged", b"FORGED"), peer)  # another case
    s.sendto(q[:2] + head + body.replace(b"forged", b"another"[:6]), peer)  # another name
    s.sendto(right, (peer[0], peer[1] ^ 1))  # another port
    o.sendto(right, peer)  # from another port
    s.sendto(q[:2] + bytes.fromhex("8380") + right[4:], peer)  # truncated
    s.sendto(right, peer)  # a second answer
"""


def _plan(workers: int) -> dict[str, Any]:
    ways = (SIDES, SIDES[::-1])
    stages: list[dict[str, Any]] = [
        {
            "worker": way % workers,
            "chain": a,
            "source": {"port": a, "queue": 0},
            "path": ["dns"],
            "sink": {"port": b},
        }
        for way, (a, b) in enumerate(ways)
    ]
    if workers > 1:
        stages += [
            {**stage, "worker": worker, "source": {"handoff": True}}
            for stage in stages
            for worker in range(workers)
        ]
    return {
        "schema": "convoy.plan/1",
        "ports": [{"name": side, "kind": "af_packet", "interface": side} for side in SIDES],
        "functions": [
            {"name": "dns", "type": "cache", "config": {"outside": ["server"], "memory_mb": 8}}
        ],
        "chains": [{"name": a, "match": {}, "in": a, "out": b} for a, b in ways],
        "stages": stages,
        "workers": [{"core": CORES[i % len(CORES)], "idle": "sleep"} for i in range(workers)],
        "eal": {"hugepages": False, "memory_mb": 256},
    }


@dataclass
class Net:
    """Both hosts, and what the cache knew at the end."""

    hosts: dict[str, Namespace]
    node: Node
    counts: dict[str, Any]

    def dig(self, server: str, questions: list[str], side: str = "client") -> list[str]:
        """Ask one after another; return the answers without what may differ."""
        every = " ".join(f"@{server} {question}" for question in questions)
        answers = self.hosts[side].run(f"{DIG} {every} || true").split(";; ->>HEADER<<-")[1:]
        return [_unchanging(text) for text in answers]


def _unchanging(text: str) -> str:
    """Return what dig printed without ids and TTLs."""
    text = re.sub(r"(?m)^;; (Got answer|Warning|Query time).*\n|, id: \d+", "", text)
    lines = [re.sub(r"^([^;\s]\S*\s+)\d+(\s)", r"\1TTL\2", line) for line in text.splitlines()]
    return "\n".join(line for line in lines if line)


@contextmanager
def _net(folder: Path, workers: int = 1) -> Iterator[Net]:
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    for program in ("unbound", "dig", "dnsperf"):
        if shutil.which(program) is None:
            pytest.skip(f"not installed: {program}")
    (folder / "unbound.conf").write_text(UNBOUND)
    with ExitStack() as stack:
        try:
            middle, *both = (stack.enter_context(Namespace()) for _ in range(3))
            hosts = dict(zip(SIDES, both, strict=True))
            for side, host in hosts.items():
                ends = [f"cd{os.getpid() % 10**6}{side[0]}{end}" for end in "nh"]
                shell(f"ip link add name {ends[0]} type veth peer name {ends[1]}")
                for end, namespace in zip(ends, (middle, host), strict=True):
                    turn_off(end)
                    shell(f"ip link set {end} netns {namespace.pid} name {side}")
                middle.run(f"sysctl -qw net.ipv6.conf.{side}.disable_ipv6=1\nip link set {side} up")
                host.run(
                    f"ip link set lo up\nip link set {side} up\n"
                    + "\n".join(f"ip address add {at} dev {side} nodad" for at in NETWORK[side])
                )
        except ConvoyError as why:
            pytest.skip(f"no such network here: {why}")
        stack.enter_context(
            Process(list(hosts["server"].command("unbound", "-c", str(folder / "unbound.conf"))))
        )
        wait_for(
            lambda: "[2001:db8::53]:53" in hosts["server"].run("ss -Hlnu"), DEADLINE_S, "unbound"
        )
        node = stack.enter_context(Node(_plan(workers), wrapper=middle.command()))
        net = Net(hosts, node, {})
        yield net
        net.counts = node.stop()
        assert net.counts["accounting"]["conserved"], net.counts["accounting"]


def _info(net: Net) -> dict[str, Any]:
    info: dict[str, Any] = net.counts["functions"]["dns"]["info"]
    return info


def test_answers_are_the_same(tmp_path: Path) -> None:
    questions = list(QUESTIONS)
    with _net(tmp_path) as net:
        direct = net.dig("127.0.0.1", questions, "server")
        for server in (SERVER, SERVER6):
            assert net.dig(server, questions) == direct  # unbound's
            assert net.dig(server, questions) == direct  # from the cache, where that may be
        assert len(direct) == len(questions)
        spelling = net.dig(SERVER, ["wWW.EXAMPLE A"])
        assert "wWW.EXAMPLE." in spelling[0]
    known, info = sum(QUESTIONS.values()), _info(net)
    assert info["learned"] == info["entries"] == 2 * known
    assert info["hits"] == 2 * known + 1
    assert info["refused"]["truncated"] == info["refused"]["no_ttl"] == 4
    assert net.counts["functions"]["dns"]["originated"] == info["hits"]


def test_what_was_not_asked_is_not_learned(tmp_path: Path) -> None:
    with _net(tmp_path) as net:
        liar = list(net.hosts["server"].command("python3", "-c", LYING))
        with Process(liar) as lying:
            lying.wait_line(lambda line: line == "listening", DEADLINE_S, "it listened")
            for _ in range(2):
                net.dig(LIAR, ["forged.example A +noedns"])
            net.hosts["client"].run(f"ping -c 1 -W 10 {LIAR}")  # behind all of it
    info = _info(net)
    assert (info["learned"], info["hits"], info["misses"]) == (0, 0, 2)
    # Another id, case, name, port, and the second answer; each time.
    assert info["refused"]["unasked"] == 10
    assert info["refused"]["truncated"] == 2


def test_dnsperf_over_two_workers(tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_text("".join(f"{i}.example A\n" for i in range(200)))
    with _net(tmp_path, workers=2) as net:
        output = net.hosts["client"].run(
            f"dnsperf -s {SERVER} -d {names} -n 20 -c 4 -q 20 2>&1 || true"
        )
    sent = re.search(r"Queries sent: +(\d+)", output)
    assert sent is not None and int(sent[1]) == 4000, output
    assert re.search(r"Queries completed: +4000 ", output), output
    assert "NXDOMAIN 4000 (100.00%)" in output, output
    info = _info(net)
    assert info["hits"] + info["misses"] == 4000
    assert info["hits"] > 2000, info
