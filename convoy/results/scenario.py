# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a scenario file (scenarios/*.yaml) and a run's plan.yaml may say: data only."""

from pathlib import PurePath
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
from pydantic_core import PydanticUndefined

from convoy.base.model import refuse_unknown_keys


def _either(words: str) -> WrapValidator:
    """Return a check of a choice of kinds that complains once, not for each kind."""

    def check(value: Any, inner: ValidatorFunctionWrapHandler) -> Any:
        try:
            return inner(value)
        except ValidationError:
            raise ValueError(words) from None

    return WrapValidator(check)


Load = Annotated[
    Literal["idle"] | Annotated[float, Field(gt=0, le=1)],
    _either("must be idle, or more than 0 and up to 1, a share of PDR"),
]
Rate = Annotated[float, Field(gt=0)]
Speed = Annotated[float, Field(ge=0.1, le=1)]


class _Model(BaseModel):
    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        alias_generator=lambda name: name.replace("_", "-"),
    )

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, data: Any) -> Any:
        refuse_unknown_keys(cls, data)
        return data


def _field(description: str, default: Any = PydanticUndefined, **more: Any) -> Any:
    """Return a field with what docs/scenarios.md says of it."""
    return Field(default, description=description, **more)


class Contents(_Model):
    """What is in a capture. A run writes it down; nobody else has to."""

    packets: int = _field("that are sent in a pass", ge=1)
    flows: int = _field("of these", ge=1)
    mean_bytes: float = _field("of a frame, with FCS", gt=0)
    filled: int = _field("packets of which a part was captured: the rest is zeros", 0, ge=0)
    left_out: str = _field("packets that are not sent, and why", "")


class Capture(_Model):
    """A capture that is replayed at each rate, in place of a frame size."""

    capture: str = _field(
        "a pcap or pcapng file; a relative path begins at the scenario's folder", min_length=1
    )
    name: str = _field("what results call it; default: the file's name", "")
    sha256: str = _field(
        "of the file: another one is refused; default: any, and a run writes it down",
        "", pattern=r"^([0-9a-f]{64})?$",
    )  # fmt: skip
    contents: Contents | None = _field("what is in it; a run writes it down", None)

    def __str__(self) -> str:
        return self.name or PurePath(self.capture).name


MIXES = ("imix", "facebook-like")
Size = Annotated[
    Annotated[int, Field(ge=64, le=1518)] | Literal["imix", "facebook-like"] | Capture,
    _either("must be 64 to 1518 (bytes with FCS), imix, facebook-like or {capture: FILE}"),
]


class Pacing(_Model):
    """When packets are due. Default: evenly, one by one."""

    burst_pkts: int = _field("packets that are due at once", 1, ge=1, le=65536)
    on_us: float | None = _field(
        "microseconds with packets, of every on-us + off-us", None, ge=1, le=1e7
    )
    off_us: float | None = _field("microseconds without", None, ge=0, le=1e7)

    def as_trial(self) -> dict[str, float]:
        """Return it as the tester takes it."""
        return self.model_dump(exclude_none=True)


class Changes(_Model):
    """How the device's configuration is replaced while packets flow, again and again."""

    replace: Literal["all", "one"] = _field(
        "all rules or routes, or one of them; what becomes of the tester's packets stays the same",
        "all",
    )
    every_ms: float = _field("milliseconds from one change to the next", 100.0, ge=1, le=60_000)


Ports = Literal["vhost-user", "memif", "virtio-user", "af_packet", "af_xdp"]


