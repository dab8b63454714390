# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The one command people type: each sub-command is a module of this folder."""

import errno
import importlib
import inspect
import os
import re
import signal
import sys
from collections import UserDict
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO, cast

import typer

from convoy import __version__
from convoy.base.problem import printable, shown
from convoy.cli.console import console, print_json
from convoy.cli.examples import epilog
from convoy.cli.result import Result, wants_json
from convoy.errors import ConvoyError, InputError, message

# By what one wants to do; each with the first sentence of its help, so that the list of commands
# needs none of their modules.
GROUPS = {
    "Run chains": {
        "doctor": "Look at this machine: each finding with the command that fixes it.",
        "check": "Check a chain descriptor; start nothing.",
        "run": "Run a chain until Ctrl-C, the end of its captures, or --duration.",
        "network": "Run a network of nodes: functions with several instances.",
        "controller": "Steer a network of nodes by OpenFlow 1.3 until Ctrl-C.",
        "libvirt": "Print what attaches a virtual machine to a port.",
        "preload": "Start an unmodified DPDK program with convoys under it.",
        "dictionary": "Make a dictionary for compressed convoys from captured traffic.",
    },
    "Watch a running node": {
        "top": "Show the counters of a running node, on the terminal or as a page.",
        "why": "Show the way of packets through a running node.",
        "mirror": "Copy packets of a running node, as pcapng, to a socket or a file.",
        "metrics": "Serve the counters of a running node to Prometheus.",
        "show": "Print the plan that a node runs now.",
        "history": "Show what a running node ran, and what `convoy rollback` can go back to.",
    },
    "Change a running node": {
        "apply": "Make a running node run another descriptor, while packets flow.",
        "confirm": "Keep what `convoy apply --confirm` changed: the node does not go back.",
        "rollback": "Make a running node run what it ran before, while packets flow.",
        "next-hop": "Show and change next hops of a running node: where its convoys go.",
        "handover": "Replace a running node by a new process, while packets flow.",
        "standby": "Show whether a node is a standby, or has one.",
        "activate": "Have a standby forward from now on, with the flows of the active node.",
    },
    "Measure and plan": {
        "bench": "Measure functions in memory, and chains beside other dataplanes.",
        "report": "Make a report of what was measured; starts nothing and needs no network.",
        "results": "Pack results of runs into a file, or query them by SQL.",
        "advise": "Say where each function should run, and how many cores that takes.",
        "sim": "Simulate chains of functions: what travels on each link, how long, how loaded.",
    },
}
COMMANDS = tuple(name for group in GROUPS.values() for name in group)

_STANDARD = {"stdin": "r", "stdout": "w", "stderr": "w"}  # by their numbers
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UsageError: Any = typer.BadParameter.__base__  # a command line is wrong


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
            one.command(name)(module.command)
        return _with_help(typer.main.get_group(one).commands[name], name)


def _with_help(command: Any, words: str) -> Any:
    """Return a command whose help is as wide as the terminal, and ends with examples."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(re.sub(r"\n(?![ *-])", " ", one) for one in paragraphs)
    for option in command.params:
        if getattr(option, "is_flag", False):
            option.metavar = ""  # Typer's lists say <bool>, which a flag does not take
    below = getattr(command, "commands", None)
    if below is None:
        command.epilog = epilog(words)
    for name, one in (below or {}).items():
        _with_help(one, f"{words} {name}")
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

    def list_commands(self, ctx: Any) -> list[str]:
        """Return their names."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return what a list of commands shows of one, without its module."""
        for title, group in GROUPS.items():
            if cmd_name in group:
                return typer.core.TyperCommand(
                    cmd_name, help=group[cmd_name], rich_help_panel=title
                )
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that was asked for."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, self.commands[name] if name and command else None, rest

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
    epilog="`convoy COMMAND --help` has its options, and examples.",
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


def _usage(error: Any) -> str:
    """Return what is wrong with a command line, and where its options are listed."""
    what = " ".join(error.format_message().split()).rstrip(".")
    if what.startswith("Invalid value for "):
        name, _, rest = what.removeprefix("Invalid value for ").partition(": ")
        what = f"{name.rpartition(' / ')[2].strip(chr(39))}: {rest}"
    if hasattr(error.__cause__, "errors"):  # pydantic's
        detail = error.__cause__.errors(include_url=False)[0]
        what = f"{what.partition(': ')[0]}: {shown(detail['input'])}: {message(detail)}"
    path = error.ctx.command_path if error.ctx else "convoy"
    of = path.removeprefix("convoy").strip()
    return f"{of}{': ' if of else ''}{what}; {path} --help says what there is"


def _end(lines: Sequence[str], exit_code: int) -> NoReturn:
    """Print why a command failed, and end. With --json it is also the one document on stdout."""
    lines = [printable(line) for line in lines]
    for line in lines:
        print(f"convoy: {line}", file=sys.stderr)
    if "--json" in sys.argv:
        print_json(
            {"schema": "convoy.error/1", "ok": False, "exit_code": exit_code, "errors": lines}
        )
    sys.exit(exit_code)


def _open_closed() -> None:
    """Open what the shell has closed (`>&-`): no file or socket of ours may get its number."""
    while (number := os.open(os.devnull, os.O_RDWR)) < len(_STANDARD):
        os.set_inheritable(number, True)
    os.close(number)
    for number, (name, mode) in enumerate(_STANDARD.items()):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


class _UnprintableError(Exception):
    """Standard output does not take what is written to it."""


class _Output:
    """Standard output, whose errors are told from those of other files."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text. Raises _UnprintableError."""
        try:
            return self._stream.write(text)
        except OSError as error:
            raise _UnprintableError from error

    def flush(self) -> None:
        """Write what is left. Raises _UnprintableError."""
        try:
            self._stream.flush()
        except OSError as error:
            raise _UnprintableError from error


def main() -> None:
    """Entry point: an error becomes a line on stderr and its exit code."""
    signal.signal(signal.SIGTERM, _on_term)
    signal.signal(signal.SIGHUP, _on_term)
    _open_closed()
    out = sys.stdout
    sys.stdout = cast(TextIO, _Output(out))
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()
    except _UnprintableError as error:
        why = cast(OSError, error.__cause__)
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())  # for what is left
        if not isinstance(why, BrokenPipeError):  # else nobody wants more of it
            print(f"convoy: standard output: {why.strerror}", file=sys.stderr)
        sys.exit(ConvoyError.exit_code)
    finally:
        sys.stdout = out


def _run() -> NoReturn:
    try:
        sys.exit(app(standalone_mode=False))
    except ConvoyError as error:
        _end(str(error).splitlines(), error.exit_code)
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help is printed
            sys.exit(InputError.exit_code)
        _end([_usage(error)], InputError.exit_code)
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module == "convoy":
            raise
        _end([_lacking(module)], InputError.exit_code)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _end([f"{error.filename or 'a file'}: {error.strerror}"], ConvoyError.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
