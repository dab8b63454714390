# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Parts of a chain that run here: a node, a node in a container, and the switch."""

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from convoy.chain.plan import files_of
from convoy.chain.split import Part, Split
from convoy.client import ClientError
from convoy.errors import ConvoyError, InputError
from convoy.host.command import run
from convoy.host.container import LIMITS, missing, working_runtime
from convoy.host.folders import dpdk_folder, make_private
from convoy.host.node import Node
from convoy.host.open_vswitch import (
    Switch,
    SwitchConfig,
    port_counts,
    presence,
    vhost_user,
)
from convoy.hybrid import guest
from convoy.hybrid.running import Counts, Running
from convoy.hybrid.switch_counts import function_counts, rule_counts

IMAGE = "localhost/convoy"  # CONVOY_IMAGE may say another one


def image() -> str:
    """Return the image whose convoyd runs in containers."""
    return os.environ.get("CONVOY_IMAGE") or IMAGE


class NodePart(Running):
    """convoyd, maybe in a container."""

    def __init__(
        self,
        part: Part,
        folder: Path,
        on_line: Callable[[str], None],
        options: Sequence[str] = (),
    ) -> None:
        """Start it and wait until it forwards. Raises InputError or ConvoyError.

        folder: of all parts' sockets.
        """
        super().__init__(part)
        assert part.plan is not None
        wrapper: tuple[str, ...] = ()
        environment: Mapping[str, str] = {}
        convoyd = None
        if part.place != "inline":
            # Its control sockets lie here: who looks for nodes finds the one that has the ports.
            environment = dpdk_folder(make_private(folder / part.name))
        self._container: str | None = None
        if part.place == "container":
            self._container = container(os.getpid(), part.name)
            wrapper = _in_container(self._container, folder, environment, files_of(part.plan.data))
            convoyd, environment = Path(image()), {}
        self._node = Node(
            part.plan.data,
            convoyd=convoyd,
            wrapper=wrapper,
            environment=environment,
            on_line=on_line,
            name=f"part {part.name}",
            options=options,
        )
        self._node.__enter__()

    @property
    def pid(self) -> int:
        """See Running."""
        return self._node.process.pid

    def alive(self) -> bool:
        """See Running."""
        return self._node.process.running()

    def counts(self) -> Counts:
        """See Running."""
        try:
            return self._node.counts()
        except ClientError:
            self._node.forget_client()
            raise

    def stop(self) -> Counts:
        """See Running."""
        return self._node.stop() if self.alive() else self._node.finish()

    def last_words(self) -> str:
        """See Running."""
        code = self._node.process.exit_code
        return (
            f"signal {-code}"
            if code is not None and code < 0
            else (self._node.process.last_words())
        )

    def _leave(self) -> None:
        self._node.close()
        if self._container is not None:  # where podman was killed
            remove_container(self._container)


def container(pid: int, part: str) -> str:
    """Return what the container of a supervisor's part is called."""
    return f"convoy-{pid}-{part}"


def remove_container(name: str) -> None:
    """Remove a container, if it is there."""
    with contextlib.suppress(ConvoyError):
        run(["podman", "rm", "--force", "--ignore", "--time=0", name], 60.0)


def _in_container(
    name: str, folder: Path, environment: Mapping[str, str], files: Sequence[str]
) -> tuple[str, ...]:
    """Return the words before the image that run its convoyd in a container, without a network.

    files: that it reads.
    """
    return (
        "podman", f"--runtime={working_runtime()}", "run", "--rm", "--interactive",
        "--network=none", "--user=0:0", f"--name={name}", *LIMITS,
        f"--volume={folder}:{folder}", *(f"--volume={file}:{file}:ro" for file in files),
        *(f"--env={k}={v}" for k, v in environment.items()),
        "--entrypoint=convoyd",
    )  # fmt: skip


