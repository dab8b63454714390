# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Network interfaces that are there already, lent to a tester or a device for a while.

Nobody else may speak on them: without IPv6 the kernel says nothing of its own. What is changed is
put back at the end, also when we are killed: a shell waits for that, as in private.py.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from convoy.chain.nic import Nic
from convoy.errors import ConvoyError, InputError
from convoy.host.machine import text
from convoy.host.namespace import shell
from convoy.host.scope import Scope

_ROOT = Path("/")
_IFF_UP, _IFF_PROMISC = 0x1, 0x100
_WAIT_AND_RESTORE = 'cat >/dev/null; sleep 1; eval "$1"'  # processes that die with us have died


def _check(name: str) -> None:
    """Raise InputError where an interface is not there, or others use it."""
    if not Path(f"/sys/class/net/{name}").exists():
        here = ", ".join(sorted(path.name for path in Path("/sys/class/net").iterdir()))
        raise InputError(f"{name}: no such interface here; there are {here}")
    if os.geteuid() != 0:
        raise InputError(f"{name}: only root may send and receive on an interface; be root")
    [link] = json.loads(shell(f"ip -json address show dev {name}"))
    addresses = [
        one["local"]
        for one in link["addr_info"]
        if one["family"] == "inet" or one.get("scope") != "link"
    ]
    if addresses:
        raise InputError(
            f"{name}: has the address {addresses[0]}, so it serves others; give an interface "
            "for nothing but these packets, without an address"
        )
    if "master" in link:
        raise InputError(f"{name}: is a port of {link['master']}; take it out of that first")


def _card(address: str) -> None:
    if not Path(f"/sys/bus/pci/devices/{address}").exists():
        raise InputError(f"dpdk:{address}: no such PCI device here; lspci -D shows them")


def _address(name: str) -> str:
    return f"ip link set {name} address {text(_ROOT, f'sys/class/net/{name}/address')}"


def _steering(name: str) -> list[Path]:
    """Return the files that say which cores do what the kernel does with packets that come in."""
    return sorted(Path(f"/sys/class/net/{name}/queues").glob("rx-*/rps_cpus"))


def _settings(name: str) -> tuple[list[str], list[str]]:
    """Return the commands that prepare an interface, and those that put back what was."""
    flags = int(text(_ROOT, f"sys/class/net/{name}/flags") or "0", 16)
    quiet = Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
    do = [f"echo 1 > {quiet}"] if quiet.exists() else []
    do.append(f"ip link set {name} up promisc on")
    undo = [_address(name)]
    for file in (quiet, *_steering(name)):
        before = text(_ROOT, str(file)[1:])
        undo += [f"echo {before} > {file}"] if before is not None else []
    if not flags & _IFF_PROMISC:
        undo.append(f"ip link set {name} promisc off")
    if not flags & _IFF_UP:
        undo.append(f"ip link set {name} down")
    return do, undo


def _mask(cores: Sequence[int]) -> str:
    """Return a set of cores as the kernel takes it: groups of 32."""
    bits = sum(1 << core for core in cores)
    groups = [f"{bits >> shift & 0xFFFFFFFF:08x}" for shift in range(0, bits.bit_length(), 32)]
    return ",".join(reversed(groups))


class Lent(Scope):
    """Two interfaces, prepared. Use it with `with`."""

    def __init__(self, nics: Sequence[Nic]) -> None:
        """Prepare them. Raises InputError where one is not there, or not free."""
        for nic in nics:
            _card(nic.name) if nic.kind == "dpdk" else _check(nic.name)
        self.nics = tuple(nics)
        self._names = [nic.name for nic in nics if nic.kind != "dpdk"]
        self._addresses = [_address(name) for name in self._names]
        prepare: list[str] = []
        restore: list[str] = []
        for name in self._names:
            do, undo = _settings(name)
            prepare += do
            restore += undo
        self._restore = "".join(f"{line} 2>/dev/null || :\n" for line in restore)
        self._waiter = subprocess.Popen(
            ["sh", "-c", _WAIT_AND_RESTORE, "sh", self._restore],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"},
            start_new_session=True,
        )
        try:
            shell("\n".join(prepare))
        except BaseException:
            self.close()
            raise

    def give(self, cores: Sequence[int]) -> None:
        """Prepare them for another device: these cores do what the kernel does with packets that
        come in, and an address that the device before has set is forgotten.
        """
        steer = [f"echo {_mask(cores)} > {file}" for n in self._names for file in _steering(n)]
        shell("\n".join([*self._addresses, *steer]))

    def _leave(self) -> None:
        with suppress(ConvoyError):
            shell(self._restore)
        self._waiter.kill()
        self._waiter.wait()
        if self._waiter.stdin is not None:
            self._waiter.stdin.close()


def described(nic: Nic) -> str:
    """Return what an interface is: its driver, and its speed where it has one."""
    if nic.kind == "dpdk":
        base = f"sys/bus/pci/devices/{nic.name}"
        ids = ":".join(
            (text(_ROOT, f"{base}/{key}") or "?").removeprefix("0x") for key in ("vendor", "device")
        )
        return f"{nic.kind}, PCI device {ids}"
    device = Path(f"/sys/class/net/{nic.name}")
    driver = device / "device/driver"
    name = driver.resolve().name if driver.exists() else _virtual(device)
    speed = text(_ROOT, f"sys/class/net/{nic.name}/speed")
    fast = f", {speed} Mb/s" if speed and speed.isdigit() else ""
    return f"{nic.kind}, {name}{fast}, MTU {text(_ROOT, f'sys/class/net/{nic.name}/mtu')}"


def is_virtual_function(nic: Nic) -> bool:
    """Return whether an interface is a virtual function of a card (SR-IOV) of this machine."""
    if nic.kind == "dpdk":
        return (_ROOT / f"sys/bus/pci/devices/{nic.name}/physfn").exists()
    return (_ROOT / f"sys/class/net/{nic.name}/device/physfn").exists()


def _virtual(device: Path) -> str:
    return "a virtual interface" if "virtual" in str(device.resolve()) else "driver unknown"
