# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy-sim as a process: interrupts, progress, bad networks, agreement on drawn topologies."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convoy.errors import InputError
from convoy.host.programs import need
from convoy.sim.engine import run
from convoy.sim.load import loads, open_topology
from convoy.sim.resolve import resolve


def test_interrupt_leaves_a_partial_result_marked(tmp_path):
    code = (
        "import sys; from convoy.cli.main import main; "
        "sys.argv = ['convoy', 'sim', 'run', 'paper-1', '--duration-s', '1000', '--json']; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 60
        while not _child_runs(process.pid):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    result = json.loads(out)
    assert result["complete"] is False
    assert result["simulated_s"] < 1000
    assert b"partial" in err


def _child_runs(pid):
    """Whether convoy-sim was started by pid and has simulated something."""
    from pathlib import Path

    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            if "convoy-sim" in Path(f"/proc/{child}/cmdline").read_text():
                ticks = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[11]
                return int(ticks) > 20
    except OSError:
        pass
    return False


def test_progress_is_told():
    seen = []
    network = resolve(open_topology("paper-1", {"simulate.duration-s": 0.6})).data
    run(network, "event-heap", lambda share, packets: seen.append((share, packets)))
    assert seen == sorted(seen)
    assert seen and 0 < seen[0][0] < 1 and seen[0][1] > 0


@pytest.mark.parametrize(
    ("spoil", "wanted"),
    [
        (lambda n: n.update(schema="x"), "schema is 'x'"),
        (lambda n: n.pop("duration_ps"), "'duration_ps' is missing"),
        (lambda n: n["links"][0].update(rate_bps=-1), "links[0]: 'rate_bps' is -1"),
        (lambda n: n["links"][0].update(rate_bps=0), "link 'firewall.0-dpi.0': its rate is zero"),
        (lambda n: n["links"][0].update(to=99), "ends at a node that does not exist"),
        (lambda n: n["nodes"][0].update(kind="fw"), "give one of: function, fabric, sink"),
        (lambda n: n["nodes"][0].update(routes=[]), "node 'firewall.0': has no route to 'dpi.0'"),
        (lambda n: n["sources"][0].update(label=70000), "'label' is 70000"),
        (lambda n: n["sources"][0].update(kind="pcap", path="/nowhere"), "cannot open capture"),
        (lambda n: n.update(nodes=3), "'nodes' must be a list"),
    ],
)
def test_bad_networks_are_refused(spoil, wanted):
    network = resolve(open_topology("paper-1")).data
    spoil(network)
    with pytest.raises(InputError) as caught:
        run(network)
    assert wanted in str(caught.value)


def test_not_json_and_unknown_options(tmp_path):
    program = str(need("convoy-sim"))
    for command, text in (([program], b"{"), ([program, "--fast"], b""), ([program, "x"], b"")):
        done = subprocess.run(command, input=text, capture_output=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith(b"convoy-sim: ") and done.stderr.count(b"\n") == 1


SOURCES = st.sampled_from(
    [
        "{cbr: {mpps: 0.7}, count: 6}",
        "{cbr: {mpps: 0.5, phase: together}, count: 6}",
        "{poisson: {mpps: 0.4, flows: 50}, count: 7}",
        "{on-off: {mpps: 0.3, on-ms: 0.05, off-ms: [0.01, 0.1]}, count: 8}",
        "{pareto-on-off: {mpps: 0.3, on-ms: 0.02, off-ms: 0.03}, count: 6}",
        "{poisson: {mpps: 0.3, sizes: imix, flows: 9}, count: 6}",
    ]
)
AGGREGATIONS = st.sampled_from(
    [
        "{none: }",
        "{table: {window-ms: 0.05, flush-us: 3}}",
        "{table: {profile: paper-table2-bursty, window-ms: 0.1, flush-us: 1}}",
        "{queue: {burst: 8, burst-ns: 500}}",
        "{queue: {}, frames: {mtu: 1500, max-packets: 4}}",
        "{queue: {burst: 16, wait-us: 4}}",
    ]
)
FUNCTIONS = st.tuples(
    st.integers(1, 3),
    st.floats(0.5, 6).map(lambda x: round(x, 3)),
    st.sampled_from([0, 3, 50]),
    st.sampled_from(["round-robin", "hash"]),
    AGGREGATIONS,
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
@given(
    SOURCES,
    st.lists(FUNCTIONS, min_size=1, max_size=4),
    st.sampled_from(["mesh", "tree"]),
    st.sampled_from(["{gbps: 1, delay-us: 0.5, queue-frames: 5}", "{gbps: 40}", "{gbps: 3.3}"]),
    st.integers(0, 2**32),
)
def test_engines_agree_on_drawn_topologies(source, functions, spread, links, seed):
    lines = [f"simulate: {{duration-s: 0.0005, chunk-ms: 0.07, seed: {seed}}}"]
    lines += [f"sources: {{src: {source}}}", "functions:"]
    for i, (instances, mpps, queue, policy, aggregation) in enumerate(functions):
        lines.append(
            f"  f{i}: {{instances: {instances}, max-mpps: {mpps}, queue-packets: {queue}, "
            f"next-hop: {policy}, aggregation: {aggregation}}}"
        )
    path = ", ".join(f"f{i}" for i in range(len(functions)))
    lines.append(f"chains: {{all: {{from: src, path: [{path}], to: end, spread: {spread}}}}}")
    lines.append(f"links: {links}")
    network = resolve(loads("\n".join(lines) + "\n")).data
    first = run(network, "feed-forward")
    for engine in ("event-heap", "ns3"):
        other = run(network, engine)
        for part in ("links", "nodes", "sources"):
            assert other[part] == first[part]
