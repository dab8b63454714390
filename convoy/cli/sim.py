# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy sim: simulate chains of functions, small and large."""

import typer

from convoy.cli import sim_paper, sim_run, sim_saved, sim_sweep

app = typer.Typer(
    help="Simulate chains of functions: what travels on each link, how long, how loaded.",
    no_args_is_help=True,
)
app.command("run")(sim_run.run_command)
app.command("paper")(sim_paper.paper_command)
app.command("saved")(sim_saved.saved_command)
app.command("sweep")(sim_sweep.sweep_command)
