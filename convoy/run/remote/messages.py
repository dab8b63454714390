# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a tester and a device agent say to each other: a line of JSON each, in turn.

The agent begins with its version, and then answers requests, one at a time. A ping has no answer:
it shows that the tester is still there. Both are of one version, so that a setup can be said as its
scenario writes it: each side makes the same of it.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from convoy import __version__
from convoy.results.device_host import Nics
from convoy.results.documents import Host
from convoy.results.scenario import SetupSpec
from convoy.run.environment import commit

SCHEMA: Literal["convoy.device-agent/1"] = "convoy.device-agent/1"
REQUEST_MAX = 1 << 20  # bytes of a line
ANSWER_MAX = 1 << 22
PING = "ping"
PING_S = 2.0  # from one to the next
LOST_S = 10.0  # without a line from the other side, the connection is lost

_Core = Annotated[int, Field(ge=0, le=4095)]
_Cores = Annotated[tuple[_Core, ...], Field(max_length=64)]
_Name = Annotated[str, Field(min_length=1, max_length=40)]
_Text = Annotated[str, Field(max_length=1 << 20)]
_Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class Message(BaseModel):
    """Anything but the first line."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, strict=True)

    def line(self) -> str:
        """Return it as it is sent."""
        return self.model_dump_json(by_alias=True)


class Hello(BaseModel):
    """The agent's first line. Another version's may say more."""

    model_config = ConfigDict(
        defer_build=True, extra="ignore", frozen=True, strict=True, populate_by_name=True
    )

    schema_tag: _Name = Field(SCHEMA, alias="schema")
    convoy: _Name = __version__
    commit: Annotated[str, Field(max_length=80)] | None = Field(default_factory=commit)


class Machine(Message):
    """What the machine is."""

    host: Host
    core: _Core  # for a device of one poll loop
    allowed: _Count  # cores
    numa_nodes: _Count
    hugepages: bool
    virtual_functions: bool  # of a network card: what the ports are


class Present(Message):
    """Whether a device is there: convoy.dut.base.Presence."""

    version: _Text
    missing: _Text
    remark: _Text


class Reason(Message):
    """Why not; empty: no reason."""

    why: _Text


class Placed(Message):
    """The cores for a setup; none: why."""

    cores: _Cores
    why: _Text = ""


class Started(Message):
    """A device that was started."""

    commands: Annotated[tuple[tuple[_Text, ...], ...], Field(max_length=4096)]
    notes: Annotated[tuple[_Text, ...], Field(max_length=64)]


class Done(Message):
    """It is done."""


class Times(Message):
    """Of one thread: convoy.host.run_queue.ThreadTime."""

    thread: _Count
    ran_ns: _Count
    waited_ns: _Count


class Seen(Message):
    """What /proc says of a device and its core."""

    alive: bool
    cpu_ns: _Count | None
    core_idle_ns: _Count
    core_at_ns: _Count
    watched: Annotated[tuple[Times, ...], Field(max_length=4096)]
    processes: Annotated[tuple[Times, ...], Field(max_length=4096)]


class Counters(Message):
    """What a device counts, by its own names."""

    counters: dict[str, Any] | None


class Spent(Message):
    """What a device, or a part of it, says it spent: convoy.dut.base.Cost."""

    busy_cycles: int
    packets: int
    source: _Text


class Costs(Message):
    """The whole device, if it counts, and its parts that do."""

    cost: Spent | None
    parts: Annotated[dict[_Text, Spent], Field(max_length=64)]


class Stopped(Message):
    """The output of a device that was stopped, by its processes' names."""

    output: Annotated[dict[_Text, _Text], Field(max_length=64)]


class Request(Message):
    """Something that the agent is asked for."""


class Begin(Request):
    """Prepare the interfaces. Comes first."""

    do: Literal["begin"] = "begin"
    ports: Nics


class IsPresent(Request):
    """Look whether a device is installed."""

    do: Literal["presence"] = "presence"
    device: _Name


class Cannot(Request):
    """Say why a device cannot do a setup."""

    do: Literal["cannot"] = "cannot"
    device: _Name
    setup: SetupSpec


class Place(Request):
    """Choose cores for a setup that asks for its own."""

    do: Literal["place"] = "place"
    setup: SetupSpec


class Start(Request):
    """Start a device; one at a time."""

    do: Literal["start"] = "start"
    device: _Name
    setup: SetupSpec
    cores: _Cores
    hugepages: bool


class Ready(Request):
    """Wait until it forwards."""

    do: Literal["ready"] = "ready"
    deadline_s: Annotated[float, Field(gt=0, le=600)]


class Look(Request):
    """Look at its processes and its core."""

    do: Literal["look"] = "look"
    core: _Core


class Count(Request):
    """Ask it what it counted."""

    do: Literal["counters"] = "counters"


class Charge(Request):
    """Ask it what packets cost."""

    do: Literal["cost"] = "cost"


class Stop(Request):
    """End it."""

    do: Literal["stop"] = "stop"


AnyRequest = Begin | IsPresent | Cannot | Place | Start | Ready | Look | Count | Charge | Stop
REQUEST: TypeAdapter[AnyRequest] = TypeAdapter(
    Annotated[AnyRequest, Field(discriminator="do")], config=ConfigDict(defer_build=True)
)


class Refused(Message):
    """What an answer is where a request fails."""

    error: Annotated[str, Field(max_length=4096)]
    code: Literal[1, 2]  # as a command's exit code
