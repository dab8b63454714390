# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The same rules in the kernel: nftables, where a network namespace receives frames.

Frames enter by the veth pair in0 > in1. A chain at in1's ingress forwards to out0 what rules
allow, and it is read from out1. Run as a program in a namespace of its own, it takes requests from
standard input, one JSON object a line, and answers each with the frames that came through.
"""

import json
import socket
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_network
from typing import Any

TOGETHER = 64  # frames sent before the end of them is awaited: no queue is shorter
DEADLINE_S = 20.0
END = bytes.fromhex("02000000000202000000000188b5") + b"end of these frames".ljust(46, b"\0")

SETUP = """
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
ip link add in0 type veth peer name in1
ip link add out0 type veth peer name out1
for i in in0 in1 out0 out1; do ip link set $i mtu 65535 up; done
"""


class UnavailableError(Exception):
    """This machine does not let us; the argument says why."""


# The rules in nftables' words.


ALL = "0-65535"
NUMBERS = {"tcp": 6, "udp": 17, "icmp": 1, "icmpv6": 58, "udplite": 136, "dccp": 33, "sctp": 132}


def ports(rule: Mapping[str, Any]) -> list[str]:
    return [f"th {key} {rule[key]}" for key in ("sport", "dport") if rule.get(key, ALL) != ALL]


def conditions(rule: Mapping[str, Any]) -> list[str]:
    """Return what a rule asks, but for its ports."""
    words = []
    for key, name in (("src", "saddr"), ("dst", "daddr")):
        if key in rule:
            network = ip_network(rule[key])
            words.append(f"{'ip' if network.version == 4 else 'ip6'} {name} {network}")
    if "proto" in rule:
        words.append(f"meta l4proto {NUMBERS.get(rule['proto'], rule['proto'])}")
    elif ports(rule):
        words.append("meta l4proto { 6, 17, 33, 132, 136 }")
    return words


def chain(name: str, *lines: str) -> str:
    return "\n".join([f"chain {name} {{", *lines, "}"])


def ruleset(config: Mapping[str, Any]) -> str:
    """Return the nftables file of a firewall's configuration.

    Non-first fragments have a chain of their own: left alone, this kernel takes their first bytes
    for ports.
    """
    verdicts = {"allow": 'fwd to "out0"', "pass": 'fwd to "out0"', "deny": "drop", "drop": "drop"}
    rules = config.get("rules", [])
    default = verdicts[config.get("default", "deny")]
    packets = [" ".join([*conditions(r), *ports(r), verdicts[r["action"]]]) for r in rules]
    later = [
        " ".join([*conditions(r), verdicts[r["action"]]])
        for r in rules
        if r["action"] == "deny" or not ports(r)
    ]
    ingress = chain(
        "ingress",
        'type filter hook ingress device "in1" priority 0; policy drop;',
        f"meta protocol 0x88b5 {verdicts['allow']}",
        f"meta protocol != {{ ip, ip6 }} {verdicts[config.get('non_ip', 'pass')]}",
        "ip frag-off & 0x1fff != 0 goto later",
        "frag frag-off != 0 goto later",
        *packets,
        default,
    )
    body = [chain("later", *later, default), ingress]
    return "\n".join(["flush ruleset", "table netdev firewall {", *body, "}", ""])


# In the namespace.


def open_raw(interface: str) -> socket.socket:
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    raw.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA: tags that the kernel took off
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    raw.bind((interface, 0))
    raw.settimeout(DEADLINE_S)
    return raw


def receive(raw: socket.socket) -> bytes:
    """Return the next frame that came in, with its tag."""
    while True:
        frame, others, _, address = raw.recvmsg(1 << 17, 256)
        if address[2] == 4:  # PACKET_OUTGOING
            continue
        for level, kind, data in others:
            if level == 263 and kind == 8:
                status, *_, tci, tpid = struct.unpack("IIIHHHH", data[:20])
                if status & 0x10:  # TP_STATUS_VLAN_VALID
                    return frame[:12] + struct.pack("!HH", tpid or 0x8100, tci) + frame[12:]
        return frame


def forward(send: socket.socket, out: socket.socket, frames: Sequence[bytes]) -> Iterator[bytes]:
    for i in range(0, len(frames), TOGETHER):
        for frame in (*frames[i : i + TOGETHER], END):
            send.send(frame)
        while (frame := receive(out)) != END:
            yield frame


def serve() -> None:
    """Answer requests until the end of standard input."""
    subprocess.run(["sh", "-ec", SETUP], check=True)
    send, out = open_raw("in0"), open_raw("out1")
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        subprocess.run(["nft", "-f", "-"], input=request["ruleset"], text=True, check=True)
        frames = [bytes.fromhex(frame) for frame in request["frames"]]
        print(json.dumps([frame.hex() for frame in forward(send, out, frames)]), flush=True)


# In the test.


class Kernel:
    """The program above, in its namespace."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def through(self, config: Mapping[str, Any], frames: Iterable[bytes]) -> list[bytes]:
        """Return the frames that the kernel lets through, in order."""
        assert self._process.stdin
        assert self._process.stdout
        request = {"ruleset": ruleset(config), "frames": [frame.hex() for frame in frames]}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the kernel's side died; its rules were\n{request['ruleset']}"
        return [bytes.fromhex(frame) for frame in json.loads(answer)]


@contextmanager
def kernel() -> Iterator[Kernel]:
    """Start it, in a user namespace (which needs no root) with a network of its own.

    Raises UnavailableError with what is missing.
    """
    command = ["unshare", "--user", "--map-root-user", "--net", sys.executable, __file__]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        try:
            if process.stdout.readline() != "ready\n":
                raise UnavailableError(process.stderr.read().strip().splitlines()[-1])
            yield Kernel(process)
        finally:
            process.kill()


if __name__ == "__main__":
    serve()
