# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A chain as one line of text: ports, functions by worker, port."""

from typing import Any


def pictures(plan: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return (title, lines) for each chain of a plan, a line per queue that packets come in by."""
    kinds = {port["name"]: port["kind"] for port in plan["ports"]}
    types = {function["name"]: function["type"].replace("_", "-") for function in plan["functions"]}
    cores = [worker["core"] for worker in plan["workers"]]

    def port(name: str) -> str:
        return f"{name} ({kinds[name]})"

    outputs = {function["name"]: function.get("outputs", []) for function in plan["functions"]}

    def source(stage: dict[str, Any]) -> str:
        if "port" in stage["source"]:
            return port(stage["source"]["port"])
        if "handoff" in stage["source"]:
            return "other workers"
        came = [
            f"{name}.{output['name']}"
            for name, each in outputs.items()
            for output in each
            if output["chain"] == stage["chain"]
        ]
        return " + ".join(came)

    def branches(stage: dict[str, Any]) -> str:
        each = [
            output["name"] + " ▶ " + output["chain"] for n in stage["path"] for output in outputs[n]
        ]
        return f" (outputs: {', '.join(each)})" if each else ""

    def stage_text(stage: dict[str, Any]) -> str:
        names = [n if n == types[n] else f"{n} ({types[n]})" for n in stage["path"]]
        return f"[core {cores[stage['worker']]}: {' → '.join(names) or 'wire'}{branches(stage)}]"

    result = []
    for chain in plan["chains"]:
        stages = [stage for stage in plan["stages"] if stage["chain"] == chain["name"]]
        by_ring = {s["source"]["ring"]: s for s in stages if "ring" in s["source"]}
        heads = [stage for stage in stages if "ring" not in stage["source"]]
        lines = []
        for head in heads:
            queue = ""
            if len(heads) > 1 and "port" in head["source"]:
                queue = f" queue {head['source'].get('queue', 0)}"
            parts = [source(head) + queue]
            stage = head
            while True:
                parts.append(stage_text(stage))
                if "ring" not in stage["sink"]:
                    break
                stage = by_ring[stage["sink"]["ring"]]
            lines.append(" ──▶ ".join([*parts, port(stage["sink"]["port"])]))
        match = chain.get("match") or {}
        rest = "everything" if "in" in chain else "from outputs"
        what = " ".join(f"{key} {value}" for key, value in match.items()) or rest
        result.append((f"{chain['name']}: {what}", lines))
    return result
