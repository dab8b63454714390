# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A network's configuration: keys as userspace-cni has them, checked whole."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convoy.cni.errors import CniError, Code

SHARED_DIR = "/var/lib/cni/usrspcni"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}\Z")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
# CNI's own, some of which only runtimes set, and ours.
_KEYS = {
    "cniVersion", "cniVersions", "name", "type", "capabilities", "runtimeConfig", "args",
    "prevResult", "ipam", "dns", "disableCheck", "disableGC",
    "sharedDir", "node", "host", "container",
}  # fmt: skip
_SIDE_KEYS = {"engine", "iftype", "netType", "vhost", "memif", "bridge"}
_VHOST_KEYS = {"mode", "group", "socketfile"}
_MEMIF_KEYS = {"role", "mode", "socketfile"}
_INSTEAD = {
    "kubeconfig": "leave it out: the API server is not asked",
    "logFile": "leave it out: the runtime has the messages",
    "logLevel": "leave it out: the runtime has the messages",
    "host.bridge": "leave it out: a port's chain is in the node's descriptor",
}


@dataclass(frozen=True)
class Network:
    """What ports of a network are, and where."""

    name: str
    shared: Path  # folders of containers are in it
    node: Path | None  # the runtime folder of a node; None: only folders are laid out
    kind: str  # a port's, "vhost-user" or "memif"
    listens: bool  # the node does, and the container connects
    group: str | None  # that may use the folder; None: anybody
    socket: str | None  # the file's name; None: by container and interface
    container: Mapping[str, Any]  # for the container to read
    ipam: str | None  # the plugin that is asked for addresses


def read_network(config: Mapping[str, Any]) -> Network:
    """Check a configuration. Raises CniError."""
    _only(config, _KEYS, "")
    host, container = _section(config, "host"), _section(config, "container")
    for name, side in (("host", host), ("container", container)):
        _only(side, _SIDE_KEYS, f"{name}.")
        _only(_section(side, "vhost", f"{name}."), _VHOST_KEYS, f"{name}.vhost.")
        _only(_section(side, "memif", f"{name}."), _MEMIF_KEYS, f"{name}.memif.")
    if "bridge" in host:
        _refuse("host.bridge", host["bridge"])
    _one_of(host, "host.engine", ("convoy",), "convoy")
    _one_of(host, "host.netType", ("none", "interface"), "none")
    kind = _one_of(host, "host.iftype", ("vhostuser", "memif"), None)
    vhost, memif = _section(host, "vhost"), _section(host, "memif")
    if kind == "memif":
        own, place = memif, "host.memif"
        listens = _one_of(memif, "host.memif.role", ("master", "slave"), "master") == "master"
        _one_of(memif, "host.memif.mode", ("ethernet",), "ethernet")
    else:
        own, place = vhost, "host.vhost"
        listens = _one_of(vhost, "host.vhost.mode", ("server", "client"), "server") == "server"
    node = config.get("node")
    ipam = _section(config, "ipam").get("type")
    return Network(
        name=_matching("name", config.get("name"), _NAME),
        shared=_folder("sharedDir", config.get("sharedDir", SHARED_DIR)),
        node=None if node is None else _folder("node", node),
        kind="vhost-user" if kind == "vhostuser" else "memif",
        listens=listens,
        group=_optional("host.vhost.group", vhost.get("group")),
        socket=_optional(f"{place}.socketfile", own.get("socketfile")),
        container=_for_container(container, kind, listens),
        ipam=None if ipam is None else _matching("ipam.type", ipam, _FILE),
    )


def _for_container(container: Mapping[str, Any], kind: str, listens: bool) -> dict[str, Any]:
    """Return its section with what follows from the host's, as userspace-cni writes it."""
    if kind == "vhostuser":
        key, own, needed = "vhost", "mode", {"mode": "client" if listens else "server"}
    else:
        needed = {"role": "slave" if listens else "master", "mode": "ethernet"}
        key, own = "memif", "role"
    section = {**needed, **_section(container, key, "container.")}
    for place, value, wanted in (
        (f"container.{key}.{own}", section[own], needed[own]),
        ("container.iftype", container.get("iftype", kind), kind),
    ):
        if value != wanted:
            raise CniError(
                Code.CONFIG, f"{place}: {_shown(value)}: must be {wanted!r}, to fit the host's side"
            )
    return {"netType": "interface", **container, "iftype": kind, key: section}


def _section(of: Mapping[str, Any], key: str, place: str = "") -> Mapping[str, Any]:
    value = of.get(key, {})
    if not isinstance(value, dict):
        raise CniError(Code.CONFIG, f"{place}{key}: {_shown(value)}: must be an object")
    return value


def _only(section: Mapping[str, Any], keys: set[str], place: str) -> None:
    for key, value in section.items():
        if key not in keys and not key.startswith("cni.dev/"):
            _refuse(f"{place}{key}", value)


def _refuse(key: str, value: Any) -> None:
    raise CniError(
        Code.UNSUPPORTED,
        f"{_shown(key)[1:-1]}: {_shown(value)}: not supported",
        _INSTEAD.get(key, "leave it out"),
    )


def _one_of(
    section: Mapping[str, Any], place: str, words: tuple[str, ...], default: str | None
) -> str:
    value = section.get(place.rpartition(".")[2], default)
    if value not in words:
        raise CniError(
            Code.CONFIG, f"{place}: {_shown(value)}: must be {' or '.join(map(repr, words))}"
        )
    return str(value)


def _matching(place: str, value: Any, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not pattern.match(value):
        raise CniError(
            Code.CONFIG, f"{place}: {_shown(value)}: must be letters, digits, and _ . - within"
        )
    return value


def _optional(place: str, value: Any) -> str | None:
    return None if value in (None, "") else _matching(place, value, _FILE)


def _folder(place: str, value: Any) -> Path:
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise CniError(Code.CONFIG, f"{place}: {_shown(value)}: must be an absolute path")
    path = Path(value)
    if ".." in path.parts:
        raise CniError(Code.CONFIG, f"{place}: {_shown(value)}: must not have .. in it")
    return path


def _shown(value: Any) -> str:
    """Return a value on one line, as far as it is short."""
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
