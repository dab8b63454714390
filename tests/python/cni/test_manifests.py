# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The manifests of packaging/kubernetes/: by Kubernetes' own schema, and with each other."""

import dataclasses
import importlib
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any

import pytest
import yaml

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cni.network import read_network
from convoy.host.machine import this_machine

FOLDER = Path(__file__).resolve().parents[3] / "packaging/kubernetes"
DOCUMENTS = [
    (file.name, document)
    for file in sorted(FOLDER.glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text("utf-8"))
]
MODULES = {"v1": "core_v1", "apps/v1": "apps_v1"}


@pytest.fixture(scope="module")
def kubernetes():
    """The types that lightkube-models has of Kubernetes' OpenAPI, without its client."""
    schema = types.ModuleType("lightkube.core.schema")
    schema.DictMixin = object
    schema.dataclass, schema.field = dataclasses.dataclass, dataclasses.field
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "lightkube.core", types.ModuleType("lightkube.core"))
        patch.setitem(sys.modules, "lightkube.core.schema", schema)
        yield lambda name: importlib.import_module(f"lightkube.models.{name}")


def wrong(value: Any, kind: Any, place: str) -> list[str]:
    """Say what of a value is not of a type: unknown keys, missing ones, other types."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union:
        return wrong(value, next(one for one in arguments if one is not type(None)), place)
    if origin is list:
        if not isinstance(value, list):
            return [f"{place}: no list"]
        return [
            each
            for i, one in enumerate(value)
            for each in wrong(one, arguments[0], f"{place}[{i}]")
        ]
    if dataclasses.is_dataclass(kind):
        return wrong_object(value, kind, place)
    plain = {str: str, int: int, bool: bool, float: float}.get(kind)
    if plain is None:  # dict, and what may be anything
        return []
    return [] if type(value) is plain else [f"{place}: {value!r}: no {plain.__name__}"]


def wrong_object(value: Any, kind: Any, place: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{place}: no object"]
    hints = typing.get_type_hints(kind)
    fields = {one.metadata.get("json", one.name): one for one in dataclasses.fields(kind)}
    match = [f"{place}.{key}: unknown" for key in value if key not in fields]
    for key, field in fields.items():
        if key in value:
            match += wrong(value[key], hints[field.name], f"{place}.{key}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            match.append(f"{place}.{key}: missing")
    return match


def of(kind: str, file: str = "") -> list[dict[str, Any]]:
    return [one for name, one in DOCUMENTS if one["kind"] == kind and file in name]


@pytest.mark.parametrize(
    ("file", "document"), DOCUMENTS, ids=[f"{file}-{one['kind']}" for file, one in DOCUMENTS]
)
def test_it_is_of_kubernetes_schema(kubernetes, file, document):
    module = MODULES.get(document["apiVersion"])
    if module is None:  # an object of somebody else's definition: Kubernetes has the metadata's
        kind = kubernetes("meta_v1").ObjectMeta
        assert wrong(document["metadata"], kind, "metadata") == []
        return
    kind = getattr(kubernetes(module), document["kind"])
    assert wrong(document, kind, document["kind"]) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"spec": {}}, "DaemonSet.spec.selector: missing"),
        ({"spce": {}}, "DaemonSet.spce: unknown"),
        ({"metadata": {"name": 7}}, "DaemonSet.metadata.name: 7: no str"),
        ({"spec": {"template": {"spec": {"containers": {}}}}}, "containers: no list"),
    ],
)
def test_what_is_wrong_would_be_found(kubernetes, change, words):
    document = {**of("DaemonSet")[0], **change}
    match = wrong(document, kubernetes("apps_v1").DaemonSet, "DaemonSet")
    assert any(words in one for one in match), match


def pods() -> list[dict[str, Any]]:
    (node,), (pod,) = of("DaemonSet", "node.yaml"), of("Pod")
    return [node["spec"]["template"]["spec"], pod["spec"]]


@pytest.mark.parametrize("pod", pods(), ids=["node", "pod"])
def test_it_runs_with_no_rights(pod):
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert not any("hugepages" in name for name in container["resources"]["limits"])


def test_the_pod_is_another_user_than_the_node():
    """Which owns the folder with the socket."""
    node, pod = (one["securityContext"]["runAsUser"] for one in pods())
    assert node != pod


def plan(name: str) -> dict[str, Any]:
    (data,) = [one["data"] for one in of("ConfigMap") if one["metadata"]["name"] == name]
    machine = this_machine()
    return make_plan(loads(data["chain.yaml"], machine, FOLDER, FOLDER / name), machine).data


def test_network_node_and_pod_fit_together():
    (definition,) = of("NetworkAttachmentDefinition")
    config = json.loads(definition["spec"]["config"])
    network = read_network(config)
    assert network.name == definition["metadata"]["name"]

    (node,) = of("DaemonSet", "node.yaml")
    spec = node["spec"]["template"]["spec"]
    mounts = [one["mountPath"] for one in spec["containers"][0]["volumeMounts"]]
    hosts = [one["hostPath"]["path"] for one in spec["volumes"] if "hostPath" in one]
    assert hosts == [str(network.shared), str(network.node)]
    assert set(hosts) < set(mounts)  # a path is the same for node and plugin
    (environment,) = spec["containers"][0]["env"]
    assert environment == {"name": "RUNTIME_DIRECTORY", "value": str(network.node)}
    folders = [Path(port["path"]).parent for port in plan("convoy-edge")["ports"]]
    assert {folder.parent for folder in folders} == {network.shared}
    made = (FOLDER / "convoy-tmpfiles.conf").read_text("utf-8")
    for folder in (*folders, network.shared, network.node):
        assert f"d {folder} 0755 " in made

    (pod,) = of("Pod")
    assert pod["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": network.name}
    (mount,) = [
        one for one in pod["spec"]["containers"][0]["volumeMounts"] if one["name"] == "sockets"
    ]
    assert mount["subPathExpr"] == "$(POD_UID)"
    (port,) = plan("reflector")["ports"]
    assert port["path"] == f"{mount['mountPath']}/{network.socket}"


def test_the_scheduler_is_told_of_all_ports():
    (counter,) = of("DaemonSet", "device-plugin.yaml")
    (container,) = counter["spec"]["template"]["spec"]["containers"]
    (group,) = yaml.safe_load(container["args"][1])["groups"]
    assert group["count"] == len(plan("convoy-edge")["ports"])
    (path,) = group["paths"]
    assert path["path"] in [one["mountPath"] for one in container["volumeMounts"]]
    assert f"d {path['path']} " in (FOLDER / "convoy-tmpfiles.conf").read_text("utf-8")


def test_the_virtual_machine_is_in_the_network():
    (machine,), (kubevirt,) = of("VirtualMachine"), of("KubeVirt")
    spec = machine["spec"]["template"]["spec"]
    (interface,) = spec["domain"]["devices"]["interfaces"]
    (network,) = spec["networks"]
    assert interface["name"] == network["name"]
    assert (
        network["multus"]["networkName"] == of("NetworkAttachmentDefinition")[0]["metadata"]["name"]
    )
    bindings = kubevirt["spec"]["configuration"]["network"]["binding"]
    assert bindings[interface["binding"]["name"]]["downwardAPI"] == "device-info"
