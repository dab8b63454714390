# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy run with parts: what ends is started again, the rest goes on, the end leaves nothing."""

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from convoy.chain.load import load
from convoy.chain.split import split
from convoy.errors import ConvoyError
from convoy.host.machine import this_machine
from convoy.host.open_vswitch import presence
from convoy.host.process import Process, wait_for
from convoy.host.programs import find
from convoy.hybrid import guest, supervisor
from convoy.hybrid.published import folder_of
from dut.packets import tagged, tcp, udp

from .wires import wires

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(find("convoyd") is None, reason="convoyd is not built: make build"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes veth and namespaces"),
]
DEADLINE_S = 90.0
CONVOY = (sys.executable, "-c", "from convoy.cli.main import main; main()")
IN_SWITCH = "process" if presence()[1] else "switch"  # without one, the rest is still tested
FW = "switch" if IN_SWITCH == "switch" else "fw"  # the part that has it
TWO_CHAINS: dict[str, Any] = {
    "ports": {
        "inside": {"memif": "inside.sock", "mac": "02:00:00:00:0c:01"},
        "outside": {"memif": "outside.sock", "mac": "02:00:00:00:0c:02"},
    },
    "functions": {
        "fw": {
            "firewall": {"default": "allow", "rules": [{"deny": {"proto": "tcp", "dport": 23}}]},
            "place": IN_SWITCH,
        },
        "limit": {"ttl-limit": {"min": 3}, "place": "process"},
        "mac": {"l2fwd": {"mode": "rewrite"}},
    },
    "chains": {
        "cut": {"from": "inside", "to": "outside", "path": ["fw", "limit", "mac"]},
        "whole": {"match": {"vlan": 100}, "from": "inside", "to": "outside", "path": ["mac"]},
    },
    "memory": {"hugepages": "never", "mb": 512},
    "workers": {"idle": "sleep"},
}


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:  # sockets' paths must be short
        (Path(name) / "convoy").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        (Path(name) / "chain.yaml").write_text(yaml.safe_dump(TWO_CHAINS, sort_keys=False))
        yield Path(name) / "convoy"


@contextmanager
def started(folder: Path) -> Iterator[Process]:
    with Process([*CONVOY, "run", "--json", folder.parent / "chain.yaml"]) as process:
        process.stop_deadline_s = DEADLINE_S
        wait_for(
            lambda: "forwarding" in process.stderr.text() or not process.running(),
            DEADLINE_S,
            "the chain to forward",
        )
        assert process.running(), process.stderr.text()
        yield process


