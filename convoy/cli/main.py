# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The one command people type: each sub-command is a module of this folder."""

import importlib
import inspect
import re
import signal
import sys
from collections import UserDict
from typing import Any

import typer

from convoy import __version__
from convoy.base.problem import printable
from convoy.cli.console import EXIT_CODES, console, print_json
from convoy.cli.result import Result, wants_json
from convoy.errors import ConvoyError

COMMANDS = (
    "doctor",
    "check",
    "run",
    "top",
    "why",
    "mirror",
    "metrics",
    "apply",
    "confirm",
    "rollback",
    "history",
    "handover",
    "standby",
    "activate",
    "show",
    "next-hop",
    "network",
    "controller",
    "dictionary",
    "libvirt",
    "bench",
    "preload",
    "results",
    "report",
    "advise",
    "sim",
)


class _Modules(UserDict[str, Any]):
    """Commands by name. Imported when asked for: `check` needs no plots."""

    def __getitem__(self, name: str) -> Any:
        if name not in self.data:
            raise KeyError(name)
        try:
            module = importlib.import_module(f"convoy.cli.{name.replace('-', '_')}")
        except ModuleNotFoundError as error:
            return _without(name, error)
        one = typer.Typer()
        if hasattr(module, "app"):
            one.add_typer(module.app, name=name)
        else:
            one.command(name, epilog=EXIT_CODES)(module.command)
        return _in_paragraphs(typer.main.get_group(one).commands[name])


def _in_paragraphs(command: Any) -> Any:
    """Return a command whose help is as wide as the terminal, not as its docstring's lines."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(re.sub(r"\n(?![ *-])", " ", one) for one in paragraphs)
    for one in getattr(command, "commands", {}).values():
        _in_paragraphs(one)
    return command


def _without(name: str, error: ModuleNotFoundError) -> Any:
    """Return what stands for a command that lacks a Python module: the others are there."""
    one = typer.Typer(callback=lambda: None)  # a callback: else its only command has no name
    anything = {"allow_extra_args": True, "ignore_unknown_options": True}

    @one.command(name, help=f"Needs {error.name}, which is not here.", context_settings=anything)
    def _raise() -> None:
        raise error

    return typer.main.get_group(one).commands[name]


class _Commands(typer.core.TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Modules(dict.fromkeys(COMMANDS))

    def invoke(self, ctx: Any) -> None:
        """Run a command and print its result."""
        result = super().invoke(ctx)
        if isinstance(result, Result):
            print_json(result.document()) if wants_json(ctx) else result.show(console())
            if result.exit_code:
                raise typer.Exit(result.exit_code)


app = typer.Typer(
    name="convoy",
    help="Run service function chains, and measure them.",
    cls=_Commands,
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


def _on_term(number: int, frame: object) -> None:
    raise SystemExit(128 + number)  # unwinds every `with`: nothing stays behind


def _lacking(module: str) -> str:
    """What to do about a Python module that an installation is without."""
    # The tester's package brings what benchmarks and reports need.
    return (
        f"the Python module {module} is not here, and this command needs it; install Convoy's "
        "Debian package convoy-tester, or, in an environment of your "
        "own, pip install convoy-nfv"
    )


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
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module == "convoy":
            raise
        print(f"convoy: {_lacking(module)}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
