# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A descriptor's chains, as scenarios name functions and what these keep."""

from pathlib import Path

from convoy.advise.parts import Part
from convoy.chain.descriptor import Descriptor
from convoy.chain.functions import (
    Balancer,
    Classifier,
    Firewall,
    KernelRoutes,
    Router,
    function_type,
    settings,
)
from convoy.chain.ids import Ids


def _listed(path: str | None, base: Path) -> int | None:
    """Return the lines of a rules or routes file that say something; None: not known."""
    if path is None:
        return 0
    file = base / path
    if not file.is_file():
        return None
    try:
        lines = file.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return sum(1 for line in lines if line.strip() and not line.lstrip().startswith("#"))


def _sum(counted: int, more: int | None) -> int | None:
    return None if more is None else max(1, counted + more)


def part(function: str, descriptor: Descriptor, base: Path) -> Part:
    """Return a function by its name in the descriptor. base: the folder of its files."""
    model = descriptor.functions[function]
    inner = settings(model)
    match inner:
        case Firewall() if inner.stateful:
            return Part("stateful")
        case Firewall():
            return Part("firewall", _sum(len(inner.rules), _listed(inner.rules_file, base)))
        case Router():
            if isinstance(inner.routes, KernelRoutes):
                return Part("router")  # how many is Linux's to say: taken for the most measured
            return Part("router", _sum(len(inner.listed), _listed(inner.routes_file, base)))
        case Classifier():
            return Part("classifier", max(1, len(inner.rules)))
        case Ids():
            return Part("ids", _sum(0, _listed(inner.rules_file, base)))
        case Balancer():
            return Part("balancer", len(inner.backends))
        case _:
            return Part(function_type(model))


def chain_parts(name: str, descriptor: Descriptor, base: Path) -> tuple[Part, ...]:
    """Return a chain's functions in order."""
    return tuple(part(one, descriptor, base) for one in descriptor.chains[name].path)
