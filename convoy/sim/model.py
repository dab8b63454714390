# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a topology file says: functions with instances, sources, chains, links, a fabric."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from convoy.base.model import Model, Name, one_of

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class Size(Model):
    """One packet size and how often it comes."""

    bytes: int = Field(ge=64, le=9018, description="on the wire, with FCS")
    weight: Count = 1


IMIX = [
    {"bytes": 64, "weight": 28},
    {"bytes": 570, "weight": 16},
    {"bytes": 1518, "weight": 4},
]


def _sizes(value: Any) -> Any:
    if value == "imix":
        return IMIX
    if isinstance(value, int) and not isinstance(value, bool):
        return [{"bytes": value}]
    return value


Sizes = Annotated[list[Size], BeforeValidator(_sizes), Field(min_length=1)]
ONE_SIZE = [Size(bytes=64)]


class Rate(Model):
    """What every source but a capture has."""

    mpps: float = Field(gt=0, le=1e6, description="mean rate of one source, million packets/s")
    sizes: Sizes = Field(ONE_SIZE, description="bytes, or a list of {bytes, weight}, or imix")
    flows: int = Field(1, ge=1, le=65536, description="packets are drawn from this many")
    phase: Literal["random", "together"] = Field(
        "random", description="sources begin at a random point of their cycle, or all at 0"
    )


class Cbr(Rate):
    """Equal gaps."""


class Poisson(Rate):
    """Exponential gaps."""


class OnOff(Rate):
    """Bursts of one length at equal gaps, and silences drawn uniformly."""

    on_ms: Positive = 1.0
    off_ms: list[Positive] = Field([0.1, 1.0], min_length=2, max_length=2)

    @model_validator(mode="after")
    def _ascending(self) -> "OnOff":
        if self.off_ms[0] > self.off_ms[1]:
            raise ValueError("off-ms: the largest is below the smallest; swap them")
        return self


class ParetoOnOff(Rate):
    """Bursts and silences with heavy tails: aggregates of many are self-similar."""

    on_ms: float = Field(1.0, gt=0, description="mean")
    off_ms: float = Field(0.55, gt=0, description="mean")
    shape: float = Field(1.5, gt=1, description="of both Pareto distributions")


class Pcap(Model):
    """Times, sizes and flows of a capture."""

    file: str
    loop: bool = False


class Sources(Model):
    """What sources of all kinds have."""

    count: int = Field(1, ge=1, le=65536, description="how many of them")
    split: Literal["round-robin", "flow"] | None = Field(
        None,
        description="where a source feeds several instances: in turn (default), or by flow "
        "(default for a capture)",
    )


class CbrSource(Sources):
    """cbr sources."""

    cbr: Cbr


class PoissonSource(Sources):
    """poisson sources."""

    poisson: Poisson


class OnOffSource(Sources):
    """on-off sources."""

    on_off: OnOff


class ParetoOnOffSource(Sources):
    """pareto-on-off sources."""

    pareto_on_off: ParetoOnOff


class PcapSource(Sources):
    """Captures, replayed."""

    pcap: Pcap


Source = CbrSource | PoissonSource | OnOffSource | ParetoOnOffSource | PcapSource
AnySource: Any = one_of(
    "sources",
    {
        "cbr": CbrSource,
        "poisson": PoissonSource,
        "on-off": OnOffSource,
        "pareto-on-off": ParetoOnOffSource,
        "pcap": PcapSource,
    },
)


class MaxRate(Model):
    """How many original packets a second a function can take."""

    plain: Positive
    aggregated: Positive


class NoAggregation(Model):
    """Packets leave as they came."""


class TableAggregation(Model):
    """Packets per frame follow the rate measured for the next hop, as in the papers."""

    profile: str | None = Field(None, description="default: the topology's")
    window_ms: Positive = 5.0
    weight: float = Field(1.0, ge=1e-6, le=1, description="of the newest window in the rate")
    flush_us: float = Field(20.0, gt=0, description="no packet waits longer for company")


class QueueAggregation(Model):
    """What lies in the queue when the server comes round is aggregated."""

    burst: int = Field(32, ge=1, le=65535)
    wait_us: float = Field(
        0.0, ge=0, description="a frame that is not full waits so long for more packets; 0: not"
    )
    burst_ns: float | None = Field(
        None,
        ge=0,
        description="work once per burst; default: none, but with like: the profile's by frame",
    )


