# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""An OCI container that podman starts: rootless where an ordinary user asks for it.

There is no image: its root file system is empty but for this machine's /usr, read-only, so that
what is measured in it and beside it are the same files. It has namespaces of its own (no network,
but what is put into it), no capability, podman's seccomp filter, and a cgroup where this user may
have one.

podman keeps what it knows in a folder of the container's own, nothing in the user's or the
machine's. A shell waits for our end, as of every private folder (private.py), and removes the
container before the folder: a container is no child of ours that would die with us.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from convoy.errors import ConvoyError, InputError
from convoy.host.command import output, run
from convoy.host.priority import prefer_group
from convoy.host.process import Process, ProcessError, wait_for
from convoy.host.scope import Scope

DEADLINE_S = 60.0
HOW = "not installed: podman (Debian: apt-get install podman runc; for ordinary users also uidmap)"
RUNTIMES = ("crun", "runc")  # crun has no mind for cgroups of both versions at once
NAME = "convoy"  # of the only container that its podman knows
# More than a program needs; the default is more than who may not raise limits can give.
LIMITS = ("--ulimit=nofile=4096:4096", "--ulimit=nproc=1024:1024")
# In place of the machine's and the user's. Locks in memory would be those of all podman here.
CONF = '[engine]\nlock_type = "file"\n'
_ROOT = ("dev", "etc", "proc", "run", "sys", "tmp", "usr", "var")
_LINKS = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")  # into usr, where the machine has them
# podman's monitor ends last and would write into the folder until then.
_WAIT_AND_REMOVE = f"""\
folder=$1; shift
cat >/dev/null
"$@" rm --force --ignore --time 0 {NAME} >/dev/null 2>&1
"$@" system migrate >/dev/null 2>&1 # ends the process that holds a user's namespace
tries=100
while [ $tries -gt 0 ] && [ -e "/proc/$(cat "$folder/monitor")/exe" ]; do
	sleep 0.05; tries=$((tries - 1))
done 2>/dev/null
for group in /sys/fs/cgroup/"${{folder##*/}}" /sys/fs/cgroup/*/"${{folder##*/}}"; do
	rmdir "$group/conmon" "$group"
done 2>/dev/null
rm -rf -- "$folder"
"""


class Container(Scope):
    """A container to run one program in. Use it with `with`: at the end nothing is left of it."""

    def __init__(self, folders: Iterable[Path] = (), runtime: str = "") -> None:
        """Prepare it. Raises InputError where there is none to be had.

        folders: what it sees of this machine, at the same paths: where sockets and programs are.
        runtime: one of RUNTIMES; default: the first that works here.
        """
        runtime = runtime or working_runtime()
        self._folder = Path(tempfile.mkdtemp(prefix="convoy-"))  # podman takes 50 bytes at most
        # For its program's own files, at the same path inside: programs in containers have the
        # same ids, and would take the same names.
        self.files = self._folder / "files"
        self.files.mkdir()
        self._folders = sorted({*folders, self.files})
        for name in _ROOT:
            (self._folder / "root" / name).mkdir(parents=True)
        for name in _LINKS:
            if (link := Path("/", name)).is_symlink():
                (self._folder / "root" / name).symlink_to(link.readlink())
        (self._folder / "root/var/run").symlink_to("../run")  # DPDK's own place for files
        (self._folder / "conf").write_text(CONF)
        self._podman = (
            "env", f"HOME={self._folder}", f"XDG_RUNTIME_DIR={self._folder}",
            f"CONTAINERS_CONF={self._folder}/conf", "podman", f"--runtime={runtime}",
            f"--root={self._folder}/store", f"--runroot={self._folder}/run",
            f"--tmpdir={self._folder}/tmp", "--storage-driver=vfs", "--cgroup-manager=cgroupfs",
            "--events-backend=none",
        )  # fmt: skip
        self._remover = subprocess.Popen(
            ["sh", "-c", _WAIT_AND_REMOVE, "sh", str(self._folder), *self._podman],
            stdin=subprocess.PIPE,
            start_new_session=True,  # a terminal's Ctrl-C is not for it
        )

    def command(self, *words: str, environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Return a command that runs the program there, and passes on what it is told and says."""
        return (
            *self._podman, "run", "--rm", "--interactive", f"--name={NAME}", "--network=none",
            "--ipc=none", "--cap-drop=all", "--read-only", "--log-driver=none", *LIMITS,
            # Of its own, so that podman's stays not behind; an ordinary user may make none.
            *([f"--cgroup-parent=/{self._folder.name}"] if os.geteuid() == 0 else []),
            f"--pidfile={self._folder}/pid", f"--conmon-pidfile={self._folder}/monitor",
            "--volume=/usr:/usr:ro",
            *(f"--volume={folder}:{folder}" for folder in self._folders),
            *(f"--env={name}={value}" for name, value in (environment or {}).items()),
            "--rootfs", f"{self._folder}/root", *words,
        )  # fmt: skip

    def started(self, process: Process) -> int:
        """Wait until its program runs, by command(); return the id that this has here.

        Its group goes before others then. Raises ProcessError with podman's words where it fails.
        """
        file = self._folder / "pid"

        def there() -> bool:
            return not process.running() or (file.exists() and bool(file.read_text()))

        wait_for(there, DEADLINE_S, f"{process.name}: starting its container")
        if not process.running():
            raise ProcessError(f"podman: {process.last_words()}")
        prefer_group(self._folder.name)
        return int(file.read_text())

    def _leave(self) -> None:
        assert self._remover.stdin is not None
        self._remover.stdin.close()
        self._remover.wait()


@cache
def _tried() -> tuple[str, str]:
    """Return the first runtime that starts a container here, and else why none does."""
    if shutil.which("podman") is None:
        return "", HOW
    why = "neither crun nor runc is installed (Debian: apt-get install runc)"
    for runtime in RUNTIMES:
        if shutil.which(runtime, path=f"{os.environ.get('PATH')}:/usr/sbin:/sbin") is None:
            continue
        with Container(runtime=runtime) as trial:
            try:
                ended = run(trial.command("true"), DEADLINE_S)
            except ConvoyError as error:
                why = str(error)
                continue
        if ended.exit_code == 0:
            return runtime, ""
        why = ended.lines()[-1]
    return "", f"podman starts no container here: {why}"


def missing() -> str:
    """Return why no container is to be had here, or the empty string."""
    return _tried()[1]


def made_by() -> str:
    """Return what makes containers here: "podman 4.3.1 with runc, rootless". Raises as below."""
    runtime = working_runtime()
    version = output(["podman", "--version"]).split()[-1]
    who = "rootless" if os.geteuid() != 0 else "started by root"
    return f"podman {version} with {runtime}, {who}"


def working_runtime() -> str:
    """Return the runtime that containers are started with. Raises InputError: there are none."""
    runtime, why = _tried()
    if why:
        raise InputError(why)
    return runtime