def published(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("split-*/parts.json")
    return dict(json.loads(file.read_text()))


def part(folder: Path, name: str) -> dict[str, Any]:
    return next(dict(each) for each in published(folder)["parts"] if each["name"] == name)


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def top(*words: str) -> str:
    ran = subprocess.run([*CONVOY, "top", *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_what_ends_is_started_again_and_the_rest_goes_on(folder: Path):
    cut, whole = [udp()], [tagged(udp())]
    with started(folder) as process, wires(folder) as wired:
        parts = [each["name"] for each in published(folder)["parts"]]
        assert parts == ["node", FW, "limit"]
        wired.until_it_forwards("inside", cut)
        for restarts in (1, 2):
            for name in parts[1:]:
                before = part(folder, name)
                os.kill(before["pid"], signal.SIGKILL)
                # Packets of the chain that is not cut pass all the time.
                assert len(wired.through("inside", whole * 5, whole)) == 5
                wait_for(
                    lambda n=name, r=restarts: (
                        (now := part(folder, n))["restarts"] == r and now["running"]
                    ),
                    DEADLINE_S,
                    f"{name} to run again",
                )
                assert part(folder, name)["pid"] != before["pid"]
                wired.until_it_forwards("inside", cut)
                # With its functions: what is denied still is.
                assert len(wired.through("inside", [udp(), tcp(dport=23), udp(ttl=2)], cut)) == 1
        assert f"{parts[1]}: ended (" in process.stderr.text()

        # The node itself: its ports come back.
        os.kill(part(folder, "node")["pid"], signal.SIGKILL)
        wait_for(lambda: part(folder, "node")["restarts"] == 1, DEADLINE_S, "the node to run again")
        wired.until_it_forwards("inside", cut)
        assert len(wired.through("inside", [udp(), tcp(dport=23)], cut)) == 1

        # One chain for who looks at it, with all that was counted in all lives.
        shown = json.loads(top(str(part(folder, "limit")["pid"]), "--json"))
        assert shown["counts"]["functions"].keys() == {"fw", "limit", "mac"}
        text = top(str(process.pid))
        page = subprocess.run(
            [*CONVOY, "top", str(process.pid), "--web"],
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        assert page.returncode == 2
        assert f"process {process.pid} runs a chain in parts, and the page shows" in page.stderr
        assert str(part(folder, "node")["pid"]) in page.stderr
        assert all(word in text for word in ("fw", "limit", "mac", "signal 9", "lost between"))

        pids = [each["pid"] for each in published(folder)["parts"]]
        process.signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0, process.stderr.text()
        ended = json.loads(process.stdout.text())
        assert ended["ended_by"] == "signal"
        assert ended["counts"]["accounting"]["conserved"]
        drops = ended["counts"]["functions"]["fw"]["drops"]
        assert sum(drops.values()) >= 1
        assert ended["counts"]["functions"]["limit"]["drops"]["ttl_below_min"] >= 1
        assert not any(map(is_there, pids))
        assert not list(folder.glob("split-*"))


def test_parts_of_one_pool_are_started_again_alone(folder: Path):
    functions = {**TWO_CHAINS["functions"]}
    for name in ("fw", "limit"):
        functions[name] = {**functions[name], "place": "shared"}
    document = {**TWO_CHAINS, "functions": functions}
    (folder.parent / "chain.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    cut, whole = [udp()], [tagged(udp())]
    with started(folder) as process, wires(folder) as wired:
        pids = {name: part(folder, name)["pid"] for name in ("node", "fw", "limit")}
        wired.until_it_forwards("inside", cut)
        # The node, too: the others have its memory mapped and meet the next one.
        for name in ("fw", "limit", "fw", "node", "limit"):
            restarts = part(folder, name)["restarts"]
            os.kill(part(folder, name)["pid"], signal.SIGKILL)
            if name != "node":
                assert len(wired.through("inside", whole * 5, whole)) == 5
            wait_for(
                lambda n=name, r=restarts: part(folder, n)["restarts"] == r + 1,
                DEADLINE_S,
                f"{name} to run again",
            )
            wired.until_it_forwards("inside", cut)
            assert len(wired.through("inside", [udp(), tcp(dport=23), udp(ttl=2)], cut)) == 1
        restarts = {name: part(folder, name)["restarts"] for name in pids}
        assert restarts == {"node": 1, "fw": 2, "limit": 2}, process.stderr.text()
        process.signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0, process.stderr.text()
        assert json.loads(process.stdout.text())["counts"]["accounting"]["conserved"]
        assert not list(folder.glob("split-*"))


def test_a_supervisor_that_is_killed_takes_its_parts_along(folder: Path):
    with started(folder) as process:
        pids = [each["pid"] for each in published(folder)["parts"]]
        process.signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
        wait_for(lambda: not any(map(is_there, pids)), DEADLINE_S, "the parts to end")
        (left,) = folder.glob("split-*")
    with started(folder):
        assert not left.exists()


def test_one_that_cannot_start_leaves_nothing(folder: Path):
    (folder / "inside.sock").mkdir()  # where the node's socket should be
    ran = subprocess.run(
        [*CONVOY, "run", folder.parent / "chain.yaml"], capture_output=True, text=True, check=False
    )
    assert ran.returncode in (1, 2)
    assert "inside.sock" in ran.stderr
    assert not list(folder.glob("split-*"))


def containers() -> str:
    listed = ["podman", "ps", "--all", "--format={{.Names}}"]
    return subprocess.run(listed, capture_output=True, text=True, check=True).stdout


def test_a_function_in_a_container(image: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CONVOY_IMAGE", image)
    file = folder.parent / "chain.yaml"
    functions = {**TWO_CHAINS["functions"]}
    functions["fw"] = {**functions["fw"], "place": "inline"}
    functions["limit"] = {**functions["limit"], "place": "container"}
    file.write_text(yaml.safe_dump({**TWO_CHAINS, "functions": functions}, sort_keys=False))
    with started(folder) as process, wires(folder) as wired:
        wired.until_it_forwards("inside", [udp()])
        assert len(wired.through("inside", [udp(), tcp(dport=23), udp(ttl=2)], [udp()])) == 1
        os.kill(part(folder, "limit")["pid"], signal.SIGKILL)
        wait_for(lambda: part(folder, "limit")["restarts"] == 1, DEADLINE_S, "it to run again")
        wired.until_it_forwards("inside", [udp()])
        # What a killed one counted last is not known.
        assert len(wired.through("inside", [udp(), udp(ttl=2)], [udp()])) == 1
        process.signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0, process.stderr.text()
        ended = json.loads(process.stdout.text())
        assert ended["counts"]["functions"]["limit"]["drops"]["ttl_below_min"] >= 1
    assert f"convoy-{process.pid}-limit" not in containers()

    # Containers do not end with who started them: the next one removes them.
    with started(folder) as process:
        process.signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
    with started(folder):
        assert f"convoy-{process.pid}-limit" not in containers()


@pytest.mark.emulated
@pytest.mark.skipif(guest.missing() != "", reason=guest.missing())
def test_a_function_in_a_virtual_machine(folder: Path):
    file = folder.parent / "chain.yaml"
    (folder.parent / "rules.txt").write_text("@0.0.0.0/0 0.0.0.0/0 0 : 65535 23 : 23 0x06/0xFF\n")
    functions = {**TWO_CHAINS["functions"]}
    rules = {"default": "allow", "rules-file": "rules.txt", "rules-file-action": "deny"}
    functions["fw"] = {"firewall": rules, "place": "vm"}
    file.write_text(yaml.safe_dump({**TWO_CHAINS, "functions": functions}, sort_keys=False))
    sent = [udp(), tcp(dport=23), udp(ttl=2)]
    with started(folder) as process, wires(folder) as wired:
        wired.until_it_forwards("inside", [udp()])
        assert len(wired.through("inside", sent, [udp()])) == 1

        before = part(folder, "fw")
        os.kill(before["pid"], signal.SIGKILL)
        # Others are looked after while it boots.
        os.kill(part(folder, "limit")["pid"], signal.SIGKILL)
        wait_for(lambda: part(folder, "limit")["restarts"] == 1, DEADLINE_S, "limit to run again")
        wait_for(lambda: part(folder, "fw")["restarts"] == 1, DEADLINE_S, "fw to run again")
        wired.until_it_forwards("inside", [udp()])
        assert len(wired.through("inside", sent, [udp()])) == 1

        # The guest stays when the node goes, and meets the next one.
        os.kill(part(folder, "node")["pid"], signal.SIGKILL)
        wait_for(lambda: part(folder, "node")["restarts"] == 1, DEADLINE_S, "the node to run again")
        wired.until_it_forwards("inside", [udp()])
        assert len(wired.through("inside", sent, [udp()])) == 1
        assert part(folder, "fw")["restarts"] == 1, process.stderr.text()

        shown = json.loads(top(str(process.pid), "--json"))
        assert shown["counts"]["functions"]["fw"]["drops"]["denied"] >= 1
        pids = [each["pid"] for each in published(folder)["parts"]]
        process.signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0, process.stderr.text()
        ended = json.loads(process.stdout.text())
        # What it counted last before it was killed may be lost.
        assert ended["counts"]["functions"]["fw"]["drops"]["denied"] in (2, 3)
        assert "reboot" not in process.stderr.text()
        assert not any(map(is_there, pids))
        assert not list(folder.glob("split-*"))


def test_an_image_that_is_not_there_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CONVOY_IMAGE", "localhost/no-such-image")
    file = folder.parent / "chain.yaml"
    file.write_text(file.read_text().replace("place: process", "place: container"))
    ran = subprocess.run([*CONVOY, "run", file], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "place: container: " in ran.stderr
    assert "not installed: podman" in ran.stderr or "no image localhost/no-such" in ran.stderr


def test_what_is_to_be_removed_is_known_before_parts_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[str] = []

    def start(*_: Any) -> None:
        seen.extend(each["name"] for each in published(folder)["parts"])
        raise ConvoyError("killed here")

    monkeypatch.setattr(supervisor, "NodePart", start)
    monkeypatch.setattr(supervisor, "SwitchPart", start)
    machine = this_machine()
    parts = split(load(folder.parent / "chain.yaml", machine), machine, folder_of(os.getpid()))
    with pytest.raises(ConvoyError, match="killed here"):
        supervisor.Supervisor(parts, "test").__enter__()
    assert set(seen) >= {"node", "limit"}
    assert not list(folder.glob("split-*"))


def test_a_full_folder_ends_no_chain(folder: Path, monkeypatch: pytest.MonkeyPatch):
    machine = this_machine()
    lines: list[str] = []
    with supervisor.Supervisor(
        split(load(folder.parent / "chain.yaml", machine), machine, folder_of(os.getpid())),
        "test",
        lambda part, line: lines.append(f"{part}: {line}"),
    ) as running:

        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        def tried() -> bool:
            running.step()
            return any("on device; starts again in" in line for line in lines)

        def again() -> bool:
            running.step()
            return bool(part(folder, "limit")["running"])

        with monkeypatch.context() as patched:
            patched.setattr(supervisor, "write_whole", full)
            patched.setattr(supervisor, "NodePart", full)
            os.kill(part(folder, "limit")["pid"], signal.SIGKILL)
            wait_for(tried, DEADLINE_S, "a try to start it")
        assert sum("does not see this chain" in line for line in lines) == 1
        wait_for(again, DEADLINE_S, "it to run again")


@pytest.mark.parametrize("name", ["limit", FW])
def test_one_that_is_silent_is_started_again(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(supervisor, "SILENT_S", 2.0)
    machine = this_machine()
    loaded = load(folder.parent / "chain.yaml", machine)
    lines: list[str] = []
    with supervisor.Supervisor(
        split(loaded, machine, folder_of(os.getpid())),
        "test",
        lambda part, line: lines.append(f"{part}: {line}"),
    ) as running:
        silent = part(folder, name)["pid"]
        os.kill(silent, signal.SIGSTOP)

        def again() -> bool:
            running.step()
            now = part(folder, name)
            return bool(now["running"] and now["restarts"] == 1)

        wait_for(again, DEADLINE_S, "it to run again")
        assert f"{name}: gives no answer for 2 s" in lines
        assert not is_there(silent)
