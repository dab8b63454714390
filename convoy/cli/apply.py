# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy apply: a running node goes over to another descriptor."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.base.problem import Loc, printable, shown
from convoy.chain.functions import function_type
from convoy.chain.load import Loaded
from convoy.chain.open import Opened, open_file
from convoy.cli.result import Json, Result
from convoy.cli.running import Pid, chosen
from convoy.client import Client, Difference
from convoy.errors import InputError
from convoy.host.apply import apply
from convoy.host.counts import RunningNode
from convoy.host.handover import HandedOver, hand_over
from convoy.host.machine import this_machine
from convoy.host.node_check import check_differences
from convoy.host.programs import need

# Where a descriptor says what a plan has under another key.
PLACES: dict[str, Loc] = {
    "convoys": ("ports",),
    "next_hops": ("next-hops",),
    "stages": ("chains",),
    "run_as": ("run-as",),
}
CONFIRM_MAX_S = 86400
SIGNS = {"added": "+", "removed": "-", "changed": "~"}


@dataclass(frozen=True)
class Applied(Result):
    """What differs, and whether the node runs it now."""

    node: RunningNode
    plan: dict[str, Any]
    differences: list[Difference]
    dry_run: bool
    confirm_s: int = 0
    handed_over: HandedOver | None = None  # another process runs it

    def document(self) -> dict[str, Any]:
        """See Result."""
        return {
            "schema": "convoy.applied/1",
            "pid": self.node.pid,
            "dry_run": self.dry_run,
            "confirm_s": self.confirm_s,
            "differences": [asdict(difference) for difference in self.differences],
            "handover": self._handover(),
        }

    def show(self, out: Console) -> None:
        """Print each difference, and what happened."""
        for difference in self.differences:
            out.print(self._line(difference), markup=False)
        if not self.differences:
            out.print(f"convoyd {self.node.pid} runs that already", markup=False)
        elif self.dry_run:
            out.print(f"convoyd {self.node.pid} would take it; nothing has changed", markup=False)
        else:
            out.print(f"convoyd {self.node.pid} runs it now", style="green", markup=False)
            if self.handed_over is not None:
                gap = f"no packet moved for {self.handed_over.gap_us:.0f} us"
                out.print(f"it took over from {self.handed_over.before.pid}: {gap}", markup=False)
            if self.confirm_s:
                out.print(f"it goes back in {self.confirm_s} s: convoy confirm", style="yellow")

    def _handover(self) -> dict[str, Any] | None:
        it = self.handed_over
        if it is None:
            return None
        return {"pid_before": it.before.pid, "gap_us": it.gap_us, "held_pkts": it.held_pkts}

    def _line(self, difference: Difference) -> str:
        line = words_of(difference)
        if difference.key is None:
            return line
        return f"{line}: {_brief(self._value(difference))}"

    def _value(self, difference: Difference) -> Any:
        """Return what a changed key is now."""
        plan, key, name = self.plan, difference.key, difference.name
        if difference.what == "chain" and key == "path":
            stages = [stage for stage in plan["stages"] if stage["chain"] == name]
            return [function for stage in stages for function in stage["path"]]
        places = {
            "port": "ports",
            "function": "functions",
            "chain": "chains",
            "next hop": "next_hops",
        }
        one = next(one for one in plan[places[difference.what]] if one["name"] == name)
        return one.get(key, one.get("config", {}).get(key))


def words_of(difference: Difference) -> str:
    """Return a difference as people read it, without the value."""
    line = f"{SIGNS[difference.change]} {difference.what} {difference.name}"
    return line if difference.key is None else f"{line}: {difference.key.replace('_', '-')}"


def seconds(text: str, option: str = "--confirm") -> int:
    """Return the seconds that "30s", "5m", "1h" or "30" mean. Raises InputError."""
    units = {"s": 1, "m": 60, "h": 3600}
    number = text[:-1] if text[-1:] in units else text
    result = int(number) * units.get(text[-1:], 1) if number.isdecimal() else 0
    if not 1 <= result <= CONFIRM_MAX_S:
        raise InputError(f"{option}: {shown(text)}: write a time up to 24h, like 30s or 5m")
    return result


