# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Cores over a day: profiles that are read and refused, and sums that are known."""

from types import SimpleNamespace

import pytest

from advise.test_check import MODEL, TSC_HZ, WEB, convoy
from advise.test_fit import true_cycles
from convoy.advise import expected
from convoy.advise.day import over, read_day
from convoy.advise.parts import Chain
from convoy.advise.predict import plans
from convoy.advise.sleep import Sleep, sleep_of
from convoy.advise.traffic import Traffic, parse_size
from convoy.errors import InputError

CSV = "time,mpps\n# night\n00:00,0\n\n06:30, 20\n12:00,50\n"
YAML = '"00:00": 0\n06:30: 20\n12:00: 50\n'


@pytest.mark.parametrize(("name", "text"), [("a.csv", CSV), ("a.yaml", YAML), ("a.yml", YAML)])
def test_a_day_is_read(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    result = [(one.begin, one.hours, one.rate_pps) for one in read_day(path)]
    assert result == [("00:00", 6.5, 0.0), ("06:30", 5.5, 20e6), ("12:00", 12.0, 50e6)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a.csv: has no rates"),
        ("00:00,0\n", "a.csv: all rates are 0"),
        ("01:00,1\n", "a.csv:1: '01:00': a day begins at 00:00"),
        ("00:00,1\n24:00,1\n", "a.csv:2: '24:00': no time of a day"),
        ("00:00,1\n\n00:00,2\n", "a.csv:3: '00:00': not after the time before it"),
        ("00:00,fast\n", "a.csv:1: 'fast': no rate"),
        ("00:00,nan\n", "a.csv:1: 'nan': must be 0 to 1e+06 Mpps"),
        ("00:00,-1\n", "a.csv:1: '-1': must be 0 to"),
        ("00:00\n", "a.csv:1: '00:00': has 1 values, not 2"),
        ("00:00,1,2\n", "has 3 values, not 2"),
        ('00:00,"1\n', "a.csv: unexpected end of data"),
        ("\udcff", "a.csv: not text"),
        ("00:00,1\n" + "#" * (1 << 20), "a.csv: longer than 1 MiB"),
    ],
)
def test_a_day_that_cannot_be_read_is_refused_with_line_and_fix(tmp_path, text, words):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as refused:
        read_day(path)
    assert words in str(refused.value)
    assert str(refused.value).endswith("write a time and Mpps on each line, as 06:30,2.5")


@pytest.mark.parametrize("text", ["- 1\n", "a: 1\n", "06:30: [1]\n00:00: 2\n", "{"])
def test_yaml_that_is_no_day_is_refused(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"a\.yaml"):
        read_day(path)


def test_cores_follow_the_load(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    each = TSC_HZ / true_cycles(Chain(WEB), 64)  # of which 80 % are used
    assert each == pytest.approx(24.6e6, rel=0.01)
    ways, _ = plans([MODEL], WEB, Traffic(50e6, "64"), None)
    day = over(ways, read_day(path))
    assert [step.cores for step in day.steps] == [1, 2, 3]
    assert [step.load for step in day.steps] == pytest.approx([0, 20e6 / each / 2, 50e6 / each / 3])
    assert day.core_hours == pytest.approx(6.5 + 2 * 5.5 + 3 * 12)
    assert day.peak_hours == pytest.approx(72)
    assert day.changes == 3  # midnight, too
    asleep = 6.5 * 0.05 + 20e6 / each * 5.5 + 50e6 / each * 12
    assert day.sleeping_hours == pytest.approx(asleep)  # the least
    assert "or more, by far" in "\n".join(expected.day_lines(day))
    text = "\n".join(expected.day_lines(day))
    assert "at least 3 cores, 72.0 core-hours" in text
    assert "53.5 core-hours, 26% less; 3 changes a day" in text
    assert expected.day_document(day)["cores_measured"] is False


def test_workers_that_sleep_take_what_was_measured(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("00:00,0\n06:00,0.001\n12:00,0.1\n18:00,20\n")
    sleep = Sleep(((1e3, 0.3), (1e4, 0.8), (1e6, 0.9)))
    ways, _ = plans([MODEL], WEB, Traffic(20e6, "64"), None)
    day = over(ways, read_day(path), sleep)
    peak = day.steps[-1]
    assert [step.asleep for step in day.steps] == pytest.approx([0.05, 0.3, 0.85, 0.9])
    assert peak.load < 0.9  # of one that polls; 10 Mpps each are beyond what was measured
    assert day.sleeping_hours == pytest.approx(6 * (0.05 + 0.3 + 0.85 + 0.9 * peak.cores))
    assert "as such a worker was measured" in "\n".join(expected.day_lines(day))
    assert expected.day_document(day)["sleeping_measured"] is True


@pytest.mark.parametrize(
    ("rate_pps", "load", "share"),
    [(0, 0, 0.05), (500, 0, 0.175), (1e3, 0, 0.3), (1e3, 0.4, 0.4), (1e9, 0, 0.9)],
)
def test_a_share_lies_between_what_was_measured(rate_pps, load, share):
    assert Sleep(((1e3, 0.3), (1e4, 0.9))).share(rate_pps, load) == pytest.approx(share)


def row(setup_options, cost_us, device="convoy", cores=1):
    delays = [SimpleNamespace(rate_pps=rate, cpu_us_per_packet=us) for rate, us in cost_us.items()]
    under = SimpleNamespace(options=tuple(setup_options.items()), cores=cores)
    return SimpleNamespace(device=device, contends=True, conditions=under, delays=delays)


def test_only_one_worker_that_sleeps_says_what_it_takes():
    asleep = {"idle": "sleep"}
    rows = [
        row(asleep, {1e4: 80, 1e3: 200, 1e6: None, 0: 1}),
        row(asleep, {1e3: 300, 1e4: 70}),
        row({"idle": "poll"}, {1e2: 1e4}),
        row(asleep, {1e5: 10}, cores=2),
        row({}, {1e5: 10}, device="linux"),
    ]
    assert sleep_of(rows).points == ((1e3, 0.3), (1e4, 0.8))


def test_the_best_way_of_a_day_may_be_any_for_the_peak(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    ways, _ = plans([MODEL], WEB + WEB, Traffic(50e6, "64"), None)
    best, last_first = (over(some, read_day(path)) for some in (ways, ways[::-1]))
    assert len(ways) > 5
    assert best == last_first


def test_with_a_day_the_traffic_is_a_size():
    assert parse_size("64 in convoys of 22", 5e6) == Traffic(5e6, "64", 22)
    with pytest.raises(InputError, match="the rates are the day's"):
        parse_size("2 Mpps 64", 5e6)


def test_a_day_that_is_not_there_is_one_clear_line(tmp_path):
    done = convoy("chain.yaml", "--traffic", "64", "--day", tmp_path / "no.csv", "--results", "r")
    assert done.returncode == 2
    assert "no.csv: No such file or directory" in done.stderr
    assert done.stderr.count("\n") == 1
