# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Trials to rows: what is kept, what is missing, what is counted."""

import pytest

from convoy.errors import InputError
from convoy.report import quick
from convoy.report.rates import expected_pps, rows
from convoy.results.trials import RunFolder, Trial

CHAIN = ("firewall", "router", "l2fwd")


def counts(packets, busy, own):
    return {
        "ports": {"left": {"rx_packets": packets}, "right": {"rx_packets": 0}},
        "functions": {"fw": {"busy_cycles": own}, "rtr": {"busy_cycles": own}},
        "workers": [{"busy_cycles": busy}],
    }


def trial(purpose="search", received=None, verdict="passed", repeat=0, device="convoy", **more):
    latency = {"p50_ns": 2000 + repeat, "p99_ns": 9000}
    total = {"received_pps": received, "mean_frame_bytes": 64.0, "latency": latency}
    return Trial(
        repeat=repeat,
        device=device,
        functions=more.pop("functions", CHAIN),
        size=more.pop("size", "64"),
        purpose=purpose,
        rate_pps=received,
        verdict=verdict,
        commands=("convoyd plan.json",),
        tester={"total": total, "tester": {"tsc_hz": 2_600_000_000}},
        **more,
    )


def test_a_repeats_rate_is_its_fastest_trial_that_passed():
    (row,) = rows(
        [
            trial("overload", 9e6),
            trial(received=5e6),
            trial(received=7e6, verdict="failed"),
            trial(received=6e6),
            trial(received=8e6, verdict="spoilt"),
            trial(received=4e6, repeat=1),
            trial(received=9e6, repeat=2, verdict="failed"),
        ]
    )
    assert row.rates_pps == (6e6, 4e6)
    assert row.rate_pps == 5e6
    assert row.gbps == pytest.approx(5e6 * 64 * 8 / 1e9)
    assert (row.repeats, row.trials, row.spoilt) == (3, 7, 1)


def test_what_nobody_measured_is_missing_not_zero():
    (row,) = rows([trial(received=5e6, verdict="failed")])
    assert (row.rate_pps, row.gbps, row.p50_ns, row.node_cycles_per_packet) == (None,) * 4


def test_latency_is_of_latency_trials_only():
    (row,) = rows([trial(received=6e6), trial("latency", 3e6), trial("latency", 3e6, repeat=1)])
    assert (row.p50_ns, row.p99_ns, row.load_pps) == (2000.5, 9000, 3e6)


def test_cycles_are_those_of_the_trial_not_of_the_devices_life():
    before, after = counts(100, 1_000_000, 100_000), counts(1100, 1_400_000, 140_000)
    (row,) = rows([trial(received=6e6, device_before=before, device_after=after)])
    assert row.node_cycles_per_packet == 400
    assert row.function_cycles_per_packet == 80


def test_expected_rate_adds_cycles_to_a_packets_time():
    assert expected_pps(10e6, 260, 2.6e9) == pytest.approx(5e6)


def test_findings_say_what_the_rows_say():
    before, after = counts(0, 0, 0), counts(1000, 400_000, 35_000)
    found = quick.findings(
        rows(
            [
                trial(received=6e6, device_before=before, device_after=after),
                trial(received=9e6, device="testpmd", functions=()),
            ]
        ),
        {"tsc_hz": 2.6e9, "self_test": {"ceiling_pps": 9.5e6}},
    )
    text = "\n".join(found)
    assert "**6.00 [6.00 .. 6.00] Mpps**" in text
    assert "**9.00 [9.00 .. 9.00] Mpps**" in text
    assert "took 70 cycles per packet" in text
    assert f"{expected_pps(9e6, 70, 2.6e9) / 1e6:.2f} Mpps" in text
    assert "ceiling, so at least that fast: no function" in text


def test_a_folder_gives_back_what_was_kept_and_refuses_a_second_run(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create()
    kept = [trial(received=5e6), trial(received=6e6, verdict="spoilt")]
    for one in kept:
        folder.append(one)
    assert list(folder.trials()) == kept
    with pytest.raises(InputError, match="holds another run's trials"):
        folder.create()


def test_a_run_that_was_killed_in_a_line_loses_that_line_only(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append(trial(received=5e6))
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write('{"repeat": 1, "dev')
    assert len(list(folder.trials())) == 1


def test_a_bad_line_is_named(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append(trial(received=5e6))
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write('{"repeat": "x"}\n')
    with pytest.raises(InputError, match=r"trials.jsonl:2: repeat: .*integer"):
        list(folder.trials())
