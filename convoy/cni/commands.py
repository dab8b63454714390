# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a runtime asks for: ADD, DEL, CHECK, GC, STATUS."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from convoy.cni.attachment import Attachment
from convoy.cni.delegate import delegate
from convoy.cni.errors import CniError, Code
from convoy.cni.folders import Folders, Record
from convoy.cni.network import Network, read_network
from convoy.cni.node import Port, ports_of

Json = Mapping[str, Any]


def add(config: Json, environment: Mapping[str, str]) -> Json:
    """Give a container a port, and a folder with the way to it. Again: the same result."""
    network, attachment = read_network(config), Attachment.read(environment)
    if not attachment.sandbox:
        raise CniError(Code.ENVIRONMENT, "CNI_NETNS: missing")
    with Folders(network) as folders:
        known = folders.record(attachment.key)
        if known is not None:
            _check_own(known, network, attachment)
            if known.result:
                return known.result
            folders.detach(known)  # ADD was interrupted
        record = folders.attach(_record(network, attachment, _free(network, folders)))
    try:
        result = _result(
            config, network, attachment, record, _addresses(network, config, environment)
        )
        with Folders(network) as folders:
            folders.tell(record, _for_container(network, attachment, record, result))
            folders.keep(replace(record, result=result))
        _write_device_info(config, network, record)
        return result
    except BaseException:
        with contextlib.suppress(CniError, OSError):
            delete(config, environment)
        raise


def delete(config: Json, environment: Mapping[str, str]) -> None:
    """Take the port back, and remove what is of the container. Nothing there: nothing to do."""
    network, attachment = read_network(config), Attachment.read(environment)
    with Folders(network) as folders:
        known = folders.record(attachment.key)
        whose = None if known is None else (known.container, known.network)
        if known is not None and whose == (attachment.container, network.name):
            folders.detach(known)
    if network.ipam is not None:
        delegate(network.ipam, config, environment, "DEL")


def check(config: Json, environment: Mapping[str, str]) -> None:
    """Raise CniError unless everything is as ADD left it, and the node has the port."""
    network, attachment = read_network(config), Attachment.read(environment)
    if network.ipam is not None:
        delegate(network.ipam, config, environment, "CHECK")
    with Folders(network) as folders:
        known = folders.record(attachment.key)
        if known is None:
            raise CniError(Code.MISSING, f"{attachment.key}: not attached to {network.name}")
        _check_own(known, network, attachment)
        problem = folders.problem(known)
    if problem is not None:
        raise CniError(Code.MISSING, problem)
    _check_result(config.get("prevResult"), attachment)
    if network.node is not None and known.port not in [
        port.folder for port in ports_of(network, network.node)
    ]:
        raise CniError(Code.MISSING, f"{network.shared}/{known.port}: the node has no port there")


def collect(config: Json, environment: Mapping[str, str]) -> None:
    """Remove what is of containers that are not in the runtime's list."""
    network = read_network(config)
    valid = _valid(config.get("cni.dev/valid-attachments", []))
    problems = []
    with Folders(network) as folders:
        for record in list(folders.records()):
            if (record.container, record.interface) not in valid:
                try:
                    folders.detach(record)
                except (CniError, OSError) as error:  # the others all the same
                    problems.append(f"{record.key}: {error}")
    if network.ipam is not None:
        delegate(network.ipam, config, environment, "GC")
    if problems:
        raise CniError(Code.IO, f"{len(problems)} of them are still there", "; ".join(problems))


def status(config: Json, environment: Mapping[str, str]) -> None:
    """Raise CniError if ADD would fail."""
    network = read_network(config)
    if network.ipam is not None:
        delegate(network.ipam, config, environment, "STATUS")
    try:
        with Folders(network) as folders:
            _free(network, folders)
    except CniError as error:
        raise CniError(Code.NOT_AVAILABLE, error.message, error.details) from None


def _check_own(known: Record, network: Network, attachment: Attachment) -> None:
    if known.container != attachment.container:
        raise CniError(
            Code.OCCUPIED, f"{attachment.key}: is of container {known.container}",
            "their IDs begin alike",
        )  # fmt: skip
    if known.network != network.name:
        raise CniError(
            Code.OCCUPIED, f"CNI_IFNAME: {attachment.interface}: is in network {known.network}",
            "another interface's name is needed, or another sharedDir",
        )  # fmt: skip


