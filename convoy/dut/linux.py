# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The Linux kernel: a network namespace for each function, joined by veth: what containers are.

With the option `container=oci` each is that of an OCI container which podman started.

The tester's ends of the first and the last pair stay outside, and it attaches to them by af_packet
or af_xdp: most of what is then measured is that and the two veth, which the results say. Receive
packet steering moves the packets to the device's cores as they enter; the sender's core would
do all the work otherwise.
"""

import json
import os
import platform
import re
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from convoy.chain.meaning import Nat, types_of
from convoy.dut import container
from convoy.dut.base import Ability, Device, Flows, Function, Presence, Running, Setup
from convoy.dut.functions import tracks
from convoy.dut.kernel import MEANINGS, Script, changes_destination, script, tracking
from convoy.dut.veth import attached, unwire, wiring
from convoy.errors import ConvoyError, InputError
from convoy.host.container import Container
from convoy.host.namespace import Namespace, shell
from convoy.host.process import Process, output_of

_MOST = Path("/proc/sys/net/netfilter/nf_conntrack_max")  # of all network namespaces together
_TRY = """\
ip link add left type veth peer name right
ip link add br0 type bridge
nft add table bridge t
nft add table netdev t
"""

_TRY_ESP = """\
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 1 mode tunnel \
  aead 'rfc4106(gcm(aes))' 0x0000000000000000000000000000000000000000 128
"""


def scripts(setup: Setup) -> list[Script]:
    """Return a script for each namespace of a chain. Raises InputError."""
    if not setup.functions:
        return [script(None)]
    if tracks(setup.functions):
        return [tracking(setup.functions, setup.flows or Flows(0))]
    made: list[Script] = []
    for_us = True
    back: list[Function | None] = [None] * len(setup.functions)
    if setup.back is not None:
        back = list(reversed(setup.back))
        if len(back) != len(setup.functions):
            raise InputError("what comes back must meet as many functions")
    for function, other in zip(setup.functions, back, strict=True):
        made.append(script(function, for_us, other))
        for_us = for_us and not changes_destination(function)
    return made


@cache
def _lacks_esp() -> str:
    """Return why this kernel seals and opens nothing, or the empty string: it does."""
    try:
        shell(_TRY_ESP, ("unshare", "--net", "sh", "-es"))
    except ConvoyError as error:
        return str(error).removeprefix("unshare: ").rstrip(".")
    return ""


class _Running(Running):
    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._kept = ExitStack()
        self._namespaces: list[Namespace] = []
        self._programs: list[Process] = []
        self._containers: list[Process] = []
        self.notes = (attached(setup),)
        if container.wanted(setup):
            self.notes += (container.note(),)
        configured = scripts(setup)
        try:
            for _ in configured:
                of = self._container() if container.wanted(setup) else None
                self._namespaces.append(self._kept.enter_context(Namespace(of)))
            joined = wiring([namespace.pid for namespace in self._namespaces], setup)
            shell("\n".join(joined))
            for namespace, one in zip(self._namespaces, configured, strict=True):
                if one.program:
                    self._programs.append(self._started(namespace, one.program))
                namespace.run(one.text)
        except BaseException:
            self.stop()
            raise
        texts = [text for one in configured for text in (one.program, one.text) if text]
        self.commands = tuple(each.command for each in self._containers)
        self.commands += tuple(("sh", "-ec", text) for text in (*joined, *texts))

    def _started(self, namespace: Namespace, program: str) -> Process:
        cores = ",".join(map(str, self._setup.cores))
        path = f"PATH=$PATH:/usr/sbin:/sbin\n{program}"
        command = namespace.command("taskset", "-c", cores, "sh", "-ec", path)
        return self._kept.enter_context(Process(command))

    def _container(self) -> int:
        """Start one, whose only process waits for the end of its input; return that one's id."""
        made = self._kept.enter_context(Container())
        waiting = self._kept.enter_context(Process(made.command("cat"), takes_input=True))
        self._containers.append(waiting)
        return made.started(waiting)

    def ready(self, deadline_s: float) -> None:
        """It is: each command returned when the kernel had done it."""

    def alive(self) -> bool:
        kept = all(namespace.alive() for namespace in self._namespaces)
        return kept and all(each.running() for each in (*self._containers, *self._programs))

    def output(self) -> Mapping[str, str]:
        return {f"program {i}": output_of(each) for i, each in enumerate(self._programs)}

    def counters(self) -> dict[str, Any] | None:
        """Return what the interfaces of each namespace counted."""
        return {
            f"{i} {each['ifname']}": each["stats64"]
            for i, namespace in enumerate(self._namespaces)
            for each in json.loads(namespace.run("ip -json -statistics link"))
            if each["ifname"] in ("left", "right")
        }

    def stop(self) -> None:
        try:
            unwire([namespace.pid for namespace in self._namespaces], self._setup)
        finally:
            self._kept.close()


class Linux(Device):
    """This machine's kernel."""

    name = "linux"
    ability = Ability(
        functions=types_of({*MEANINGS, Nat}),
        port_kinds=frozenset({"af_packet", "af_xdp"}),
        nics=frozenset({"af_packet"}),
        cores=64,
        both_ways=True,
        remembers=True,
        yields=True,
        options=container.OPTION,
    )

    def presence(self) -> Presence:
        """Try whether namespaces, veth, bridges and nftables are to be had."""
        for program, package in (("ip", "iproute2"), ("nft", "nftables")):
            if shutil.which(program, path=f"{os.environ.get('PATH')}:/usr/sbin:/sbin") is None:
                return Presence("", f"not installed: {program} (Debian: apt-get install {package})")
        if os.geteuid() != 0:
            return Presence("", "not to be had: network namespaces need root; run as root")
        try:
            shell(_TRY, ("unshare", "--net", "--mount", "sh", "-es"))
            nft = re.search(r"v(\S+)", shell("nft --version"))
        except ConvoyError as error:
            return Presence("", f"not to be had: this kernel lacks something: {error}")
        return Presence(f"{platform.release()}, nftables {nft[1] if nft else 'unknown'}")

    def check(self, setup: Setup) -> None:
        """Ask the scripts too: the kernel cannot do everything."""
        if setup.left.kind != setup.right.kind:
            raise InputError("give both ports the same kind")
        container.check(setup)
        scripts(setup)
        lacks = _lacks_esp() if any(each.type == "vpn" for each in setup.functions) else ""
        if lacks:
            raise InputError(f"vpn: this kernel has no ESP with AES-GCM: {lacks}; vm has a guest's")
        most = int(_MOST.read_text()) if _MOST.exists() else None
        flows = setup.flows
        if flows is not None and flows.idle_s is None and most is not None and most < flows.count:
            raise InputError(
                f"the kernel tracks at most {most:,} connections, not {flows.count:,}; as root of "
                f"the machine: sysctl net.netfilter.nf_conntrack_max={flows.count}"
            )

    def start(self, setup: Setup) -> Running:
        """Make the namespaces and configure them."""
        return _Running(setup)
