#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Answers per second of the cache over vhost-user, and of unbound on the same core behind it.

    PYTHONPATH=. .venv/bin/python tests/bench/answers.py [--core 1] [--tester-core 0] [--repeats 5]

The tester sends queries for 1,000 names as fast as they are taken. What comes back is answers. They
have no stamp, so the tester counts them as foreign. unbound has the same names, and dnsperf, on the
tester's core, asks it over the loopback interface.
"""

import argparse
import json
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from scapy.layers.dns import DNS, DNSQR, DNSRR, DNSRROPT
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import raw
from scapy.utils import wrpcap

from convoy.host.node import Node
from convoy.host.programs import need

NAMES = [f"host{i:06}.example.com" for i in range(1000)]
ENDS = ("client", "server")
SERVER, PORT = "192.0.2.53", 5399
STAMP = bytes(14)  # the tester writes its own over it, behind the IP packet
UNBOUND = """server:
 interface: 127.0.0.1@{port}
 do-daemonize: no
 username: ""
 chroot: ""
 directory: "."
 pidfile: ""
 use-syslog: no
 num-threads: 1
 module-config: "iterator"
 local-zone: "example.com." static
{names}
remote-control:
 control-enable: no
"""


def frame(name: str, number: int, answer: bool) -> Ether:
    """Return a query, or its answer."""
    ends = {"src": SERVER, "dst": "10.0.0.1"} if answer else {"src": "10.0.0.1", "dst": SERVER}
    ports = {"sport": 53, "dport": 4000} if answer else {"sport": 4000, "dport": 53}
    dns = DNS(id=number, rd=1, qd=DNSQR(qname=name), ar=DNSRROPT(rclass=1232))
    if answer:
        dns.qr = dns.ra = 1
        dns.an = DNSRR(rrname=name, ttl=86400, rdata="192.0.2.1")
    macs = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
    return Ether(raw(Ether(**macs) / IP(**ends) / UDP(**ports) / dns) + STAMP)


def plan(folder: Path, core: int) -> dict[str, Any]:
    """Return the plan of a node with nothing but the cache."""
    ways = (ENDS, ENDS[::-1])
    return {
        "schema": "convoy.plan/1",
        "ports": [
            {"name": end, "kind": "vhost-user", "path": str(folder / end), "mode": "server"}
            for end in ENDS
        ],
        "functions": [{"name": "dns", "type": "cache", "config": {"outside": ["server"]}}],
        "chains": [{"name": a, "match": {}, "in": a, "out": b} for a, b in ways],
        "stages": [
            {
                "worker": 0,
                "chain": a,
                "source": {"port": a, "queue": 0},
                "path": ["dns"],
                "sink": {"port": b},
            }
            for a, b in ways
        ],
        "workers": [{"core": core, "idle": "poll"}],
        "eal": {"hugepages": False, "memory_mb": 512},
    }


def of_cache(folder: Path, core: int, tester_core: int, repeats: int) -> None:
    """Print what the cache answers."""
    for kind in ("queries", "answers"):
        frames = [frame(name, i, kind == "answers") for i, name in enumerate(NAMES)]
        wrpcap(str(folder / kind), frames)
    command = [need("convoy-gen"), "--core", str(tester_core)]
    for end in ENDS:
        command += ["--port", f"vhost-user:{folder / end}"]
    with (
        Node(plan(folder, core)) as node,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as tester,
    ):
        assert tester.stdin is not None
        assert tester.stdout is not None

        def trial(capture: str, path: str, **spec: Any) -> dict[str, Any]:
            assert tester.stdin is not None
            assert tester.stdout is not None
            replay = {"file": str(folder / capture), "timing": "rate", **spec.pop("replay", {})}
            print(json.dumps({"capture": replay, "paths": [path], **spec}), file=tester.stdin)
            tester.stdin.flush()
            for line in tester.stdout:
                result: dict[str, Any] = json.loads(line)
                if result["schema"].startswith("convoy.trial"):
                    return result
            raise SystemExit("the tester ended")

        once = {"loops": 1}
        trial("queries", "0>1", rate_pps=100000, replay=once)
        trial("answers", "1>0", rate_pps=100000, replay=once)
        for _ in range(repeats):
            result = trial("queries", "0>1", rate_pps="max", duration_s=1)
            rate = result["foreign_pkts"] / (result["duration_ns"] / 1e9)
            print(f"cache: {rate / 1e6:.2f} M answers/s of {result['total']['sent_pkts']} queries")
        tester.stdin.close()
        tester.wait()
        dns = node.stop()["functions"]["dns"]
        print(f"cache: {dns['busy_cycles'] / dns['packets']:.0f} cycles per query", dns["info"])


def of_unbound(folder: Path, core: int, tester_core: int, repeats: int) -> None:
    """Print what unbound answers."""
    names = "\n".join(f' local-data: "{name}. 86400 A 192.0.2.1"' for name in NAMES)
    (folder / "conf").write_text(UNBOUND.format(port=PORT, names=names))
    (folder / "names").write_text("".join(f"{name} A\n" for name in NAMES))
    pinned = ["taskset", "-c", str(core), "unbound", "-c", str(folder / "conf")]
    ask = f"taskset -c {tester_core} dnsperf -s 127.0.0.1 -p {PORT} -e -d {folder / 'names'} "
    with subprocess.Popen(pinned, stderr=subprocess.DEVNULL) as unbound:
        time.sleep(2)
        for _ in range(repeats):
            output = subprocess.run(
                [*ask.split(), "-l", "2", "-c", "8", "-q", "200"], capture_output=True, text=True
            ).stdout
            rate = re.search(r"Queries per second: +([\d.]+)", output)
            print(f"unbound: {float(rate[1]) / 1e6 if rate else 0:.3f} M answers/s")
        unbound.terminate()


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--core", type=int, default=1)
    parser.add_argument("--tester-core", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        of_cache(Path(folder), given.core, given.tester_core, given.repeats)
        of_unbound(Path(folder), given.core, given.tester_core, given.repeats)


if __name__ == "__main__":
    main()
