# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Containers by podman: how it is told, what is in one, who may have one, what is left of it."""

import os
import sys
from pathlib import Path

import pytest

from convoy.errors import InputError
from convoy.host import container
from convoy.host.command import run
from convoy.host.container import Container
from convoy.host.process import Process, ProcessError, wait_for
from convoy.host.programs import CHECKOUT

NOBODY = 65534


@pytest.fixture
def untried():
    """As at the start of the program, and afterwards again."""
    container._tried.cache_clear()
    yield
    container._tried.cache_clear()


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, untried):
    """A podman that does what a script says, and writes down how it was called."""

    def make(script: str) -> Path:
        for name, text in (
            ("podman", f'echo "$@" >> {tmp_path}/calls\n{script}'),
            ("crun", ""),
            ("runc", ""),
        ):
            program = tmp_path / name
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return tmp_path / "calls"

    return make


def test_what_podman_is_told(tmp_path):
    with Container([tmp_path, Path("/nowhere")], runtime="crun") as made:
        words = made.command("convoyd", "-", environment={"KEY": "value"})
        folder = Path(words[1].removeprefix("HOME="))
        assert folder.is_dir()
        assert words[-4:] == ("--rootfs", f"{folder}/root", "convoyd", "-")
        assert {
            "--runtime=crun", f"--root={folder}/store", "--network=none", "--cap-drop=all",
            "--read-only", "--volume=/usr:/usr:ro", f"--volume={tmp_path}:{tmp_path}",
            "--volume=/nowhere:/nowhere", "--env=KEY=value",
        } <= set(words)  # fmt: skip
        # What belongs to somebody else's group may not be asked for.
        assert (f"--cgroup-parent=/{folder.name}" in words) == (os.geteuid() == 0)
    assert not folder.exists()


def test_the_first_runtime_that_works_is_taken(podman):
    calls = podman('case "$*" in *=crun*run*) echo "crun: no" >&2; exit 126 ;; esac')
    assert container.working_runtime() == "runc"
    assert container.missing() == ""
    tried = [line for line in calls.read_text().splitlines() if " run " in line]
    assert [line.split()[0] for line in tried] == ["--runtime=crun", "--runtime=runc"]


def test_why_there_is_none_is_said(podman):
    podman("echo 'Error: no user namespaces' >&2; exit 125")
    assert container.missing() == "podman starts no container here: Error: no user namespaces"
    with pytest.raises(InputError, match="no user namespaces"):
        Container()


def test_without_podman_its_package_is_named(tmp_path, monkeypatch, untried):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not installed: podman (Debian: apt-get install podman runc" in container.missing()


def test_podmans_words_are_those_of_a_program_that_does_not_start(podman):
    podman("echo 'Error: not today' >&2; exit 125")
    with (
        Container(runtime="runc") as made,
        Process(made.command("true")) as process,
        pytest.raises(ProcessError, match="podman: Error: not today"),
    ):
        made.started(process)


def test_in_a_real_one(tmp_path):
    if container.missing():
        pytest.skip(container.missing())
    with Container([tmp_path]) as made:
        program = f"touch {tmp_path}/seen; grep -E 'Seccomp:|CapEff' /proc/self/status; exec cat"
        with Process(made.command("sh", "-c", program), takes_input=True) as process:
            pid = made.started(process)
            process.wait_line(lambda line: line.startswith("Seccomp:"), 30, "it was there")
            assert process.stdout.text().split() == ["CapEff:", "0" * 16, "Seccomp:", "2"]
            for name in ("ipc", "mnt", "net", "pid", "uts"):
                there, here = (Path("/proc", one, "ns", name) for one in (str(pid), "self"))
                assert there.readlink() != here.readlink()
    assert (tmp_path / "seen").exists()
    assert not Path("/proc", str(pid), "exe").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user: sudo make check")
def test_of_an_ordinary_user(tmp_path):
    if container.missing():
        pytest.skip(container.missing())
    program = """
from convoy.host import container
from convoy.host.command import run
if container.missing():
    print(container.missing())
else:
    with container.Container() as made:
        print(run(made.command("cat", "/proc/self/uid_map")).stdout)
"""
    ran = run(
        ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
         sys.executable, "-B", "-c", program],
        120, environment={"PYTHONPATH": str(CHECKOUT), "TMPDIR": "/tmp"},
    )  # fmt: skip
    if "podman starts no container here" in ran.stdout:
        pytest.skip(ran.stdout.strip())
    assert ran.stdout.split() == ["0", str(NOBODY), "1"], ran.stderr

    def left() -> str:
        return run(["ps", "-o", "args=", "-u", str(NOBODY)]).stdout

    wait_for(lambda: "podman" not in left(), 30, "the end of podman")
