# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A plan as the descriptor that it could have been made from: make_plan() backwards.

What comes out is proven, not assumed: the plan is made of it once more, and must be the same.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from convoy.base.problem import shown
from convoy.chain.descriptor import Descriptor
from convoy.chain.load import loads
from convoy.chain.machine import Machine
from convoy.chain.next_hops import wait_in_words
from convoy.chain.plan import MEMORY_HUGEPAGES_MB, MEMORY_MB, make_plan
from convoy.chain.ports import PORTS
from convoy.errors import InputError

WIDTH = 80  # columns from which on lines are broken


class NotADescriptorError(InputError):
    """A plan that no descriptor says: written by hand, for the most part."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"no descriptor says what runs: {what}; `convoy show` prints it as a plan, which "
            "`convoy run` and `convoy apply` take as well"
        )


def as_descriptor(plan: Mapping[str, Any], machine: Machine, beside: Path | None) -> str:
    """Return the descriptor of a plan, as YAML, with all paths absolute.

    beside: the file that it is for. Dictionaries, which a plan holds and a descriptor has in files,
    are written beside it: NAME.lz4-dictionary-1 ... None: a plan with dictionaries is an error.
    Raises NotADescriptorError, InputError.
    """
    dictionaries = _Dictionaries(beside)
    try:
        descriptor = _descriptor(plan, dictionaries)
        whole = _text(descriptor)
    except (KeyError, TypeError, AttributeError, ValueError, StopIteration) as error:
        raise NotADescriptorError(f"the plan lacks {error}") from None
    try:
        short = _short(loads(whole, machine, Path("/"), "it").descriptor)
        text = _text(_in_order(short, descriptor))
        again = make_plan(loads(text, machine, Path("/"), "it"), machine, dict(plan)).data
    except InputError as error:
        raise NotADescriptorError(str(error).splitlines()[0]) from None
    if differing := _first_difference(plan, again):
        raise NotADescriptorError(f"{differing} would be otherwise")
    return text


class _Dumper(yaml.SafeDumper):
    """What has no parts of its own on one line, but for lists of phrases, such as routes."""

    def represent_sequence(self, tag: str, sequence: Any, flow_style: Any = None) -> Any:
        """Return the node of a list; see yaml."""
        phrases = any(isinstance(item, str) and " " in item for item in sequence)
        return super().represent_sequence(tag, sequence, False if phrases else flow_style)


def _text(descriptor: Mapping[str, Any]) -> str:
    return yaml.dump(
        descriptor,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        width=WIDTH,
        allow_unicode=True,
    )


def _short(descriptor: Descriptor) -> dict[str, Any]:
    """Return what a person would write: without what is the default anyway."""
    result = descriptor.model_dump(by_alias=True, exclude_defaults=True)
    if "flows" in descriptor.model_fields_set:
        result.setdefault("flows", {})  # plans tell defaults that were asked for
    for function in result.get("functions", {}).values():
        if isinstance(routes := function.get("router", {}).get("routes"), list):
            function["router"]["routes"] = [_route(route) for route in routes]
    return result


def _in_order(value: Any, like: Any) -> Any:
    """Return a value with its keys in the order of another's that has these keys and more."""
    if not isinstance(value, Mapping) or not isinstance(like, Mapping):
        return value
    keys = [key for key in like if key in value] + [key for key in value if key not in like]
    return {key: _in_order(value[key], like.get(key)) for key in keys}


def _route(route: Mapping[str, Any]) -> str:
    """Return a route as `ip route` has it."""
    words = [route["type"]] if "type" in route else []
    words += [route["prefix"], *_via(route)]
    for next_hop in route.get("nexthops", ()):
        words += ["nexthop", *_via(next_hop)]
    return " ".join(words)


def _via(next_hop: Mapping[str, Any]) -> list[str]:
    return [word for key in ("via", "dev") if key in next_hop for word in (key, next_hop[key])]