def _brief(value: Any) -> str:
    if value is None:
        return "its default"
    if isinstance(value, list) and all(isinstance(one, str) for one in value) and len(value) < 9:
        return ", ".join(value) or "nothing"
    if isinstance(value, list | dict):
        return f"{len(value)} entr{'y' if len(value) == 1 else 'ies'}"
    return shown(value) if isinstance(value, str) else str(value).lower()


def place_of(words: str, loaded: Loaded, plan: dict[str, Any]) -> Loc:
    """Return where in a descriptor that is what a node's words are about."""
    functions = loaded.descriptor.functions
    name = words.partition(": ")[0]
    if name in functions:
        return ("functions", name, function_type(functions[name]).replace("_", "-"))
    named = re.match(r"plan(?:: |\.)functions\[(\d+)\]", words)
    if named is not None and int(named[1]) < len(plan["functions"]):
        return ("functions", plan["functions"][int(named[1])]["name"])
    key = words.removeprefix("plan: ").partition(":")[0]
    return PLACES.get(key, tuple(key.split("."))) if words.startswith("plan: ") else ()


def _with_line(words: str, file: Path, opened: Opened) -> str:
    """Return a node's words behind the line that they are about, where a descriptor has one."""
    if opened.loaded is None:
        return f"{file}: {words}"
    line = opened.loaded.text.line(place_of(words, opened.loaded, opened.plan.data))
    return f"{file}:{line}: {words.removeprefix('plan: ')}"


def command(
    file: Annotated[Path, typer.Argument(help="Chain descriptor (YAML), or a plan (JSON).")],
    pid: Pid = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what differs, and whether the node takes it.")
    ] = False,
    forget_flows: Annotated[
        bool,
        typer.Option(
            "--forget-flows", help="Also where functions would share flows otherwise than now."
        ),
    ] = False,
    confirm: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Go back if it is not confirmed in time (30s, 5m)."),
    ] = None,
    reload: Annotated[
        bool,
        typer.Option("--reload", help="FILE is also what the node will be started with."),
    ] = False,
    handover: Annotated[
        bool,
        typer.Option(
            "--handover",
            help="By a new process: ports, workers, memory and limits may differ, too.",
        ),
    ] = False,
    as_json: Json = False,
) -> Result:
    """Make a running node run another descriptor, while packets flow.

    Functions, chains and next hops are added, changed and removed. What did not change is not
    touched. No packet is lost, and none meets half of two descriptors. Ports, workers and limits
    must be as the node runs them; with --handover a new process takes over, where these may differ:
    peers of ports that are in both descriptors stay connected.
    """
    if handover and confirm is not None:
        raise InputError(
            "--confirm: not with --handover: the process that would go back has ended; "
            "apply the descriptor before again"
        )
    confirm_s = 0 if confirm is None else seconds(confirm)
    node = chosen(pid)
    with Client(node.read) as client:
        running = client.plan()
    opened = open_file(file, this_machine(), None if handover else running)
    plan = opened.plan.data
    try:
        if handover:
            return _by_handover(node, running, plan, dry_run, forget_flows, reload)
        differences = apply(node, plan, dry_run, forget_flows, confirm_s, reload)
    except InputError as error:
        raise InputError(_with_line(printable(str(error)), file, opened)) from None
    return Applied(node, plan, differences, dry_run, confirm_s)


def _check_sockets(running: dict[str, Any], plan: dict[str, Any]) -> None:
    """Refuse another port at the socket of one that runs, which is there until the node ends."""
    before = {port["path"]: port for port in running["ports"] if "path" in port}
    for port in plan["ports"]:
        if before.get(port.get("path"), port) != port:
            raise InputError(
                f"plan: ports.{port['name']}: not as the node runs it, at the same socket; "
                "give it another path, or restart the node"
            )


def _by_handover(
    node: RunningNode,
    running: dict[str, Any],
    plan: dict[str, Any],
    dry_run: bool,
    lose_flows: bool,
    starts_with: bool,
) -> Applied:
    _check_sockets(running, plan)
    differences = check_differences(need("convoyd"), plan, running)
    if dry_run or not differences:
        return Applied(node, plan, differences, dry_run)
    done = hand_over(node, None, lose_flows, plan, starts_with)
    return Applied(done.after, plan, differences, dry_run, 0, done)
