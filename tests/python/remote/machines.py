# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Two machines: a network namespace each, joined by three veth pairs; a real sshd in one of them.

By the first pair ssh goes, by the others packets do.
"""

import os
import shlex
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from convoy.host.namespace import Namespace, join
from convoy.host.process import Process, wait_for

SSHD = Path("/usr/sbin/sshd")
TESTER, DEVICE = "10.233.77.1", "10.233.77.2"
PORT = 2222
MARK = "CONVOY_TEST_REMOTE"
RUN = "from convoy.cli.main import main; main()"
DEADLINE_S = 60.0
SCENARIO = """\
title: Is everybody measured on another machine?
from: no paper
asks: Does it all work?
devices: [{devices}]
setups:
  router: {{functions: [router], devices: [convoy, ovs-dpdk]}}
  firewall: {{functions: [firewall], devices: [linux]}}
  forward: {{functions: [], devices: [testpmd]}}
  behind: {{functions: [router], devices: [convoy+vnf, testpmd+vnf, ovs-dpdk+vnf]}}
sizes: [64]
noise: false
"""


@dataclass
class Machines:
    """The tester's, and the device's, where `convoy` is a script that a test may write."""

    tester: Namespace
    device: Namespace
    folder: Path
    sshd: Process
    mark: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def ssh_config(self) -> Path:
        return self.folder / "ssh_config"

    @property
    def agent(self) -> Path:
        return self.folder / "convoy-there"

    def install(self, script: str = "") -> None:
        """Write the command of the device's machine; script: what it does before anything else."""
        temporary = self.folder / "t"
        temporary.mkdir(exist_ok=True)
        ours = shlex.quote(os.environ.get("PYTHONPATH", ""))  # ssh does not take it there
        self.agent.write_text(
            f"#!/bin/sh\nexport {MARK}={self.mark} TMPDIR={temporary} PYTHONPATH={ours}\n{script}\n"
            f'exec {shlex.join([sys.executable, "-P", "-c", RUN])} "$@"\n'
        )
        self.agent.chmod(0o755)

    def scenario(self, devices: str) -> Path:
        path = self.folder / "all.yaml"
        path.write_text(SCENARIO.format(devices=devices))
        return path

    def python(self, *words: str) -> tuple[str, ...]:
        """Return a convoy command on the tester's machine."""
        return self.tester.command(sys.executable, "-P", "-c", RUN, *words)

    def command(
        self,
        *words: str | Path,
        host: str = f"root@{DEVICE}",
        ports: str = "left,right",
        tester_ports: str = "left,right",
    ) -> tuple[str, ...]:
        """Return a `bench run` with devices on the other machine, and their ports."""
        return self.python(
            "bench", "run", *map(str, words),
            "--device-host", host, "--tester-ports", tester_ports, "--device-ports", ports,
            "--device-command", str(self.agent), "--ssh-config", str(self.ssh_config),
        )  # fmt: skip

    def run(self, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words, **more), capture_output=True, text=True, timeout=240, check=False
        )

    def _there(self) -> dict[int, str]:
        result = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={self.mark}".encode() in (process / "environ").read_bytes():
                    command = (process / "cmdline").read_text().replace("\0", " ")
                    result[int(process.name)] = command
            except OSError:
                continue  # it ended, or is not ours
        return result

    def left_there(self) -> list[str]:
        """Return what was started on the device's machine and still runs."""
        return list(self._there().values())

    def pids_there(self, text: str) -> list[int]:
        """Return those of these processes whose command has a text in it."""
        return [pid for pid, command in self._there().items() if text in command]

    def wait_nothing_left(self) -> None:
        """Wait until no process, no file and no setting of an interface is left there."""
        wait_for(lambda: not self.left_there(), DEADLINE_S, f"the end of {self.left_there()}")
        temporary = self.folder / "t"
        wait_for(lambda: not list(temporary.iterdir()), DEADLINE_S, "the end of files there")
        for machine in (self.tester, self.device):
            wait_for(lambda m=machine: _restored(m), DEADLINE_S, "interfaces as they were")


def _restored(machine: Namespace) -> bool:
    """Return whether the interfaces are down, as they were made, and nothing is on them."""
    lines = machine.run("ip -oneline link show").splitlines()
    names = {line.split(": ")[1].partition("@")[0]: line for line in lines}
    down = all("UP" not in names[end].partition(">")[0] for end in ("left", "right"))
    quiet = all("PROMISC" not in names[end] for end in ("left", "right"))
    quiet = quiet and not any("xdp" in names[end] for end in ("left", "right"))
    return set(names) == {"lo", "ctl", "left", "right"} and down and quiet


def _key(path: Path) -> str:
    """Make a key; return its public part."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)]
    subprocess.run(words, check=True)
    return path.with_suffix(".pub").read_text().strip()


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)


@contextmanager
def machines(folder: Path) -> Iterator[Machines]:
    """Make them; the folder is for keys and configurations."""
    host_key, own_key = _key(folder / "host_key"), _key(folder / "own_key")
    _write(folder / "authorized", [own_key])
    _write(folder / "known", [f"[{DEVICE}]:{PORT} {host_key}"])
    _write(folder / "sshd_config", [
        f"ListenAddress {DEVICE}:{PORT}", f"HostKey {folder}/host_key", "PidFile none",
        f"AuthorizedKeysFile {folder}/authorized", "StrictModes no", "UsePAM no",
        "PermitRootLogin prohibit-password", "PasswordAuthentication no", "PrintMotd no",
    ])  # fmt: skip
    _write(folder / "ssh_config", [
        f"Host {DEVICE}", f"  Port {PORT}", f"  IdentityFile {folder}/own_key",
        "  IdentitiesOnly yes", f"  UserKnownHostsFile {folder}/known",
        "  StrictHostKeyChecking yes",
    ])  # fmt: skip
    with ExitStack() as kept:
        tester, device = (kept.enter_context(Namespace()) for _ in range(2))
        for name in ("ctl", "left", "right"):
            join((tester, name), (device, name))
        for machine, address in ((tester, TESTER), (device, DEVICE)):
            machine.run(
                f"ip address add {address}/24 dev ctl\nip link set lo up\nip link set ctl up\n"
            )
        device.run("mount -t tmpfs tmpfs /run\nmkdir /run/sshd\n")
        sshd = kept.enter_context(
            Process(device.command(str(SSHD), "-D", "-e", "-f", str(folder / "sshd_config")))
        )
        sshd.name = "sshd"
        wait_for(
            lambda: "listening on" in sshd.stderr.text() or not sshd.running(),
            DEADLINE_S,
            "sshd to listen",
        )
        assert sshd.running(), sshd.last_words()
        one = Machines(tester, device, folder, sshd)
        one.install()
        yield one
