# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What the end of each command's help shows: command lines to start from."""

from collections.abc import Mapping

import typer

EXIT_CODES = (
    "Exit codes: 0 done; 1 it ran and failed; 2 bad input, nothing was started; 130 interrupted."
)
# By the words of a command, without `convoy`; each as one types it, in lines of at most 76 columns.
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "doctor": ("convoy doctor",),
    "check": (
        "convoy check chain.yaml",
        "convoy check chain.yaml --json     # with the memory that it takes",
        "convoy check --schema > chain.schema.json",
    ),
    "run": (
        "convoy run examples/three-functions.yaml --read in.pcap --write out.pcap",
        "convoy run chain.yaml              # until Ctrl-C",
    ),
    "network check": ("convoy network check examples/network/pa-flow.yaml",),
    "network descriptors": ("convoy network descriptors pa-flow.yaml -o out",),
    "network up": ("convoy network up pa-flow.yaml --duration 1m",),
    "controller": ("convoy controller pa-flow.yaml --listen 192.0.2.254",),
    "libvirt": (
        "convoy libvirt chain.yaml inside           # XML for libvirt",
        "convoy libvirt chain.yaml inside --qemu    # options for QEMU",
    ),
    "preload ethdev": (
        "convoy preload ethdev -- dpdk-testpmd \\\n"
        "    --vdev net_virtio_user0,path=/run/v0 -- --auto-start",
    ),
    "preload vhost": (
        "convoy preload vhost \\\n"
        "    --next-hop dst_mac=02:00:00:00:00:02,dst=192.0.2.2,src=192.0.2.1 \\\n"
        "    -- ovs-vswitchd",
    ),
    "dictionary": ("convoy dictionary monday.pcap tuesday.pcap -o office.dict",),
    "top": (
        "convoy top",
        "convoy top --web                   # a live page, on this machine only",
    ),
    "why": (
        "convoy why src host 10.0.0.2 -c 4",
        "convoy why --drops                 # what is dropped, and where",
        "convoy why icmp --run 'ping -c 1 192.0.2.1'",
        "convoy why --drops --pcapng drops.pcapng --duration 10s",
    ),
    "mirror": (
        "convoy mirror in inside --write capture.pcapng --duration 30s",
        "convoy mirror vlan 100 --listen /run/user/1000/mirror.sock",
    ),
    "metrics": (
        "convoy metrics                     # for Prometheus, until Ctrl-C",
        "convoy metrics --once",
    ),
    "show": ("convoy show --descriptor running.yaml",),
    "history": ("convoy history",),
    "apply": (
        "convoy apply chain.yaml --dry-run  # what would change",
        "convoy apply chain.yaml --confirm 30s",
        "convoy confirm                     # else the node goes back",
    ),
    "confirm": ("convoy confirm",),
    "rollback": (
        "convoy rollback                    # to what ran before",
        "convoy rollback 3                  # to what `convoy history` calls 3",
    ),
    "next-hop list": ("convoy next-hop list",),
    "next-hop put": (
        "convoy next-hop put b --port wire \\\n"
        "    --mac 02:00:00:00:00:0b --ip 192.0.2.2 --for vlan=100 --wait 5us",
    ),
    "next-hop remove": ("convoy next-hop remove b",),
    "next-hop adapt": ("convoy next-hop adapt b --at-most 20us --frames-per-s 500000",),
    "handover": (
        "convoy handover                    # to the convoyd that is installed now",
        "convoy handover --convoyd build/daemon/convoyd",
    ),
    "standby": ("convoy standby",),
    "activate": ("convoy activate",),
    "bench nf": (
        "convoy bench nf --function router,firewall --entries 10,1000",
        "convoy bench nf --function stateful --flows 65536",
    ),
    "bench quick": (
        "convoy bench quick --smoke         # half a minute: does it all work?",
        "convoy bench quick --sizes 64,imix",
    ),
    "bench paflow": ("convoy bench paflow --only ratio,latency --quick",),
    "bench profile": ("convoy bench profile --out mine.json",),
    "bench hostile": ("convoy bench hostile --port memif",),
    "bench list": ("convoy bench list",),
    "bench run": (
        "convoy bench run baseline chain --quick",
        "convoy bench run baseline --devices convoy,testpmd,ovs-dpdk -o results/mine",
        "convoy bench run --for-claims --quick",
        "convoy bench run --all --quick --time-limit 90m -o results/everything",
    ),
    "bench resume": ("convoy bench resume results/20260101-120000-baseline",),
    "bench compare": ("convoy bench compare results/A results/B",),
    "report": (
        "convoy report results/A            # report.html, and report-claims.html",
        "convoy report results/A results/B --format md",
    ),
    "results pack": ("convoy results pack results/A results/B -o runs.tar.xz",),
    "results query": (
        "convoy results query \\\n"
        "    'SELECT device, avg(pdr_pps) FROM points GROUP BY 1' results/A",
    ),
    "advise": (
        "convoy advise chain.yaml --traffic '2 Mpps 64' --results results/parts",
        "convoy advise chain.yaml --traffic 64 --day day.csv --results results/parts",
    ),
    "sim run": (
        "convoy sim run examples/sim/two-chains.yaml --report page.html",
        "convoy sim run paper-1 --set aggregation=false",
    ),
    "sim paper": ("convoy sim paper",),
    "sim saved": ("convoy sim saved --load 3 --wait-us 0,5 --report page.html",),
    "sim sweep": ("convoy sim sweep paper-1 --set functions.dpi.instances=1,2 --seeds 1-5",),
}  # fmt: skip


def epilog(words: str) -> str:
    """Return what a command's help ends with: its examples, and what its exit codes say."""
    examples = EXAMPLES.get(words, ())
    if not examples:
        return EXIT_CODES
    as_it_is = "" if typer.core.HAS_RICH else "\b\n"  # Click joins a paragraph's lines without it
    title = "Example:" if len(examples) == 1 else "Examples:"
    lines = "\n".join([title, *examples]).replace("\n", "\n  ")
    return f"{as_it_is}{lines}\n\n{EXIT_CODES}"
