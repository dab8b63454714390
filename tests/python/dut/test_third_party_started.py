# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""How FastClick, VPP and BESS are started, configured and queried: with stubs that only talk."""

import sys
from pathlib import Path

import pytest

from convoy.dut import bess, functions
from convoy.dut.base import PortAt, Running, Setup
from convoy.dut.devices import device
from convoy.errors import ConvoyError

CLICK = """\
import socket, sys
words = sys.argv
with socket.socket(socket.AF_UNIX) as control:
    control.bind(words[words.index("-u") + 1])
    control.listen()
    answers = {b"in.count": b"7", b"out.count": b"5", b"out.dropped": b"2"}
    while True:
        line, _ = control.accept()
        with line, line.makefile("rwb") as stream:
            stream.write(b"Click::ControlSocket/1.3\\r\\n")
            stream.flush()
            name = stream.readline().split()[1]
            if name in answers:
                value = answers[name]
                stream.write(b"200-Read\\r\\n200 OK\\r\\nDATA %d\\r\\n" % len(value) + value)
            else:
                stream.write(b"511 No handler named that\\r\\n")
"""
VPP = """\
import re, sys, time
with open(sys.argv[2]) as file:
    ctl = re.search(r"cli-listen (\\S+)", file.read())[1]
open(ctl, "w").close()
time.sleep(60)
"""
VPPCTL = """\
import os, sys
words = sys.argv[3:]
if words == ["show version"]:
    print("vpp v26.06")
elif words[0] == "exec":
    print(open(words[1]).read() if os.environ.get("HEALTHY") else "exec: unknown input `abacus'")
elif words == ["show", "runtime"]:
    here = os.path.dirname(__file__)
    if not os.path.exists(here + "/asked"):  # for the first time: no packets yet
        open(here + "/asked", "w").close()
        print("vhost-user-input  polling  900  0  0  5.0e1  0.00")
        sys.exit()
    print("ethernet-input     active  10  320  0  5.0e1  32.00")
    print("vhost-user-input  polling  90  320  0  2.0e2   3.56")
    print("nobody            polling  90    0  0  9.9e9   0.00")
elif words == ["show", "plugins"]:
    print("Plugin path is: /nowhere:/lib")
"""
# Dies as often as the file `deaths` has letters.
BESSD = """\
import os, sys, time
deaths = os.path.join(os.path.dirname(__file__), "deaths")
with open(deaths) as file:
    left = file.read()
with open(deaths, "w") as file:
    file.write(left[1:])
if left:
    sys.exit("Check failed: worker.cc")
open(sys.argv[sys.argv.index("-grpc_url") + 1].removeprefix("unix:"), "w").close()
time.sleep(60)
"""
PYBESS = """\
class BESS:
    def __getattr__(self, name):
        return lambda *words, **more: print(name, *words)
"""


def stand_in(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)


def start(name: str, tmp_path: Path) -> Running:
    left, right = (PortAt("vhost-user", str(tmp_path / side)) for side in ("left", "right"))
    setup = Setup((functions.router(2),), left, right, (0,), tmp_path)
    assert device(name).cannot(setup) == ""
    return device(name).start(setup)


def test_click_is_asked_by_its_handlers(tmp_path, monkeypatch):
    stand_in(tmp_path / "click", CLICK)
    monkeypatch.setenv("CONVOY_CLICK", str(tmp_path))
    with start("fastclick", tmp_path) as running:
        running.ready(30)
        assert running.counters() == {"in.count": 7, "out.count": 5, "out.dropped": 2}
        assert running.cost() is None  # this one does not count cycles
        assert "in -> f0;" in running.command_lines[-1]
    assert not running.alive()
    assert not (tmp_path / "click.ctl").exists()


def test_click_that_ends_is_quoted(tmp_path, monkeypatch):
    stand_in(tmp_path / "click", "import sys\nsys.exit('chain.click:3: too many arguments')")
    monkeypatch.setenv("CONVOY_CLICK", str(tmp_path))
    with (
        start("fastclick", tmp_path) as running,
        pytest.raises(ConvoyError, match="too many arguments"),
    ):
        running.ready(30)


def test_vpp_is_told_when_it_answers_and_its_cycles_add_up(tmp_path, monkeypatch):
    stand_in(tmp_path / "vpp", VPP)
    stand_in(tmp_path / "vppctl", VPPCTL)
    monkeypatch.setenv("CONVOY_VPP", str(tmp_path))
    monkeypatch.setenv("HEALTHY", "yes")
    with start("vpp", tmp_path) as running:
        running.ready(30)
        for times in (0, 1, 2):  # what is printed was cleared in between
            cost = running.cost()
            assert cost is not None
            assert (cost.busy_cycles, cost.packets) == (times * (320 * 250 - 80 * 50), times * 320)
        assert any("ip route add" in line for line in running.command_lines)


def test_a_command_that_vpp_refuses_is_shown(tmp_path, monkeypatch):
    stand_in(tmp_path / "vpp", VPP)
    stand_in(tmp_path / "vppctl", VPPCTL)
    monkeypatch.setenv("CONVOY_VPP", str(tmp_path))
    words = "vpp: exec: unknown input `abacus'; it found no acl_plugin.so, vhost_plugin.so in /nowh"
    with (
        start("vpp", tmp_path) as running,
        pytest.raises(ConvoyError, match=words),
    ):
        running.ready(30)


@pytest.fixture
def bess_tree(tmp_path, monkeypatch):
    stand_in(tmp_path / "core" / "bessd", BESSD)
    (tmp_path / "pybess" / "builtin_pb").mkdir(parents=True)
    (tmp_path / "pybess" / "bess.py").write_text(PYBESS)
    monkeypatch.setenv("CONVOY_BESS", str(tmp_path / "core"))
    monkeypatch.setattr(bess, "_python", lambda: Path(sys.executable))
    return tmp_path


def test_a_bessd_that_dies_is_started_again_and_that_is_said(bess_tree, tmp_path):
    (bess_tree / "core" / "deaths").write_text("xx")
    with start("bess", tmp_path) as running:
        running.ready(30)
        assert running.alive()
        assert running.notes == ("bessd died 2 times as it was started",)
    assert not running.alive()


def test_a_bessd_that_always_dies_is_quoted(bess_tree, tmp_path):
    (bess_tree / "core" / "deaths").write_text("x" * bess.STARTS)
    with (
        start("bess", tmp_path) as running,
        pytest.raises(ConvoyError, match="Check failed: worker"),
    ):
        running.ready(30)


def test_a_bessd_out_of_its_tree_is_not_enough(tmp_path, monkeypatch):
    stand_in(tmp_path / "bessd", BESSD)
    monkeypatch.setenv("CONVOY_BESS", str(tmp_path))
    assert "pybess" in device("bess").presence().missing


def test_what_bess_spent_on_nothing_is_no_cost_of_packets():
    polls = bess.Polls()
    assert polls.cost(1_000, 300_000, 64) is None  # nothing is known of calls that find nothing
    idle = polls.cost(2_000, 350_000, 64)
    assert idle is not None
    assert (idle.busy_cycles, idle.packets) == (0, 64)
    busy = polls.cost(3_100, 350_000 + 1_000 * 50 + 100 * 4_000, 64 + 3_200)
    assert busy is not None
    assert (busy.busy_cycles, busy.packets) == (100 * 4_000, 64 + 3_200)
