# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy bench quick: the example chain, measured beside dpdk-testpmd, in some minutes."""

from collections.abc import Sequence
from typing import Annotated

import typer

from convoy.cli.bench_run import begin, new_folder
from convoy.cli.options import NewFolder, split
from convoy.cli.result import Json, Result
from convoy.errors import InputError
from convoy.run.session import order_here, wanted
from convoy.search.goals import SMOKE

SIZES = ("64", "128", "256", "512", "1024", "1500", "imix")


def sizes_of(texts: Sequence[str] | None) -> tuple[int | str, ...]:
    """Return the sizes that --sizes names; all without. Raises InputError."""
    result: list[int | str] = []
    for name in split("--sizes", texts) or SIZES:
        if name not in ("imix",) and not (name.isdigit() and 64 <= int(name) <= 1518):
            raise InputError(f"--sizes: '{name}' is neither 64 to 1518 (bytes) nor imix")
        result.append(int(name) if name.isdigit() else name)
    return tuple(result)


def command(
    sizes: Annotated[
        list[str] | None,
        typer.Option(help="Frame sizes with FCS, imix.  [64,128,...,1500,imix]"),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Rounds through all devices.", min=1, max=99)] = 3,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="One short round at 64 B: does it all work?")
    ] = False,
    output: NewFolder = None,
    as_json: Json = False,
) -> Result:
    """The chain firewall, router, l2fwd on vhost-user, beside dpdk-testpmd: some minutes."""
    plan = wanted(
        ["quick"],
        repeats=1 if smoke else repeats,
        profile=SMOKE if smoke else "quick",
        goal_names=("pdr",),
        changes={"sizes": sizes_of(sizes or (["64"] if smoke else None))},
    )
    here = order_here(plan)
    if not any(one.device.name == "convoy" for one in here.device_runs):
        raise InputError(
            "; ".join(f"{one.device or one.scenario}: {one.why}" for one in here.cannot)
        )
    return begin(plan, new_folder(output, "quick"))
