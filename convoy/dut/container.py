# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The option `container` of devices: whether their functions run in OCI containers.

A program in one has the sockets of its ports bound into it, at the same paths, and no network. A
function of the kernel's has a container's network namespace, with interfaces put into it and rules
and routes configured from outside, as a CNI plugin does.
"""

from collections.abc import Mapping
from pathlib import Path

from convoy.dut.base import Setup
from convoy.errors import InputError
from convoy.host.container import Container, made_by, missing

NO, OCI = "no", "oci"
OPTION: Mapping[str, tuple[str, ...]] = {"container": (NO, OCI)}
_SOCKETS = ("vhost-user", "virtio-user", "virtio-user-server", "memif")
_USR = Path("/usr")  # which every container has


def wanted(setup: Setup) -> bool:
    """Return whether there are to be containers."""
    return setup.options.get("container", NO) == OCI


def check(setup: Setup) -> None:
    """Raise InputError if there are to be containers, and none are to be had."""
    if wanted(setup) and missing():
        raise InputError(f"container={OCI}: {missing()}")


def check_sockets(setup: Setup) -> None:
    """Raise InputError for a program's ports that would not get into its container, and as check.

    A port on an interface would need capabilities in it.
    """
    kinds = {port.kind for port in setup.ports if port.nic or port.kind not in _SOCKETS}
    if wanted(setup) and kinds:
        words = ", ".join(sorted(kinds))
        raise InputError(f"container={OCI}: {words}: give it ports that are sockets")
    check(setup)


def holding(setup: Setup, *programs: Path) -> Container:
    """Return a container that has a setup's sockets and files in it, and programs."""
    folders = {setup.folder, *(Path(port.address).parent for port in setup.ports)}
    places = {program.parent for program in programs if not program.is_relative_to(_USR)}
    return Container(folders | places)


def note() -> str:
    """Return what results say."""
    return f"in an OCI container: {made_by()}"
