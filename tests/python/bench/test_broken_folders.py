# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Folders that are no runs, or not whole ones: one clear line. And what is whole is JSON."""

import csv
import io
import json
import shutil
from dataclasses import replace

import pytest
import yaml

from convoy.cli.main import main
from convoy.errors import InputError
from convoy.report import export
from convoy.report.html import html
from convoy.report.run_data import read
from convoy.report.run_document import document as document_of
from convoy.results.folder import RunFolder
from convoy.run import session


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A run of a response curve, one round."""
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "run")
    plan = session.wanted(["baseline"], ["dummy"], quick=True, repeats=1)
    folder.create(plan)
    session.execute(folder, plan, lambda step: None)
    return folder.path


def edited(name, change):
    def edit(folder):
        path = folder / name
        path.write_bytes(change(path.read_bytes()))

    return edit


def replaced(name, old, new):
    def change(data):
        assert old.encode() in data
        return data.replace(old.encode(), new.encode())

    return edited(name, change)


def document(name, **changes):
    """Change fields of plan.yaml or host.json; None: leave them out."""

    def change(data):
        result = yaml.safe_load(data) | changes
        result = {key: value for key, value in result.items() if value is not None}
        return (yaml.safe_dump if name.endswith("yaml") else json.dumps)(result).encode()

    return edited(name, change)


def gone(name):
    return lambda folder: (folder / name).unlink()


def line(name, **values):
    values = {"scenario": "baseline", "command": [], **values}
    return lambda folder: (folder / name).write_text(json.dumps(values) + "\n")


def memory(what, rows):
    result = {"results": rows}
    return line("memory.jsonl", schema="convoy.bench.memory/2", what=what, result=result)


def simulated(tables):
    result = {"tables": tables}
    return line("simulated.jsonl", schema="convoy.bench.simulated/1", what="x", result=result)


@pytest.mark.parametrize(
    ("what", "edit", "words"),
    [
        ("no plan", gone("plan.yaml"), "plan.yaml: No such file or directory; is this a run's"),
        ("no host", gone("host.json"), "host.json: No such file or directory; is this a run's"),
        ("no trials", gone("trials.jsonl"), "trials.jsonl: No such file or directory; is this"),
        ("noise", edited("trials.jsonl", lambda _: b"\xc5\x00\n" * 9), "trials.jsonl:1: no JSON"),
        ("noise for a plan", edited("plan.yaml", lambda _: b"\xc5\x00\n" * 9), "plan.yaml: "),
        ("half a host", edited("host.json", lambda data: data[:99]), "host.json: "),
        ("a list for a host", edited("host.json", lambda _: b"[]"), "host.json: list, not a"),
        ("a foreign host", document("host.json", cpu=[1]), "host.json: cpu: must be a valid str"),
        ("a time", document("host.json", started="noon"), "host.json: started: 'noon': Invalid"),
        ("no zone", document("host.json", started="2026-01-01"), "a time without its zone"),
        (
            "an empty plan",
            edited("plan.yaml", lambda _: b"schema: convoy.bench.plan/2\n"),
            "plan.yaml: quick: Field required; is this a run of this version?",
        ),
        (
            "another version's plan",
            replaced("plan.yaml", "plan/2", "plan/9"),
            "plan.yaml: schema: 'convoy.bench.plan/9': this version reads convoy.bench.plan/2",
        ),
        (
            "an old plan, with keys that have other names now",
            document(
                "plan.yaml", schema="convoy.bench.plan/1", scenarios={"x": {"no-such-key": 1}}
            ),
            "plan.yaml: schema: 'convoy.bench.plan/1': this version reads convoy.bench.plan/2; "
            "read it with the one that wrote it",
        ),
        (
            "a schema without an end",
            document("plan.yaml", schema="\x1b" * 9 + "x" * 999),
            "x': this version reads convoy.bench.plan/2",
        ),
        (
            "another version's host",
            document("host.json", schema="convoy.host/1"),
            "host.json: schema: 'convoy.host/1': this version reads convoy.host/2; read it with",
        ),
        (
            "another version's trials",
            replaced("trials.jsonl", "trial/6", "trial/5"),
            "trials.jsonl:1: schema: 'convoy.bench.trial/5': this version reads convoy.bench.trial",
        ),
        (
            "another version's searches",
            replaced("points.jsonl", "point/3", "point/9"),
            "points.jsonl:1: schema: 'convoy.bench.point/9': this version reads",
        ),
        (
            "a column less",
            replaced("trials.jsonl", '"duration_s":', '"duration":'),
            "trials.jsonl:1: duration_s: Field required; this version reads convoy.bench.trial/6",
        ),
        (
            "a figure without its numbers",
            memory("vring", [{"row": "coalesce", "cycles_per_packet": {"median": 1}}]),
            "memory.jsonl:1: result.results: cycles_per_packet: must have median, min",
        ),
        (
            "a row without its figure",
            memory("next-hop", [{"sc_ids": 1}]),
            "memory.jsonl:1: result.results: a row of next-hop has no same_key, all_",
        ),
        (
            "rows that are none",
            memory("vring", [7]),
            "memory.jsonl:1: result.results: must be a list of mappings",
        ),
        (
            "links without numbers",
            simulated([{"topology": "t", "links": [{"link": "A-1", "mean_bytes": ["a"]}]}]),
            "simulated.jsonl:1: result.tables: each has a topology and links",
        ),
        (
            "a line written over",
            edited("trials.jsonl", lambda data: data.replace(b"\n{", b"\n#", 1)),
            "trials.jsonl:2: no JSON: was the file written to by something else?",
        ),
    ],
)
def test_what_is_no_whole_run_is_refused_in_one_line(tmp_path, kept, what, edit, words):
    folder = tmp_path / "run"
    shutil.copytree(kept, folder)
    edit(folder)
    with pytest.raises(InputError) as refused:
        read([folder])
    assert words in str(refused.value), what
    assert str(refused.value).count("\n") == 0
    assert str(folder) in str(refused.value)
    assert len(str(refused.value)) < len(str(folder)) + 200, what


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"repeats": "many"}, "repeats: 'many': must be a valid integer"),
        ({"repeats": 0}, "repeats: 0: must be greater than or equal to 1"),
        ({"quick": None}, "quick: Field required"),
        ({"search": "fast"}, "search: 'fast': must be 'smoke', 'quick', 'standard' or 'full'"),
        ({"goals": ["best"]}, "goal 'best': there is none called so"),
        (
            {"scenarios": {"x": {"title": "x", "sises": [64]}}},
            "scenarios.x.sises: unknown key",
        ),
        (
            {"schema": "convoy.bench.plan/9"},
            "schema: 'convoy.bench.plan/9': this version reads convoy.bench.plan/2",
        ),
    ],
)
def test_a_plan_that_cannot_be_gone_on_with_is_refused(tmp_path, kept, changes, words):
    folder = tmp_path / "run"
    shutil.copytree(kept, folder)
    document("plan.yaml", **changes)(folder)
    before = (folder / "trials.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"plan\.yaml|goal") as refused:
        session.read_plan(RunFolder(folder))
    assert words in str(refused.value)
    assert (folder / "trials.jsonl").read_bytes() == before


def test_what_an_older_run_does_not_say_is_unknown(tmp_path, kept):
    folder = tmp_path / "run"
    shutil.copytree(kept, folder)
    (folder / "host.json").write_text("{}")
    page = html(document_of(read([folder])))
    assert "unknown processor" in page
    assert "start not recorded" in page


def test_a_whole_run_is_json_and_csv(kept):
    run = read([kept])
    # Strict JSON has no NaN.
    result = json.loads(json.dumps(export.document(run), allow_nan=False))
    assert [row["setup"] for row in result["rows"]] == [row.setup for row in run.rows]
    assert export.csv_text(run).count("\n") == len(run.rows) + 1


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_a_csv_cell_is_never_a_formula(kept, begin):
    """Names come from folders that somebody else may have written (OWASP: CSV injection)."""
    run = read([kept])
    rows = tuple(replace(row, setup=f'{begin}HYPERLINK("http://x")', trials=-1) for row in run.rows)
    (line, *_) = csv.DictReader(io.StringIO(export.csv_text(replace(run, rows=rows))))
    assert line["setup"] == f'\'{begin}HYPERLINK("http://x")'
    assert line["trials"] == "-1"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("report", "{kept}", "{kept}"), "given twice; give each run's folder once"),
        (("report", "{kept}", "-o", "/proc/none.html"), "--output: '/proc/none.html': No such"),
        (("report", "{kept}", "-o", "/dev/null/x.csv"), "--output: '/dev/null/x.csv': File exists"),
        (("bench", "run", "baseline", "--devices", ""), "--devices: '': give names with commas"),
        (("bench", "run", "baseline", "--goal", "pdr,"), "--goal: 'pdr,': give names with commas"),
        (("bench", "run", "{empty}"), "x.yaml:1: empty; begin with title: (see scenarios/)"),
        (
            ("bench", "run", "{sizes}"),
            "y.yaml:6: sizes[0]: 32: must be 64 to 1518 (bytes with FCS), imix, "
            "facebook-like or {capture: FILE}",
        ),
        (("bench", "resume", "{kept}/logs"), "logs/plan.yaml: No such file or directory"),
    ],
)
def test_commands_say_so_in_one_line(tmp_path, capsys, monkeypatch, kept, arguments, words):
    empty, sizes = tmp_path / "x.yaml", tmp_path / "y.yaml"
    empty.write_text("# nothing\n")
    sizes.write_text(
        "title: x\nfrom: me\nasks: what?\ndevices: [dummy]\nsetups: {a: {functions: [router]}}\n"
        "sizes: [32]\n"
    )
    words_of = [word.format(kept=kept, empty=empty, sizes=sizes) for word in arguments]
    monkeypatch.setattr("sys.argv", ["convoy", *words_of])
    with pytest.raises(SystemExit) as ended:
        main()
    output = capsys.readouterr().err
    assert ended.value.code == 2, output
    assert words in output
    assert output.count("\n") == 1
