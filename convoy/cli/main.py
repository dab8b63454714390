# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The one command people type: each sub-command is a module of this folder."""

import signal
import sys

import typer

from convoy import __version__
from convoy.chain.problem import printable
from convoy.cli import advise, bench, check, doctor, next_hop, preload, report, run, sim, top
from convoy.cli.console import EXIT_CODES, print_json
from convoy.errors import ConvoyError

app = typer.Typer(
    name="convoy",
    help="Run service function chains, and measure them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"convoy {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


app.command("doctor", epilog=EXIT_CODES)(doctor.command)
app.command("check", epilog=EXIT_CODES)(check.command)
app.command("run", epilog=EXIT_CODES)(run.command)
app.command("top", epilog=EXIT_CODES)(top.command)
app.add_typer(next_hop.app, name="next-hop")
app.add_typer(bench.app, name="bench")
app.add_typer(preload.app, name="preload")
app.command("report", epilog=EXIT_CODES)(report.command)
app.command("advise", epilog=EXIT_CODES)(advise.command)
app.add_typer(sim.app, name="sim")


def _on_term(number: int, frame: object) -> None:
    raise SystemExit(128 + number)  # unwinds every `with`: nothing stays behind


def main() -> None:
    """Entry point: a ConvoyError becomes a line on stderr and its exit code.

    With --json it is also the one JSON document on stdout.
    """
    signal.signal(signal.SIGTERM, _on_term)
    signal.signal(signal.SIGHUP, _on_term)
    try:
        app()
    except ConvoyError as error:
        lines = [printable(line) for line in str(error).splitlines()]
        if "--json" in sys.argv:
            code = error.exit_code
            print_json(
                {"schema": "convoy.error/1", "ok": False, "exit_code": code, "errors": lines}
            )
        for line in lines:
            print(f"convoy: {line}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
