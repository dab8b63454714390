# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Over a hundred kinds of loss, injected in any order; `convoy why` alone says which is which."""

import json
import shlex
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from convoy.cli.main import app
from convoy.host.process import wait_for
from node.conftest import convoyd, runtime_folder

from .injector import DEADLINE_S, Injector, available
from .kinds import FLOWS, NODE, NOT_PROVOKED, PLACES, Kind
from .verdicts import Verdict, verdicts_of

__all__ = ["convoyd", "runtime_folder"]


def why_meanwhile(injector: Injector, folder: Path) -> list[str]:
    """Return what `convoy why --drops` prints while packets are lost."""
    armed, done = folder / "armed", folder / "done"
    errors: list[BaseException] = []

    def inject() -> None:
        try:
            wait_for(armed.exists, DEADLINE_S, "convoy why to be armed")
            injector.inject()
        except BaseException as error:
            errors.append(error)
        finally:
            done.touch()

    meanwhile = f"touch {armed}; until [ -e {done} ]; do sleep 0.05; done"
    injecting = threading.Thread(target=inject)
    injecting.start()
    ran = CliRunner().invoke(
        app,
        ["why", "--drops", "--json", "--snap", "2048", "--pid", str(injector.node.process.pid),
         "--run", f"sh -c {shlex.quote(meanwhile)}"],
    )  # fmt: skip
    injecting.join()
    assert not errors, errors
    assert ran.exit_code == 0, ran.output
    return ran.stdout.splitlines()


def expected(place: str, kind: Kind) -> tuple[str | None, str]:
    """Return who should be said to have dropped it, and why."""
    return (kind.by if kind.by in (NODE, FLOWS) else place), kind.reason


@pytest.mark.parametrize("seed", [1, 2])
def test_each_kind_of_loss_is_named_rightly(tmp_path: Path, seed: int) -> None:
    places = available(PLACES, tmp_path)
    injector = Injector(places, tmp_path, seed)
    with injector.node as node:
        lines = why_meanwhile(injector, tmp_path)
        counts = node.stop()
    assert json.loads(lines[-1])["lost"] == 0
    verdicts = verdicts_of(lines)
    secret = injector.secret()
    wrong = {
        f"{place}: {kind.what}": (verdicts.get(packet), expected(place, kind))
        for packet, (place, kind) in secret.items()
        if named(verdicts.get(packet)) != expected(place, kind)
    }
    assert wrong == {}
    assert counts["accounting"]["conserved"]
    if places == PLACES:
        assert len({(verdict.chain, verdict.reason) for verdict in verdicts.values()}) >= 100
        assert not_provoked(counts, secret.values()) == NOT_PROVOKED


def named(verdict: Verdict | None) -> tuple[str | None, str] | None:
    return None if verdict is None else (verdict.function, verdict.reason)


def not_provoked(counts: Any, lost: Any) -> dict[str, set[str]]:
    """Return the reasons that functions have and that nothing was lost for, by type."""
    left: dict[str, set[str]] = defaultdict(set)
    seen: dict[str, set[str]] = defaultdict(set)
    for function in counts["functions"].values():
        left[function["type"]] |= set(function["drops"])
    for group in counts["flows"].values():
        left[FLOWS] |= set(group["drops"])
    left["node"] = set(counts["ports"]["in"]["drops"])
    for place, kind in lost:
        by, reason = expected(place, kind)
        kind_of = by if by == FLOWS else "node" if by is None else counts["functions"][by]["type"]
        seen[kind_of].add(reason)
    return {name: left[name] - seen[name] for name in left if left[name] - seen[name]}