class SetupSpec(_Model):
    """What every device does in one setup."""

    functions: tuple[str, ...] = _field(
        "functions in order: firewall, router, l2fwd, macswap, stateful (a firewall), nat, "
        "balancer, bridge, classifier, ids, policer, seal and unseal (vpn), seal-aggfrag and "
        "unseal-aggfrag (many packets in one of ESP), to-ipv6 and to-ipv4 (nat64); empty: "
        "forward only",
        (),
    )
    entries: int = _field(
        "routes of each router; rules of each firewall, classifier, ids", 10, ge=1, le=100_000
    )
    deployment: Literal["inline", "pipeline", "process"] = _field(
        "all on one worker; a worker for each function; a process for each function", "inline"
    )
    ports: Ports | None = _field(
        "kind of ports (virtio-user: the device is the guest); default: of those that a device "
        "has, the one that compares best", None,
    )  # fmt: skip
    devices: tuple[str, ...] | None = _field("only these of the scenario's devices", None)
    options: dict[str, dict[str, str]] = _field(
        "a device's own options, by device", default_factory=dict
    )
    flows: int | None = _field("flows; default: the scenario's", None, ge=1, le=1 << 24)
    connections: Literal["udp", "tcp"] | None = _field(
        "rates are of new connections: udp: a packet and its answer; tcp: opened and closed, six "
        "segments; default: packets of known flows", None,
    )  # fmt: skip
    convoys: int = _field(
        "packets that the tester sends in one frame; 0: plain packets", 0, ge=0, le=255
    )
    pacing: Pacing | None = _field("default: the scenario's", None)
    chains: int = _field(
        "independent chains on the device's core; with as many `cores`, on one each", 1, ge=1, le=4
    )
    queues: int = _field("queue pairs of each port; flows are spread over them", 1, ge=1, le=16)
    cores: int = _field("cores of the device, each with a poll loop", 1, ge=1, le=64)
    changes: Changes | None = _field(
        "the configuration is replaced while packets flow; default: it stays", None
    )
    placement: Literal["same-node", "other-node"] | None = _field(
        "NUMA node of the core of each function's process; default: all on the device's core", None
    )


class Needs(_Model):
    """What the machine must have. Without it the scenario is listed with the reason."""

    cores: int = _field("logical processors that may be used", 2, ge=1)
    numa_nodes: int = _field("NUMA nodes of these", 1, ge=1)
    virtual_functions: bool = _field(
        "the device has virtual functions of a network card (SR-IOV): bench run --device-host",
        False,
    )
    folder: str | None = _field(
        "a folder of captures; a relative path begins at the scenario's folder", None
    )


class Figure(_Model):
    """The axes of the report's figures."""

    x: Literal["size", "setup", "rate", "cpu-speed"] = _field("along the figure", "size")
    y: Literal["Mpps", "Gb/s", "latency", "stages", "ratio", "lost", "cycles", "cpu"] = _field(
        "up the figure; stages: latency by where packets were; cycles: of the functions; "
        "cpu: CPU time of the device and its busy cycles, by frame size or rate",
        "Mpps",
    )


class Compare(_Model):
    """A setup whose rates the report divides by another's, of the same device."""

    setup: str = _field("the setup")
    over: str = _field("the setup that it is divided by")
    sizes: tuple[Size, ...] | None = _field("only at these frame sizes; default: all", None)
    target: float | None = _field("the quotient that is to be reached", None, gt=0)
    paper: str = _field("the paper's statement, if it is no number", "")


class Target(_Model):
    """What a device's rate is to reach in a setup, at the smallest frames."""

    setup: str = _field("the setup")
    device: str = _field("whose rate")
    mpps: float | None = _field("millions of packets or connections per second", None, gt=0)
    over: str | None = _field("the device whose rate it is divided by", None)
    times: float | None = _field("the quotient", None, gt=0)

    @model_validator(mode="after")
    def _one(self) -> "Target":
        if (self.mpps is None) == (self.times is None) or (self.over is None) != (
            self.times is None
        ):
            raise ValueError("give either mpps, or over and times")
        return self


class Applications(_Model):
    """Real servers and clients behind the functions of some setups, on both sides of the device."""

    run: tuple[Literal["iperf3-tcp", "iperf3-udp", "http", "ftp"], ...] = _field("which")
    setups: tuple[str, ...] | None = _field(
        "behind which of the scenario's setups; default: all of one firewall or router", None
    )
    sizes: tuple[Annotated[int, Field(ge=64, le=1518)], ...] = _field(
        "frame sizes of iperf3-udp", (64, 1500)
    )


class Quick(_Model):
    """What `--quick` leaves of the scenario. A key that is absent stays as it is."""

    setups: tuple[str, ...] | None = _field("only these setups", None)
    sizes: tuple[Size, ...] | None = _field("frame sizes", None)
    cpu_speeds: tuple[Speed, ...] | None = _field("CPU speeds", None)
    latency: tuple[Load, ...] | None = _field("loads", None)
    rates_pps: tuple[Rate, ...] | None = _field("fixed rates", None)
    devices: tuple[str, ...] | None = _field("devices", None)
    applications: Applications | None = _field("applications", None)


