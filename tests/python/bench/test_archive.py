# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Runs in one file: what is read from it is what the folders say, and nothing else gets out."""

import io
import re
import tarfile
from pathlib import Path

import pytest

from convoy.errors import InputError
from convoy.report import export
from convoy.report.run_data import read
from convoy.results.archive import pack, unpacked
from convoy.results.folder import RunFolder
from convoy.run import session

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two runs of a response curve, one round each."""
    place = tmp_path_factory.mktemp("runs")
    result = [RunFolder(place / name) for name in ("one", "two")]
    for folder in result:
        plan = session.wanted(["baseline"], ["dummy"], quick=True, repeats=1)
        folder.create(plan)
        session.execute(folder, plan, lambda step: None)
    return [folder.path for folder in result]


def test_an_archive_is_read_as_its_folders(folders, tmp_path):
    pack(folders, tmp_path / "runs.tar.xz", ROOT)
    archived = read([tmp_path / "runs.tar.xz"])
    assert export.document(archived) == export.document(read(folders))
    assert archived.folders == tuple(tmp_path / "runs.tar.xz" / name for name in ("one", "two"))


def test_equal_results_are_equal_bytes(folders, tmp_path):
    for name, order in (("a", folders), ("b", folders[::-1])):
        pack(order, tmp_path / name, ROOT)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_without_histograms_the_rest_is_as_it_was(folders, tmp_path):
    pack(folders, tmp_path / "runs.tar.xz", ROOT, histograms=False)
    with unpacked([tmp_path / "runs.tar.xz"]) as places:
        less = [(place / "trials.jsonl").read_text() for place in places.values()]
    whole = [(folder / "trials.jsonl").read_text() for folder in folders]
    assert all('"histogram_ns":[[' in text for text in whole)
    assert [re.sub(r'("histogram_ns":)\[\[.*?\]\]', r"\1[]", text) for text in whole] == less


def archive(path, *members, compress="xz"):
    """Write one of (name, content) or TarInfo."""
    with tarfile.open(path, f"w:{compress}") as file:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                file.addfile(member)
            else:
                entry = tarfile.TarInfo(member[0])
                entry.size = len(member[1])
                file.addfile(entry, io.BytesIO(member[1]))
    return path


def link(name, to, kind):
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, to
    return entry


@pytest.mark.parametrize(
    "member",
    [
        ("../plan.yaml", b""),
        ("/tmp/plan.yaml", b""),
        ("../../plan.yaml", b""),
        ("one/../plan.yaml", b""),
        ("../plan.yaml\n", b""),
        ("plan.yaml", b""),
        ("one/logs/x", b""),
        ("one/report.html", b""),
        link("one/plan.yaml", "/etc/passwd", tarfile.SYMTYPE),
        link("one/plan.yaml", "/etc/passwd", tarfile.LNKTYPE),
        link("one/plan.yaml", "", tarfile.FIFOTYPE),
        link("one", "", tarfile.DIRTYPE),
    ],
    # Not the addresses of objects: workers must find the same tests.
    ids=lambda member: str(member[0]) if isinstance(member, tuple) else f"type {member.type!r}",
)
def test_only_files_of_runs_are_taken(tmp_path, member):
    path = archive(tmp_path / "x.tar.xz", ("one/host.json", b"{}"), member)
    with pytest.raises(InputError, match="only files of runs may be in it"), unpacked([path]):
        pass
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_archive(tmp_path, folders):
    (tmp_path / "text").write_text("no archive")
    pack(folders, tmp_path / "whole", ROOT)
    (tmp_path / "cut").write_bytes((tmp_path / "whole").read_bytes()[:-2000])
    archive(tmp_path / "empty")
    for name, why in (("text", "give a run's folder"), ("cut", "."), ("empty", "no run is in it")):
        with pytest.raises(InputError, match=why):
            read([tmp_path / name])


def test_an_archive_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr("convoy.results.archive.MOST_BYTES", 1000)
    path = archive(tmp_path / "x", ("a/plan.yaml", bytes(600)), ("b/plan.yaml", bytes(600)))
    with pytest.raises(InputError, match="unpack it yourself"), unpacked([path]):
        pass


def test_runs_that_cannot_be_packed(folders, tmp_path):
    (tmp_path / "one").mkdir()
    for wrong, why in (
        ([folders[0], folders[0]], "two runs are called 'one'"),
        ([tmp_path], "plan.yaml: No such file"),
        ([tmp_path / "nowhere"], "plan.yaml: No such file"),
    ):
        with pytest.raises(InputError, match=why):
            pack(wrong, tmp_path / "out", ROOT)
    assert not (tmp_path / "out").exists()