class SwitchPart(Running):
    """Open vSwitch with DPDK, with rules."""

    def __init__(self, part: Part, split: Split) -> None:
        """Start it; nothing passes before its rules are there. Raises ConvoyError."""
        super().__init__(part)
        folder = make_private(split.folder / part.name)
        for left in folder.iterdir():  # of one that was killed
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        self._split = split
        self._switch = Switch(folder)
        try:
            self._switch.start(
                SwitchConfig(part.cores, split.hugepages, sleeps=split.sleeps, tags=2)
            )
            mtu = split.mtu if split.mtu > 1500 else None
            self._switch.add_bridge(
                [
                    vhost_user(pair.name, number, str(split.socket(pair)), mtu)
                    for pair, number in split.ports_of_switch()
                ]
            )
            self._switch.add_rules(part.rules)
        except BaseException:
            self._switch.close()
            raise

    @property
    def pid(self) -> int:
        """See Running."""
        return self._switch.daemon.pid

    def alive(self) -> bool:
        """See Running."""
        return self._switch.alive()

    def joined(self) -> bool:
        """Return whether it has met all parts that it is joined to. Raises ConvoyError."""
        return {pair.name for pair, _ in self._split.ports_of_switch()} <= self._switch.polled()

    def counts(self) -> Counts:
        """See Running."""
        numbers = {str(number): pair.name for pair, number in self._split.ports_of_switch()}
        ports = {
            numbers.get(name, name): counts
            for name, counts in port_counts(self._switch.ofctl("dump-ports")).items()
        }
        rules = rule_counts(self._switch.ofctl("dump-flows"))
        functions = function_counts(rules, self.part.tables)
        received = sum(counts.get("rx pkts", 0) for counts in ports.values())
        sent = sum(counts.get("tx pkts", 0) for counts in ports.values())
        full = sum(counts.get("tx drop", 0) for counts in ports.values())
        return {
            "ports": {
                name: {
                    "kind": "vhost-user",
                    **{
                        f"{way}_{ours}": counts.get(f"{way} {theirs}", 0)
                        for way in ("rx", "tx")
                        for ours, theirs in (("packets", "pkts"), ("bytes", "bytes"))
                    },
                    "drops": {"tx_full": counts.get("tx drop", 0)},
                }
                for name, counts in ports.items()
            },
            "functions": functions,
            "workers": [],
            "accounting": {
                "received": received, "originated": 0, "sent": sent, "absorbed": 0, "held": 0,
                "dropped": full + sum(sum(f["drops"].values()) for f in functions.values()),
                "conserved": True,
            },
        }  # fmt: skip

    def stop(self) -> Counts:
        """See Running."""
        self._switch.appctl("revalidator/wait")  # counts of rules come in behind
        counts = self.counts()
        self._switch.close()
        return counts

    def last_words(self) -> str:
        """See Running."""
        dead = self._switch.dead()
        if dead is None:
            return "ended"
        code = dead.exit_code
        return f"{dead.name}: " + (
            f"signal {-code}" if code is not None and code < 0 else dead.last_words()
        )

    def _leave(self) -> None:
        self._switch.close()


def check_here(split: Split) -> None:
    """Raise InputError for what parts need and this machine has not."""
    places = {part.place: part for part in split.parts}
    if "switch" in places:
        lacks = presence()[1]
        if lacks:
            names = ", ".join(places["switch"].functions)
            raise InputError(f"{names}: place: switch: {lacks}")
    if "vm" in places:
        lacks = guest.missing()
        if lacks:
            names = ", ".join(places["vm"].functions)
            raise InputError(f"{names}: place: vm: {lacks}")
    if "container" in places:
        name = places["container"].functions[0]
        lacks = missing()
        if lacks:
            raise InputError(f"{name}: place: container: {lacks}")
        try:
            there = run(["podman", "image", "exists", image()], 60.0).exit_code == 0
        except ConvoyError as error:
            raise InputError(f"{name}: place: container: {error}") from None
        if not there:
            raise InputError(
                f"{name}: place: container: there is no image {image()}; make it: make image"
            )