def _first_difference(one: Any, other: Any, where: str = "") -> str:
    """Return where two plans differ, as a JSON path; "": nowhere."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys([*one, *other]):
            if key not in one or key not in other:
                return f"{where}.{key}".lstrip(".")
            if difference := _first_difference(one[key], other[key], f"{where}.{key}"):
                return difference
        return ""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, (left, right) in enumerate(zip(one, other, strict=True)):
            if difference := _first_difference(left, right, f"{where}[{i}]"):
                return difference
        return ""
    return "" if type(one) is type(other) and one == other else where.lstrip(".") or "all of it"


class _Dictionaries:
    """Files of dictionaries, each written once."""

    def __init__(self, beside: Path | None) -> None:
        self._beside = beside
        self._files: dict[str, str] = {}  # by their content

    def file(self, content: str) -> str:
        """Return the path of the file that has this content, which is in base64."""
        if self._beside is None:
            raise InputError(
                "what runs has dictionaries, which a descriptor has in files; write them beside "
                "it: convoy show --descriptor FILE"
            )
        if content not in self._files:
            number = len(self._files) + 1
            path = self._beside.with_name(f"{self._beside.stem}.lz4-dictionary-{number}")
            try:
                path.write_bytes(base64.b64decode(content, validate=True))
            except binascii.Error:
                raise NotADescriptorError("a dictionary is not in base64") from None
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}") from None
            self._files[content] = str(path.absolute())
        return self._files[content]


def _descriptor(plan: Mapping[str, Any], dictionaries: _Dictionaries) -> dict[str, Any]:
    convoys = {each["port"]: each for each in plan.get("convoys", [])}
    optional = {
        key.replace("_", "-"): _hyphens(plan[key])
        for key in ("flows", "telemetry", "control", "openflow", "standby", "run_as")
        if key in plan
    }
    eal = plan["eal"]
    default_mb = MEMORY_HUGEPAGES_MB if eal["hugepages"] else MEMORY_MB
    return {
        "ports": {
            port["name"]: _port(port, convoys.get(port["name"]), dictionaries)
            for port in plan["ports"]
        },
        **_named("functions", [(each["name"], _function(each)) for each in plan["functions"]]),
        **_named(
            "next-hops",
            [
                (next_hop["name"], _next_hop(next_hop, dictionaries))
                for next_hop in plan.get("next_hops", [])
            ],
        ),
        "chains": _chains(plan),
        **optional,
        "workers": _workers(plan),
        "memory": {
            "hugepages": "always" if eal["hugepages"] else "never",
            **({} if eal["memory_mb"] == default_mb else {"mb": eal["memory_mb"]}),
        },
    }


def _named(key: str, items: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {key: dict(items)} if items else {}


def _hyphens(value: Any) -> Any:
    """Return a value with keys as descriptors have them."""
    if isinstance(value, Mapping):
        return {key.replace("_", "-"): _hyphens(one) for key, one in value.items()}
    return [_hyphens(one) for one in value] if isinstance(value, list) else value


def _port(
    port: Mapping[str, Any], convoys: Mapping[str, Any] | None, dictionaries: _Dictionaries
) -> dict[str, Any]:
    values = {key: value for key, value in port.items() if key not in ("name", "kind")}
    model = PORTS.get(port["kind"])
    if model is None:
        raise NotADescriptorError(f"ports have no kind {shown(port['kind'])}")
    # The key that tells the kind stands for the parameter that the plan has by another name.
    main = next(name for name, info in model.model_fields.items() if info.alias == model.kind)
    if port["kind"] == "pcap":
        first: Any = {key: values.pop(key) for key in ("read", "write") if key in values}
    else:
        first = values.pop(main, None)
    result = {port["kind"]: first, **_hyphens(values)}
    if convoys is not None:
        of_port = {key: value for key, value in convoys.items() if key != "port"}
        if "dictionaries" in of_port:
            of_port["dictionaries"] = [dictionaries.file(one) for one in of_port["dictionaries"]]
        result["convoys"] = _hyphens(of_port)
    return result


def _next_hop(next_hop: Mapping[str, Any], dictionaries: _Dictionaries) -> dict[str, Any]:
    values = {key: value for key, value in next_hop.items() if key not in ("name", "match")}
    if "dictionary" in values:
        values["dictionary"] = dictionaries.file(values["dictionary"])
    if "wait_ns" in values:
        values["wait"] = wait_in_words(values.pop("wait_ns"))
    return {**_hyphens(values), "for": list(next_hop["match"])}


def _function(function: Mapping[str, Any]) -> dict[str, Any]:
    config = dict(function["config"])
    result = _hyphens(config)
    match function["type"]:
        case "firewall":
            result["rules"] = [
                {rule["action"]: {key: one for key, one in rule.items() if key != "action"}}
                for rule in result.get("rules", [])
            ]
        case "ids" if "variables" in config:
            result["variables"] = config["variables"]  # keys are theirs
        case "router":
            result["addresses"] = config.get("addresses", {})  # keys are ports
            result["neighbours"] = {
                each["address"]: each["mac"] for each in config.get("neighbours", [])
            }
    if "outputs" in function:
        result["outputs"] = {each["name"]: each["chain"] for each in function["outputs"]}
    return {function["type"].replace("_", "-"): result}


def _chains(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chains; those that the plan has both ways are one."""
    back = {chain["name"]: chain for chain in plan["chains"] if chain["name"].endswith(".back")}
    result: dict[str, Any] = {}
    for chain in plan["chains"]:
        name = chain["name"]
        if name in back:
            continue
        path, deployment = _path(plan, name)
        result[name] = {
            **({"match": chain["match"]} if chain["match"] else {}),
            **({"from": chain["in"]} if "in" in chain else {}),
            "to": chain["out"],
            **({"path": path} if path else {}),
            **({"both-ways": True} if f"{name}.back" in back else {}),
            **({"deployment": deployment} if deployment != "inline" else {}),
            **({"spread": chain["spread"]} if "spread" in chain else {}),
        }
    return result


def _path(plan: Mapping[str, Any], chain: str) -> tuple[list[str], str]:
    """Return the functions of a chain in order, and its deployment."""
    stages = [stage for stage in plan["stages"] if stage["chain"] == chain]
    begins = next((s for s in stages if "ring" not in s["source"]), None)
    if begins is None:
        raise NotADescriptorError(f"chain {chain} has no stage that begins it")
    path = list(begins["path"])
    for _ in stages:
        if "ring" not in begins["sink"]:
            break
        ring = begins["sink"]["ring"]
        begins = next(stage for stage in stages if stage["source"].get("ring") == ring)
        path += begins["path"]
    return path, "pipeline" if len(path) > len(stages[0]["path"]) else "inline"


def _workers(plan: Mapping[str, Any]) -> dict[str, Any]:
    workers = plan["workers"]
    ways = {worker["idle"] for worker in workers}
    if len(ways) > 1:
        raise NotADescriptorError(f"its workers are idle in several ways ({', '.join(ways)})")
    scale = {"scale": "auto"} if any("moves" in stage for stage in plan["stages"]) else {}
    return {"cores": [worker["core"] for worker in workers], "idle": ways.pop(), **scale}
