# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a device leaves behind: nothing, neither when it is stopped nor when we are killed."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from convoy.dut.devices import DEVICES, device
from convoy.host import container
from convoy.host.process import wait_for
from convoy.host.programs import find
from cores import CORES

from .wire import interfaces

DEADLINE_S = 60.0
MARK = "CONVOY_TEST_LEFT_BEHIND"

# Starts a device, says where, and stops it when its input ends.
PROGRAM = """
import os, sys
from pathlib import Path
from convoy.dut.base import PortAt, Setup
from convoy.dut.devices import device
from convoy.dut.functions import router
from convoy.host.private import private_folder

name, kind, left, right, core, *options = sys.argv[1:]
with private_folder() as folder:
    if kind != "af_packet":
        left, right = str(folder / left), str(folder / right)
    ports = PortAt(kind, left), PortAt(kind, right)
    functions = (router(10),) if "router" in device(name).ability.functions else ()
    options = dict(option.split("=") for option in options)
    setup = Setup(functions, *ports, (int(core),), folder, options=options)
    with device(name).start(setup) as running:
        if kind != "virtio-user":  # else it waits for somebody to connect to
            running.ready(60)
        print(folder, *running.processes(), flush=True)
        sys.stdin.read()
"""

COMBINATIONS = [
    pytest.param(device, kind, "", id=f"{device.name}-{kind}")
    for device in DEVICES
    for kind in ("vhost-user", "memif", "af_packet", *(["virtio-user"] * (device.name == "vm")))
    if kind in device.ability.port_kinds
] + [
    pytest.param(device(name), kind, "container=oci", id=f"{name}-{kind}-container")
    for name, kind in (("linux", "af_packet"), ("testpmd", "vhost-user"))
]


def marked(mark: str) -> list[str]:
    """Return the processes that were started with this mark, or by one that was."""
    result = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                result.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it ended, or is not ours
    return result


@pytest.mark.skipif(find("convoyd") is None, reason="convoyd is not built: make build")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces: sudo make check")
@pytest.mark.parametrize("how", ["stopped", "killed"])
@pytest.mark.parametrize(("device", "kind", "option"), COMBINATIONS)
def test_nothing(device, kind, option, how):
    missing = device.presence().missing or (option and container.missing())
    if missing:
        pytest.skip(missing)
    mark, names = str(uuid.uuid4()), interfaces()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, device.name, kind, *names, str(CORES[-1]), *option.split()],
        env=os.environ | {MARK: mark}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        words = parent.stdout.readline().split()
        folder, processes = Path(words[0]), words[1:]
        assert folder.is_absolute()
        assert folder.is_dir()
        assert len(marked(mark)) > 1
        if how == "killed":
            parent.kill()
        parent.communicate(timeout=DEADLINE_S)
        assert parent.returncode == (-9 if how == "killed" else 0)
    wait_for(lambda: not marked(mark), DEADLINE_S, f"the end of {marked(mark)}")
    wait_for(lambda: not folder.exists(), DEADLINE_S, f"the end of {folder}")
    for process in processes:  # in a container it has no mark
        gone = Path("/proc", process)
        wait_for(lambda gone=gone: not gone.exists(), DEADLINE_S, f"the end of {gone}")
    for name in names:
        gone = Path(f"/sys/class/net/{name}")
        wait_for(lambda gone=gone: not gone.exists(), DEADLINE_S, f"the end of {gone}")
