# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a scenario file (scenarios/*.yaml) and a run's plan.yaml may say: data only."""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from convoy.chain.model import refuse_unknown_keys


def _either(words: str) -> WrapValidator:
    """Return a check of a choice of kinds that complains once, not for each kind."""

    def check(value: Any, inner: ValidatorFunctionWrapHandler) -> Any:
        try:
            return inner(value)
        except ValidationError:
            raise ValueError(words) from None

    return WrapValidator(check)


Size = Annotated[
    Annotated[int, Field(ge=64, le=1518)] | Literal["imix", "facebook-like"],
    _either("must be 64 to 1518 (bytes with FCS), imix or facebook-like"),
]
Load = Annotated[
    Literal["idle"] | Annotated[float, Field(gt=0, le=1)],
    _either("must be idle, or more than 0 and up to 1, a share of PDR"),
]
Rate = Annotated[float, Field(gt=0)]
Speed = Annotated[float, Field(ge=0.1, le=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, data: Any) -> Any:
        refuse_unknown_keys(cls, data)
        return data


class Pacing(_Model):
    """When packets are due: so many at once; only on-us of every on-us + off-us."""

    burst_pkts: int = Field(1, alias="burst-pkts", ge=1, le=65536)
    on_us: float | None = Field(None, alias="on-us", ge=1, le=1e7)
    off_us: float | None = Field(None, alias="off-us", ge=0, le=1e7)

    def as_trial(self) -> dict[str, float]:
        """Return it as the tester takes it."""
        return self.model_dump(exclude_none=True)


class SetupSpec(_Model):
    """What every device is to do in one row of a scenario."""

    functions: tuple[str, ...] = ()  # of convoy/dut/functions.py: WORKLOADS
    entries: int = Field(10, ge=1, le=100_000)  # routes of a router, rules of a firewall
    deployment: Literal["inline", "pipeline", "process"] = "inline"
    # Default: of those that a device has, the one that compares best. virtio-user: as the guest.
    ports: Literal["vhost-user", "memif", "virtio-user", "af_packet", "af_xdp"] | None = None
    devices: tuple[str, ...] | None = None  # only these
    options: dict[str, dict[str, str]] = Field(default_factory=dict)  # by device: its own
    convoys: int = Field(0, ge=0, le=255)  # packets that the tester sends in one frame; 0: one each
    pacing: Pacing | None = None  # default: the scenario's
    chains: int = Field(1, ge=1, le=4)  # independent ones, side by side on the device's core
    queues: int = Field(1, ge=1, le=16)  # pairs, of each port; flows are spread over them
    cores: int = Field(1, ge=1, le=64)  # of the device, each with a poll loop
    # Where a process for each function polls; default: all on the device's core.
    placement: Literal["same-node", "other-node"] | None = None


class Needs(_Model):
    """What the machine must have; where it has not, the scenario is listed with the reason."""

    cores: int = Field(2, ge=1)
    numa_nodes: int = Field(1, ge=1, alias="numa-nodes")


class Figure(_Model):
    """How a report draws it."""

    x: Literal["size", "setup", "rate", "cpu-speed"] = "size"
    y: Literal["Mpps", "Gb/s", "latency", "ratio", "lost"] = "Mpps"


class Compare(_Model):
    """A setup whose rates a report sets over another one's, of the same device."""

    setup: str
    over: str
    sizes: tuple[Size, ...] | None = None  # default: all that were measured
    target: float | None = Field(None, gt=0)  # that the ratio of the rates is to reach: ours
    paper: str = ""  # what the paper says of it, where that is no number


class Applications(_Model):
    """Real servers and clients behind the functions of some setups, on both sides of the device."""

    run: tuple[Literal["iperf3-tcp", "iperf3-udp", "http", "ftp"], ...]
    setups: tuple[str, ...] | None = None  # of the scenario's; default: all of one function
    sizes: tuple[Annotated[int, Field(ge=64, le=1518)], ...] = (64, 1500)  # of iperf3-udp's frames


class Quick(_Model):
    """What --quick leaves of a scenario."""

    setups: tuple[str, ...] | None = None
    sizes: tuple[Size, ...] | None = None
    cpu_speeds: tuple[Speed, ...] | None = Field(None, alias="cpu-speeds")
    latency: tuple[Load, ...] | None = None
    rates_pps: tuple[Rate, ...] | None = Field(None, alias="rates-pps")
    devices: tuple[str, ...] | None = None
    applications: Applications | None = None


class Scenario(_Model):
    """One file of scenarios/."""

    title: str
    source: str = Field(alias="from")  # paper, figure
    asks: str  # the question that it answers
    setups: dict[str, SetupSpec] = Field(default_factory=dict)
    devices: tuple[str, ...] = ()
    sizes: tuple[Size, ...] = (64,)
    cpu_speeds: tuple[Speed, ...] = Field((1.0,), alias="cpu-speeds")
    search: bool = True  # for rates; false: only rates-pps are tried
    latency: tuple[Load, ...] = ()
    rates_pps: tuple[Rate, ...] = Field((), alias="rates-pps")
    # So many trials a round in which a device gets all that it takes, and the tester waits.
    full_speed: int = Field(0, ge=0, le=99, alias="full-speed")
    compare: tuple[Compare, ...] = ()  # default: setups with convoys over those without
    pacing: Pacing | None = None  # default: evenly
    noise: bool = True  # measure the first device against itself too
    applications: Applications | None = None
    flows: int = Field(1000, ge=1, le=1 << 20)
    figure: Figure = Figure()
    references: tuple[str, ...] = ()  # files of convoy/reference
    in_memory: tuple[Literal["next-hop", "frame", "vring", "views"], ...] = Field(
        (), alias="in-memory"
    )
    needs: Needs = Needs()
    pending: str = ""  # why it cannot be run yet, anywhere
    quick: Quick = Quick()

    @model_validator(mode="after")
    def _complete(self) -> "Scenario":
        nothing = not (self.setups and self.devices) and not self.in_memory
        if not self.pending and nothing:
            raise ValueError(
                "a scenario needs setups and devices, or in-memory, or says what is pending"
            )
        sends = self.packets or self.applications is not None
        if not self.pending and not sends and self.setups:
            raise ValueError(
                "without a search there must be rates-pps to try, full-speed, or applications"
            )
        return self

    @property
    def packets(self) -> bool:
        """Return whether the tester is to send packets, or only applications do."""
        return self.search or bool(self.rates_pps) or self.full_speed > 0

    def quickly(self) -> "Scenario":
        """Return what --quick leaves of it. Raises ValidationError where that is no scenario."""
        quick = self.quick
        changed: dict[str, Any] = {}
        if quick.setups is not None:
            changed["setups"] = {name: self.setups[name] for name in quick.setups}
            left = set(quick.setups)
            changed["compare"] = tuple(c for c in self.compare if {c.setup, c.over} <= left)
        for name in ("sizes", "cpu_speeds", "latency", "rates_pps", "devices", "applications"):
            value = getattr(quick, name)
            if value is not None:
                changed[name] = value
        whole = self.model_copy(update=changed).model_dump(mode="json", by_alias=True)
        return Scenario.model_validate(whole)