class Scenario(_Model):
    """Setups, devices and loads: every device is measured in every setup at every frame size."""

    title: str = _field("heading in reports")
    source: str = _field("paper and figure that it repeats, or who asks", alias="from")
    asks: str = _field("the question that it answers")
    setups: dict[str, SetupSpec] = _field("setups by name", default_factory=dict)
    devices: tuple[str, ...] = _field("devices under test; the first is the reference", ())
    sizes: tuple[Size, ...] = _field(
        "frame sizes: bytes with FCS, a mix, or a capture that is replayed", (64,)
    )
    cpu_speeds: tuple[Speed, ...] = _field(
        "shares of its core's time that a device gets, 0.1 to 1", (1.0,)
    )
    search: bool = _field("search for rates (MLRsearch); false: only the loads below", True)
    latency: tuple[Load, ...] = _field(
        "loads at which latency is measured: idle, or shares of PDR", ()
    )
    rates_pps: tuple[Rate, ...] = _field("fixed rates, in packets per second", ())
    saturation: int = _field(
        "trials a round at closed-loop saturation: the tester waits for the device", 0, ge=0, le=99
    )
    compare: tuple[Compare, ...] = _field(
        "setups to divide by others, at saturation; default: setups with convoys by those without",
        (),
    )
    targets: tuple[Target, ...] = _field("rates that are to be reached", ())
    pacing: Pacing | None = _field("when packets are due; default: evenly", None)
    noise: bool = _field("measure the first device again as the A/A control", True)
    applications: Applications | None = _field("servers and clients behind functions", None)
    flows: int = _field("UDP flows", 1000, ge=1, le=1 << 24)
    figure: Figure = _field("axes of the figures", Figure())
    references: tuple[str, ...] = _field("tables of papers: files of convoy/reference", ())
    in_memory: tuple[Literal["next-hop", "frame", "vring", "views", "crossing", "latency"], ...] = (
        _field("parts of the path that are measured in memory, without devices", ())
    )
    simulated: tuple[Literal["paper-topologies"], ...] = _field(
        "networks that are simulated, without devices", ()
    )
    needs: Needs = _field("what the machine must have", Needs())
    pending: str = _field("why it cannot run anywhere yet", "")
    quick: Quick = _field("what `--quick` leaves of it", Quick())

    @model_validator(mode="after")
    def _complete(self) -> "Scenario":
        parts = self.in_memory or self.simulated
        nothing = not (self.setups and self.devices) and not parts
        if not self.pending and nothing:
            raise ValueError(
                "a scenario needs setups and devices, in-memory, or simulated, or says what is "
                "pending"
            )
        sends = self.packets or self.applications is not None
        if not self.pending and not sends and self.setups:
            raise ValueError(
                "without a search there must be rates-pps to try, saturation, or applications"
            )
        return self

    @property
    def captures(self) -> tuple[Capture, ...]:
        """Return the sizes that are captures."""
        return tuple(size for size in self.sizes if isinstance(size, Capture))

    @property
    def changed(self) -> bool:
        """Return whether configurations are replaced in any setup."""
        return any(spec.changes is not None for spec in self.setups.values())

    @property
    def packets(self) -> bool:
        """Return whether the tester is to send packets, or only applications do."""
        return self.search or bool(self.rates_pps) or self.saturation > 0

    def quickly(self) -> "Scenario":
        """Return what --quick leaves of it. Raises ValidationError where that is no scenario."""
        quick = self.quick
        changed: dict[str, Any] = {}
        if quick.setups is not None:
            changed["setups"] = {name: self.setups[name] for name in quick.setups}
            left = set(quick.setups)
            changed["compare"] = tuple(c for c in self.compare if {c.setup, c.over} <= left)
            changed["targets"] = tuple(one for one in self.targets if one.setup in left)
        for name in ("sizes", "cpu_speeds", "latency", "rates_pps", "devices", "applications"):
            value = getattr(quick, name)
            if value is not None:
                changed[name] = value
        whole = self.model_copy(update=changed).model_dump(mode="json", by_alias=True)
        return Scenario.model_validate(whole)
