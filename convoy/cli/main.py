# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The one command people type: each sub-command is a module of this folder."""

import sys

import typer

from convoy import __version__
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


def main() -> None:
    """Entry point: a ConvoyError becomes one line on stderr and its exit code."""
    try:
        app()
    except ConvoyError as error:
        print(f"convoy: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
