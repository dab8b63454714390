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
from convoy.cli.console import EXIT_CODES

app = typer.Typer(
    help="Measure functions in memory, and chains beside other dataplanes.", no_args_is_help=True
)
app.command("nf", epilog=EXIT_CODES)(bench_nf.command)
app.command("quick", epilog=EXIT_CODES)(bench_quick.command)
app.command("paflow", epilog=EXIT_CODES)(bench_paflow.command)
app.command("profile", epilog=EXIT_CODES)(bench_profile.command)
app.command("hostile", epilog=EXIT_CODES)(bench_hostile.command)
app.command("list", epilog=EXIT_CODES)(bench_run.show_list)
app.command("run", epilog=EXIT_CODES)(bench_run.run)
app.command("resume", epilog=EXIT_CODES)(bench_run.resume)
app.command("device-agent", hidden=True, epilog=EXIT_CODES)(bench_run.device_agent)
app.command("compare", epilog=EXIT_CODES)(bench_compare.command)
