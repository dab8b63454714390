# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Files that results go to: what cannot be written is said before the work begins."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from convoy.base.files import will_write
from convoy.cli import bench_profile, dictionary, sim_run, sim_saved, sim_sweep
from convoy.cli.main import app
from convoy.errors import InputError


def test_folders_on_the_way_are_made_and_nothing_is_left(tmp_path: Path):
    will_write("-o", tmp_path / "a" / "b" / "c.html")
    assert [str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")] == ["a", "a/b"]
    (tmp_path / "there").write_text("as it was")
    will_write("-o", tmp_path / "there")
    assert (tmp_path / "there").read_text() == "as it was"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/proc/report.html", "No such file or directory"),
        ("/proc/no/report.html", "No such file or directory"),
        ("/dev/null/report.html", "File exists"),
        ("/usr", "is a folder"),
        ("/tmp/" + 256 * "x" + "/y", "File name too long"),
    ],
)
def test_what_cannot_be_written_is_named(path, why):
    with pytest.raises(InputError) as error:
        will_write("--report", Path(path))
    assert str(error.value) == f"--report: '{path}': {why}; give another file"


@pytest.mark.parametrize(
    ("words", "module", "work"),
    [
        ("sim run examples/sim/two-chains.yaml --report", sim_run, "open_topology"),
        ("sim saved --report", sim_saved.saved, "compare"),
        ("sim sweep paper-1 --out", sim_sweep.sweep, "points"),
        ("dictionary examples/packets.pcap -o", dictionary, "read_packets"),
        ("bench profile --out", bench_profile, "wanted"),
    ],
)
def test_it_is_said_before_the_work_begins(words, module, work, monkeypatch):
    def begins(*_: object, **__: object) -> None:
        pytest.fail("it works already")

    monkeypatch.setattr(module, work, begins)
    done = CliRunner().invoke(app, [*words.split(), "/proc/it"])
    assert isinstance(done.exception, InputError)
    assert "'/proc/it': No such file or directory; give another file" in str(done.exception)


def test_a_disk_that_fills_up_is_one_line_and_leaves_nothing(tmp_path: Path):
    to = tmp_path / "it.dict"
    command = [
        "bash", "-c", 'ulimit -f 0; exec "$@"', "bash", sys.executable, "-c",
        "from convoy.cli.main import main; main()", "dictionary", "examples/packets.pcap", "-o", to,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"convoy: {to}: File too large\n"
    assert list(tmp_path.iterdir()) == []
