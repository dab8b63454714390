# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy bench: everything that is measured."""

import typer

from convoy.cli import (
    bench_compare,
    bench_hostile,
    bench_nf,
    bench_paflow,
    bench_profile,
    bench_quick,
    bench_run,
)

app = typer.Typer(
    help="Measure functions in memory, and chains beside other dataplanes.", no_args_is_help=True
)
app.command("nf")(bench_nf.command)
app.command("quick")(bench_quick.command)
app.command("paflow")(bench_paflow.command)
app.command("profile")(bench_profile.command)
app.command("hostile")(bench_hostile.command)
app.command("list")(bench_run.show_list)
app.command("run")(bench_run.run)
app.command("resume")(bench_run.resume)
app.command("device-agent", hidden=True)(bench_run.device_agent)
app.command("compare")(bench_compare.command)
