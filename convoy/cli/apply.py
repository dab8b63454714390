# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy apply: a running node goes over to another descriptor."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from convoy.base.problem import printable, shown
from convoy.chain.fixed import more_cores_note, refuse_others
from convoy.chain.open import open_file
from convoy.cli.console import messages
from convoy.cli.options import seconds
from convoy.cli.refused import with_line
from convoy.cli.result import Json, Result
from convoy.cli.running import Pid, chosen
from convoy.client import Client, Difference
from convoy.errors import InputError
from convoy.host.apply import apply
from convoy.host.counts import RunningNode
from convoy.host.handover import HandedOver, hand_over
from convoy.host.machine import this_machine
from convoy.host.node_check import check_differences, check_plan
from convoy.host.programs import need

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


def confirm_seconds(text: str) -> int:
    """Return what --confirm means. Raises InputError."""
    result = round(seconds("--confirm", text))
    if not 1 <= result <= CONFIRM_MAX_S:
        raise InputError(f"--confirm: {shown(text)}: write a time from 1s to 24h, like 30s or 5m")
    return result


def _brief(value: Any) -> str:
    if value is None:
        return "its default"
    if isinstance(value, list) and all(isinstance(one, str) for one in value) and len(value) < 9:
        return ", ".join(value) or "nothing"
    if isinstance(value, list | dict):
        return f"{len(value)} entr{'y' if len(value) == 1 else 'ies'}"
    return shown(value) if isinstance(value, str) else str(value).lower()


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
        int | None,
        typer.Option(
            metavar="TIME",
            parser=confirm_seconds,
            help="Go back if it is not confirmed in time (30s, 5m).",
        ),
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
    confirm_s = confirm or 0
    node = chosen(pid)
    with Client(node.read) as client:
        running = client.plan()
    opened = open_file(file, this_machine(), None if handover else running)
    plan = opened.plan.data
    if opened.loaded is not None and not handover:
        refuse_others(opened.loaded, running)
        if note := more_cores_note(opened.loaded, running):
            messages().print(f"note: {note}", markup=False)
    try:
        if handover:
            if opened.loaded is None:
                check_plan(need("convoyd"), plan, file)
            return _by_handover(node, running, plan, dry_run, forget_flows, reload)
        differences = apply(node, plan, dry_run, forget_flows, confirm_s, reload)
    except InputError as error:
        raise InputError(with_line(printable(str(error)), file, opened)) from None
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
    forget_flows: bool,
    starts_with: bool,
) -> Applied:
    _check_sockets(running, plan)
    differences = check_differences(need("convoyd"), plan, running)
    if dry_run or not differences:
        return Applied(node, plan, differences, dry_run)
    done = hand_over(node, None, forget_flows, plan, starts_with)
    return Applied(done.after, plan, differences, dry_run, 0, done)
