#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""TSC cycles a packet of a node between two vhost-user ports, for one build or several in turn.

    PYTHONPATH=. .venv/bin/python tests/bench/one_way.py [--functions seal] [--size 64]
        [--builds build ../before/build] [--rounds 8] [--trials 5] [--core 1] [--tester-core 0]

Functions are a scenario's. The tester offers as many packets as the node takes and knows none of
what comes back: so one end of a tunnel can be measured. Whether packets are right, other tests say.
The tester is this checkout's for all builds.
The machine changes while it is measured: in each round each build is measured, for some seconds.
"""

import argparse
import os
import statistics
import sys
from pathlib import Path

from convoy.dut.devices import device
from convoy.dut.functions import WORKLOADS
from convoy.errors import ConvoyError
from convoy.host.private import private_folder
from convoy.results.scenario import SetupSpec
from convoy.run.order import port_kind, setup_of
from convoy.run.workload import flows, size_of
from convoy.tester.convoy_gen import ConvoyGen

CONVOY = device("convoy")


def measure(build: Path, options: argparse.Namespace) -> list[tuple[float, float]]:
    """Return of each trial the cycles a packet, and the packets per second."""
    os.environ["CONVOY_BIN"] = str(build / "daemon")
    spec = SetupSpec(functions=tuple(options.functions))
    offered = {"rate_pps": "max", "duration_s": 1.0, "drain_s": 0.1, "paths": ["0>1"],
               "size": size_of(options.size), "flows": flows()}  # fmt: skip
    measured = []
    with private_folder() as private:
        setup = setup_of(CONVOY, spec, port_kind(CONVOY, spec), [options.core], private)
        with CONVOY.start(setup) as running:
            ports = [CONVOY.tester_port(p, i) for i, p in enumerate((setup.left, setup.right))]
            with ConvoyGen(ports, options.tester_core) as tester:
                running.ready(60)
                for _ in range(options.trials):
                    before = running.cost()
                    tester.trial(offered)
                    after = running.cost()
                    assert before is not None
                    assert after is not None
                    packets = after.packets - before.packets
                    cycles = after.busy_cycles - before.busy_cycles
                    if packets == 0:
                        raise ConvoyError(f"{build}: the node took no packets")
                    measured.append((cycles / packets, packets / offered["duration_s"]))
    return measured


def main() -> None:
    """Measure, and print the least, the lower quartile, the median and the most of each build."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--functions", nargs="+", default=["seal"], choices=sorted(WORKLOADS))
    parser.add_argument("--size", default="64")
    parser.add_argument("--builds", nargs="+", type=Path, default=[Path("build")])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--core", type=int, default=1)
    parser.add_argument("--tester-core", type=int, default=0)
    options = parser.parse_args()
    if min(options.rounds, options.trials) < 1:
        parser.error("--rounds, --trials: give at least 1")
    for build in options.builds:  # where there is none, this checkout's would be found
        if not (build / "daemon" / "convoyd").is_file():
            parser.error(f"--builds: {build}: has no daemon/convoyd; give a folder that meson made")
    measured: dict[Path, list[tuple[float, float]]] = {build: [] for build in options.builds}
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        for build in options.builds:
            try:
                measured[build] += measure(build.resolve(), options)
            except ConvoyError as error:
                parser.error(str(error))
    for build, trials in measured.items():
        cycles = sorted(each for each, _ in trials)
        rate = statistics.median(rate for _, rate in trials) / 1e6
        quartile, median = cycles[len(cycles) // 4], statistics.median(cycles)
        print(
            f"{build}: {cycles[0]:.0f}, quartile {quartile:.0f}, median {median:.0f}, most "
            f"{cycles[-1]:.0f} cycles; median {rate:.2f} Mpps; {len(cycles)} trials"
        )


if __name__ == "__main__":
    main()