def _free(network: Network, folders: Folders) -> Port | None:
    """Return a port that no container has; None: there is no node. Raises CniError."""
    if network.node is None:
        return None
    ports = ports_of(network, network.node)
    free = [port for port in ports if folders.is_free(port.folder)]
    if not ports:
        side = {
            "vhost-user": "vhost-user" if network.listens else "vhost-user, mode client",
            "memif": "memif" if network.listens else "memif, role client",
        }[network.kind]
        raise CniError(
            Code.CONFIG, f"node: {network.node}: none of its ports is for containers",
            f"a port ({side}) at {network.shared}/FOLDER/FILE is needed",
        )  # fmt: skip
    # A peer of a port that nobody has is one that outlives its container.
    for port in free:
        if not port.has_peer:
            return port
    raise CniError(
        Code.TRY_AGAIN, f"{network.name}: all {len(ports)} ports for containers are taken",
        "more of them in the node's descriptor",
    )  # fmt: skip


def _record(network: Network, attachment: Attachment, port: Port | None) -> Record:
    folder, name = attachment.place(network)
    record = Record(
        attachment.key, attachment.container, attachment.interface, network.name, folder, name,
        listens=network.listens, pod=attachment.pod,
    )  # fmt: skip
    return record if port is None else replace(record, port=port.folder, file=port.file)


def _addresses(network: Network, config: Json, environment: Mapping[str, str]) -> Json:
    if network.ipam is None:
        return {}
    return delegate(network.ipam, config, environment, "ADD")


def _result(
    config: Json, network: Network, attachment: Attachment, record: Record, addresses: Json
) -> Json:
    """Return CNI's result, behind what plugins before this one said."""
    before = config.get("prevResult") or {}
    interfaces = _list(before, "prevResult", "interfaces")
    own: dict[str, Any] = {"name": attachment.interface, "sandbox": attachment.sandbox}
    if config["cniVersion"] == "1.1.0":
        own["socketPath"] = str(_path(network, record))
    ips = [{**ip, "interface": len(interfaces)} for ip in _list(addresses, "ipam", "ips")]
    result = {
        **before,
        "cniVersion": config["cniVersion"],
        "interfaces": [*interfaces, own],
        "ips": [*_list(before, "prevResult", "ips"), *ips],
        "routes": [*_list(before, "prevResult", "routes"), *_list(addresses, "ipam", "routes")],
        "dns": before.get("dns") or addresses.get("dns") or config.get("dns") or {},
    }
    return {key: value for key, value in result.items() if value or key == "interfaces"}


def _list(of: Any, place: str, key: str) -> list[Json]:
    """Return a list of objects in a result."""
    match = of.get(key) or [] if isinstance(of, dict) else None
    if not isinstance(match, list) or not all(isinstance(one, dict) for one in match):
        raise CniError(Code.CONFIG, f"{place}.{key}: must be a list of objects")
    return match


def _path(network: Network, record: Record) -> Path:
    return network.shared / record.folder / record.socket


def _for_container(network: Network, attachment: Attachment, record: Record, result: Json) -> Json:
    """Return what userspace-cni tells a container, in its words."""
    key = "vhost" if network.kind == "vhost-user" else "memif"
    section = {**network.container[key], "socketfile": record.socket}
    return {
        "containerId": attachment.container,
        "ifName": attachment.interface,
        "name": network.name,
        "config": {**network.container, key: section},
        "ipResult": result,
    }


def _write_device_info(config: Json, network: Network, record: Record) -> None:
    """Tell Kubernetes what device it is, where its runtime asks for that (device-info-spec 1.1)."""
    runtime = config.get("runtimeConfig")
    file = runtime.get("CNIDeviceInfoFile") if isinstance(runtime, dict) else None
    if not isinstance(file, str) or not file:
        return
    path = str(_path(network, record))
    if network.kind == "vhost-user":
        device = {"mode": network.container["vhost"]["mode"], "path": path}
    else:
        device = {"role": network.container["memif"]["role"], "path": path, "mode": "ethernet"}
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(
        json.dumps({"type": network.kind, "version": "1.1.0", network.kind: device}), "utf-8"
    )


def _check_result(result: Any, attachment: Attachment) -> None:
    names = [] if result is None else _list(result, "prevResult", "interfaces")
    if result is not None and attachment.interface not in [one.get("name") for one in names]:
        raise CniError(Code.CONFIG, f"prevResult: has no interface {attachment.interface}")


def _valid(attachments: Any) -> set[tuple[str, str]]:
    try:
        return {(str(one["containerID"]), str(one["ifname"])) for one in attachments}
    except (KeyError, TypeError):
        raise CniError(
            Code.CONFIG, "cni.dev/valid-attachments: must be a list of containerID and ifname"
        ) from None