class Frames(Model):
    """The size of frames. The default is the convoy frame over IPv4, with FCS."""

    mtu: int = Field(1500, ge=64, le=65535)
    frame_overhead: int = Field(50, ge=0, le=1000)
    packet_overhead: int = Field(2, ge=0, le=100)
    max_packets: int = Field(255, ge=1, le=255)


class Aggregation(Model):
    """How a function aggregates packets for the same next hop. One of none, table, queue."""

    none: NoAggregation | None = None
    table: TableAggregation | None = None
    queue: QueueAggregation | None = None
    frames: Frames = Frames()

    @model_validator(mode="before")
    @classmethod
    def _present(cls, data: Any) -> Any:
        # `none:` with nothing after it is an answer too.
        if isinstance(data, dict):
            data = {k: ({} if v is None else v) for k, v in data.items()}
        return data

    @model_validator(mode="after")
    def _one(self) -> "Aggregation":
        given = [x for x in (self.none, self.table, self.queue) if x is not None]
        if len(given) > 1:
            raise ValueError("none, table and queue exclude each other; keep one of them")
        return self


class Function(Model):
    """A network function: equal instances that share its packets."""

    instances: int = Field(1, ge=1, le=65536)
    max_mpps: float | MaxRate | None = Field(
        None, description="original packets; default: what the aggregation profile says"
    )
    like: str | None = Field(
        None, description="a function of the profile, whose measured costs it has"
    )
    service: Literal["fixed", "exponential"] = "fixed"
    byte_ns: float = Field(0.0, ge=0, description="work per byte, beyond max-mpps")
    queue_packets: int = Field(0, ge=0, description="0: without limit, as in the papers")
    next_hop: Literal["round-robin", "hash", "weighted"] = "round-robin"
    weights: list[Count] | None = Field(None, description="weighted: of the next's instances")
    aggregation: Aggregation | None = Field(None, description="default: the file's")
    hosts: list[int] | None = Field(None, description="in a fabric: where its instances are")


class Sink(Model):
    """Where chains end."""

    instances: int = Field(1, ge=1, le=65536)
    hosts: list[int] | None = None


class Chain(Model):
    """Packets of a source pass functions in order and end in a sink."""

    from_: Name = Field(alias="from")
    to: Name
    path: list[Name] = Field(min_length=1)
    spread: Literal["mesh", "tree"] = Field(
        "mesh", description="to every instance of the next, or to a share of them"
    )


class Links(Model):
    """What joins the nodes (with a fabric: its links too)."""

    gbps: float = Field(40.0, gt=0, le=100000)
    delay_us: float = Field(1.0, ge=1e-6, le=1e9)
    queue_frames: int = Field(0, ge=0, description="at each sending port; 0: without limit")


class FatTree(Model):
    """A k-ary fat tree: k pods of k/2 edge and k/2 aggregation switches, k^3/4 hosts."""

    k: int = Field(4, ge=2, le=64)
    place: Literal["spread", "pack"] = Field(
        "spread", description="instances over pods in turn, or side by side along the chain"
    )

    @model_validator(mode="after")
    def _even(self) -> "FatTree":
        if self.k % 2:
            raise ValueError("k must be even")
        return self


class Fabric(Model):
    """The network between hosts. Without one, nodes are joined directly."""

    fat_tree: FatTree


class Simulate(Model):
    """How long, and from which seed."""

    duration_s: float = Field(1.0, gt=0, le=8e6)
    seed: int = Field(1, ge=0, le=2**63 - 1)
    chunk_ms: float = Field(1.0, gt=0, le=1e6)


class Topology(Model):
    """A topology file."""

    title: str = ""
    profile: str = Field(
        "paper-simulation",
        description="of nodes: a name, or a file that convoy bench profile wrote",
    )
    simulate: Simulate = Simulate()
    sources: dict[Name, AnySource] = Field(min_length=1)
    functions: dict[Name, Function] = Field(min_length=1)
    sinks: dict[Name, Sink] = Field({}, description="default: one for each `to` of the chains")
    chains: dict[Name, Chain] = Field(min_length=1)
    aggregation: Aggregation = Aggregation()
    links: Links = Links()
    fabric: Fabric | None = None
