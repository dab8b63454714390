# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Every device that is here does the same with the same packets, byte for byte.

This is what makes comparing them fair: who is fast because it does less is found here. A device
that is known to do something else has its name in the row, and the row is not asked of it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from convoy.dut import functions
from convoy.dut.addresses import LEFT_MAC, RIGHT_MAC
from convoy.dut.base import Device, Function, PortAt, Setup
from convoy.dut.convoy import Convoy
from convoy.dut.devices import DEVICES, device
from convoy.dut.payload_functions import ids, seal, unseal
from convoy.host.programs import find
from cores import CORES

from . import packets
from .packets import (
    arp,
    esp,
    fragments,
    icmp,
    ipv6,
    options,
    other,
    routed,
    tagged,
    tcp,
    udp,
    wrong_checksum,
)
from .wire import interfaces, joined, wire

pytestmark = [
    pytest.mark.skipif(find("convoyd") is None, reason="convoyd is not built: make build"),
    pytest.mark.skipif(
        os.geteuid() != 0, reason="only root makes veth and namespaces: sudo make check"
    ),
]

Change = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Row:
    """A packet in, and out: None where it is dropped."""

    description: str
    frame: bytes
    change: Change | None
    not_of: frozenset[str] = field(
        default_factory=frozenset
    )  # devices (and their ports) that do otherwise


def same(frame: bytes) -> bytes:
    return frame


def to(hop: int) -> Change:
    return lambda frame: routed(frame, RIGHT_MAC, f"02:00:00:00:01:{hop:02x}")


# DPDK's af_packet driver lets the kernel reassemble: a fragment that comes alone goes no further.
REASSEMBLE = frozenset(f"{switch}+vnf-linux" for switch in ("bess", "ovs-dpdk", "testpmd"))
FRAGMENTS_PASS = frozenset({"ovs-dpdk", "linux", "vm", "bess", "fastclick"})
RULES = Function(
    "firewall",
    {
        "default": "deny",
        "rules": [
            {"deny": {"src": "198.18.0.66", "proto": "udp"}},
            {"allow": {"src": "198.18.0.0/24", "proto": "udp", "sport": 7, "dport": 4000}},
            {"allow": {"dst": "198.19.0.0/16", "proto": "udp", "dport": "4096-4102"}},
            {"deny": {"proto": "tcp", "dport": 4096}},
            {"allow": {"src": "198.18.0.0/15", "proto": "tcp"}},
            {"allow": {"proto": "icmp"}},
        ],
    },
)
RULE_ROWS = [
    Row("first of a range", udp(), same),
    Row("last of a range", udp(dport=4102), same),
    Row("below a range", udp(dport=4095), None),
    Row("above a range", udp(dport=4103), None),
    Row("another destination", udp(dst="198.18.9.9"), None),
    Row("denied before it is allowed", udp(src="198.18.0.66"), None),
    Row("allowed by both ports", udp(sport=7, dport=4000), same),
    Row("only one of the ports", udp(sport=8, dport=4000), None),
    Row("a rule's source is a prefix", udp(src="198.18.1.1", sport=7, dport=4000), None),
    Row("the same ports, another protocol", tcp(), None),
    Row("another port of that protocol", tcp(dport=4097), same),
    Row("a protocol without ports", icmp(), same),
    Row("a protocol of no rule", esp(), None),
    Row("options before the ports", options(), same),
    Row("options before other ports", options(dport=4095), None),
    Row("the largest frame", udp(size=1514 - len(udp())), same),
    Row("its last TTL", udp(ttl=1), same),
    Row("ARP", arp(), same),
    Row("neither IP nor ARP", other(), same),
    Row("IPv6, of which no rule speaks", ipv6(), None),
    Row("a first fragment, of an allowed port", fragments()[0], same, REASSEMBLE),
    Row("a first fragment, of another port", fragments(dport=4095)[0], None),
    # VPP lets all non-first fragments meet rules as if they had the ports.
    Row("a later one, allowed by ports alone", fragments()[1], None, frozenset({"vpp"})),
    Row("a first fragment without ports", fragments(icmp)[0], same, REASSEMBLE),
    Row("a later one without ports", fragments(icmp)[1], same, REASSEMBLE),
    Row("a first fragment, of a port that is denied", fragments(tcp)[0], None),
    # Others do not see that rule, and go on to the next.
    Row("a later one, of what may be denied", fragments(tcp)[1], None, FRAGMENTS_PASS),
]

ROUTES = Function(
    "router",
    {
        "routes": [
            "198.19.0.0/16 via 192.0.2.1 dev right",
            "198.19.4.0/22 via 192.0.2.2 dev right",
            "198.19.5.0/24 via 192.0.2.3 dev right",
            "198.19.5.7/32 via 192.0.2.1 dev right",
        ],
        "neighbours": {f"192.0.2.{i}": f"02:00:00:00:01:{i:02x}" for i in (1, 2, 3)},
    },
)
ROUTE_ROWS = [
    Row("the shortest prefix", udp(), to(1)),
    Row("its last address", udp(dst="198.19.255.254"), to(1)),
    Row("a longer one in it", udp(dst="198.19.4.0"), to(2)),
    Row("its last address", udp(dst="198.19.7.255"), to(2)),
    Row("a longer one in that", udp(dst="198.19.5.6"), to(3)),
    Row("one address", udp(dst="198.19.5.7"), to(1)),
    Row("no route", udp(dst="198.20.0.1"), None),
    Row("the last TTL but one", udp(ttl=2), to(1)),
    Row("the last TTL", udp(ttl=1), None),
    Row("the highest TTL", udp(ttl=255), to(1)),
    Row("a checksum that wraps", udp(id=0xBEEF, ttl=33), to(1)),
    Row("TCP", tcp(), to(1)),
    # VPP leaves packets with options to others, of which there are none.
    Row("options", options(), to(1), frozenset({"vpp"})),
    Row("the largest frame", udp(size=1514 - len(udp())), to(1)),
    Row("a first fragment", fragments()[0], to(1), REASSEMBLE),
    Row("a non-first fragment", fragments()[1], to(1), REASSEMBLE),
    Row("ARP", arp(), None),
    Row("neither IP nor ARP", other(), None),
    Row("IPv6", ipv6(), None),
    # OpenFlow's dec_ttl changes the checksum, and does not look whether it was right.
    Row("a wrong checksum", wrong_checksum(udp()), None, frozenset({"ovs-dpdk"})),
]

OTHER_MAC = "02:00:00:00:02:01"
ALL_KINDS = [udp(), udp(ttl=1), udp(size=1514 - len(udp())), tcp(), ipv6(), arp(), other(),
             tagged(udp()), tagged(ipv6())]  # fmt: skip


def each(change: Change, not_of: frozenset[str] = frozenset()) -> list[Row]:
    return [Row(f"frame {i}", frame, change, not_of) for i, frame in enumerate(ALL_KINDS)]


def swapped(frame: bytes) -> bytes:
    return frame[6:12] + frame[:6] + frame[12:]


def ports_swapped(frame: bytes) -> bytes:
    addresses, ports = frame[30:34] + frame[26:30], frame[36:38] + frame[34:36]
    return swapped(frame)[:26] + addresses + ports + frame[38:]


CASES: list[tuple[str, tuple[Function, ...], list[Row]]] = [
    ("nothing", (), each(same)),
    ("firewall", (RULES,), RULE_ROWS),
    ("router", (ROUTES,), ROUTE_ROWS),
    (
        "l2fwd",
        (functions.layer2(),),
        each(
            lambda frame: packets.rewritten(frame, RIGHT_MAC, OTHER_MAC),
            frozenset({"testpmd-vhost-user"}),  # writes DPDK's own address: see testpmd.py
        ),
    ),
    ("bridge", (functions.bridge(),), each(same)),
    (
        "5tswap",
        (Function("5tswap"),),
        [Row("UDP", udp(), ports_swapped), Row("TCP", tcp(), ports_swapped)],
    ),
    ("swap", (Function("l2fwd", {"mode": "swap"}),), each(swapped)),
    (
        "chain",
        (RULES, ROUTES, functions.layer2()),
        [
            Row("through all", udp(), lambda f: routed(f, RIGHT_MAC, OTHER_MAC)),
            Row("stopped by the first", udp(dport=9), None),
            Row("stopped by the second", udp(ttl=1), None),
            Row("through all again", udp(dst="198.19.5.6"),
                lambda f: routed(f, RIGHT_MAC, OTHER_MAC)),
        ],
    ),
    ("two routers", (ROUTES, functions.router(15)), [
        Row("TTL less two", udp(dst="198.19.0.200"),
            lambda f: routed(routed(f, LEFT_MAC, LEFT_MAC), RIGHT_MAC, "02:00:00:00:01:03")),
        Row("not enough TTL", udp(ttl=2), None),
        Row("enough", udp(ttl=3), lambda f: routed(routed(f, LEFT_MAC, LEFT_MAC),
                                                   RIGHT_MAC, "02:00:00:00:01:01")),
    ]),
]  # fmt: skip

# By our node alone: what is sealed for one end of a tunnel is opened by the other.
CASES += [
    ("tunnel", (seal(), unseal()), [
        Row("sealed and opened", udp(), lambda f: f[:12] + routed(f, RIGHT_MAC, LEFT_MAC)[12:]),
        Row("not IP", arp(), same),
    ]),
    ("aggregated", (seal(aggregate=True), unseal(aggregate=True)), [
        Row("sealed and opened", udp(), lambda f: f[:12] + routed(f, RIGHT_MAC, LEFT_MAC)[12:]),
    ]),
    ("ids", (ids(10),), [Row("no pattern", udp(), same)]),
]  # fmt: skip

KINDS = ("vhost-user", "virtio-user", "memif", "af_packet")
IN_A_MACHINE = ("firewall", "chain")  # what it runs is the kernel's; a boot takes long
BEHIND_A_SWITCH = ("chain",)  # VNFs are devices that meet all cases themselves
# A device's first kind of port meets all cases, the others one.
OTHER_KINDS_TOO = {True: "chain", False: "l2fwd"}  # by whether it has chains
# A switch and VNFs that get a core in turn do not forward where others want it too.
IN_TURN = pytest.mark.alone
COMBINATIONS = [
    pytest.param(
        device,
        kind,
        case[0],
        id=f"{device.name}-{kind}-{case[0]}",
        marks=[IN_TURN] if device.name.endswith("+vnf") else [],
    )
    for device in DEVICES
    for number, kind in enumerate(kind for kind in KINDS if kind in device.ability.port_kinds)
    for case in CASES
    if number == 0 or case[0] == OTHER_KINDS_TOO[device.ability.chains]
    if device.name != "vm" or case[0] in IN_A_MACHINE
    if not device.name.endswith("+vnf") or case[0] in BEHIND_A_SWITCH
    if device.ability.chains or len(case[1]) < 2
    if {function.type for function in case[1]} <= device.ability.functions
]


@pytest.fixture(scope="module")
def here() -> Callable[[Device], None]:
    """Skip where a device is not installed; ask only once."""
    known: dict[str, str] = {}

    def check(device: Device) -> None:
        if device.name not in known:
            known[device.name] = device.presence().missing
        if known[device.name]:
            pytest.skip(known[device.name])

    return check


def conforms(
    device: Device,
    kind: str,
    case: str,
    folder: Path,
    deployment: str = "inline",
    queues: int = 1,
    **options: str,
) -> tuple[str, ...]:
    """Run a case; return the device's notes. Skip where it cannot be run."""
    path, rows = next(each[1:] for each in CASES if each[0] == case)
    return conforms_to(device, kind, path, rows, folder, deployment, queues, **options)


def conforms_to(
    device: Device,
    kind: str,
    path: tuple[Function, ...],
    rows: list[Row],
    folder: Path,
    deployment: str = "inline",
    queues: int = 1,
    cores: tuple[int, ...] = (CORES[-1],),
    **options: str,
) -> tuple[str, ...]:
    """As conforms, with functions and rows of its own."""
    if kind in ("af_packet", "tap"):
        ports = [PortAt(kind, name) for name in interfaces()]
    else:
        ports = [PortAt(kind, str(folder / name), queues) for name in ("left", "right")]
    own = folder / "own"
    own.mkdir()
    setup = Setup(path, ports[0], ports[1], cores, own, deployment=deployment, options=options)
    if device.cannot(setup):
        pytest.skip(device.cannot(setup))
    # What is behind a switch does as it does alone.
    vnf = options.get("vnf", "")
    names = {device.name, f"{device.name}-{kind}", vnf, f"{device.name}-{vnf}"}
    chosen = [row for row in rows if not names & row.not_of]
    pair = (ports[0], ports[1])
    with joined(device, pair, folder, "convoys" in options) as ends, device.start(setup) as running:
        running.ready(60)
        with wire(ends, running) as wired:
            for row in chosen:
                expected = [] if row.change is None else [row.change(row.frame)]
                assert wired.through([row.frame]) == expected, row.description
            # And all of them at once: Open vSwitch sorts a burst by flow.
            expected = [row.change(row.frame) for row in chosen if row.change]
            assert sorted(wired.through([row.frame for row in chosen])) == sorted(expected)
        return running.notes


@pytest.mark.parametrize(("device", "kind", "case"), COMBINATIONS)
def test_the_same_packets_come_out(device, kind, case, here, tmp_path: Path):
    here(device)
    conforms(device, kind, case, tmp_path)


@pytest.mark.parametrize("link", ["vhost-user", "memif", "shared", "veth"])
def test_a_process_for_each_function(link, tmp_path: Path):
    notes = conforms(Convoy(), "vhost-user", "chain", tmp_path, "process", link=link)
    assert f"a process for each function, joined by {link}" in notes
    assert any("yield to each other" in note for note in notes)


def test_a_pipeline(tmp_path: Path):
    conforms(Convoy(), "vhost-user", "chain", tmp_path, "pipeline")


@IN_TURN
@pytest.mark.parametrize(
    ("name", "case", "options"),
    [
        ("testpmd+vnf", "nothing", {"vnf": "testpmd"}),
        ("testpmd+vnf", "swap", {"vnf": "testpmd"}),
        ("convoy+vnf", "bridge", {"vnf": "testpmd"}),
        ("ovs-dpdk+vnf", "firewall", {"convoys": "native"}),
        ("convoy+vnf", "router", {"convoys": "native"}),
        ("testpmd+vnf", "bridge", {"vnf": "testpmd", "convoys": "guest"}),
        ("convoy+vnf", "bridge", {"vnf": "testpmd", "convoys": "guest"}),
        ("ovs-dpdk+vnf", "router", {"convoys": "switch"}),
        ("ovs-dpdk+vnf", "bridge", {"vnf": "testpmd", "convoys": "both"}),
        ("vpp+vnf", "bridge", {"vnf": "testpmd", "convoys": "guest"}),
        ("bess+vnf", "bridge", {"vnf": "testpmd", "convoys": "guest"}),
    ],
)
def test_vnfs_behind_a_switch(name, case, options, here, tmp_path: Path):
    here(device(name))
    notes = conforms(device(name), "vhost-user", case, tmp_path, **options)
    assert any(note.startswith("switch and VNFs share a core") for note in notes)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("ovs-dpdk+vnf", "firewall"),
        ("convoy+vnf", "chain"),
        ("testpmd+vnf", "router"),
        ("vpp+vnf", "router"),
        ("bess+vnf", "firewall"),
    ],
)
def test_namespaces_behind_a_switch(name, case, here, tmp_path: Path):
    here(device(name))
    here(device("linux"))
    notes = conforms(device(name), "vhost-user", case, tmp_path, vnf="linux")
    assert "switch and VNFs share a core: the kernel interrupts the switch there" in notes


GUESTS = pytest.mark.skipif(
    "CONVOY_GUESTS" not in os.environ, reason="guests boot for minutes: CONVOY_GUESTS=1"
)


@GUESTS
@pytest.mark.parametrize(
    ("name", "case"),
    [("ovs-dpdk+vnf", "firewall"), ("convoy+vnf", "firewall"), ("testpmd+vnf", "router")],
)
def test_guests_behind_a_switch(name, case, here, tmp_path: Path):
    here(device(name))
    here(device("vm"))
    notes = conforms(device(name), "vhost-user", case, tmp_path, vnf="vm")
    assert "switch and guests share a core: the kernel's scheduler divides it" in notes


@pytest.mark.parametrize("guest", ["kernel", pytest.param("convoy", marks=GUESTS)])
def test_a_guest_under_open_vswitch_with_the_library(guest, here, tmp_path: Path):
    here(device("ovs-dpdk+vnf"))
    here(device("vm"))
    notes = conforms(
        device("ovs-dpdk+vnf"), "vhost-user", "router", tmp_path,
        vnf="vm", guest=guest, convoys="switch",
    )  # fmt: skip
    assert any("in the guest" in note for note in notes)
    assert any(note.startswith("packets are aggregated in the switch") for note in notes)


@pytest.mark.parametrize("convoys", [pytest.param("guest", marks=GUESTS), "both"])
def test_testpmd_in_a_guest_under_open_vswitch_aggregates(convoys, here, tmp_path: Path):
    here(device("ovs-dpdk+vnf"))
    here(device("vm"))
    notes = conforms(
        device("ovs-dpdk+vnf"), "vhost-user", "bridge", tmp_path,
        vnf="vm", guest="testpmd", convoys=convoys,
    )  # fmt: skip
    assert "testpmd in the guest" in notes
    assert "packets are aggregated there: libconvoy_ethdev.so, ethdev-view" in notes


@IN_TURN
@pytest.mark.parametrize("name", ["convoy+vnf", "ovs-dpdk+vnf", "vpp+vnf", "bess+vnf"])
def test_chains_of_five_vnfs_behind_a_switch(name, here, tmp_path: Path):
    here(device(name))
    five = (RULES, functions.layer2(), RULES, ROUTES, functions.layer2())
    rows = next(rows for case, _, rows in CASES if case == "chain")
    conforms_to(device(name), "vhost-user", five, rows, tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "case", "more"),
    [
        ("linux", "af_packet", "chain", {}),
        ("convoy", "memif", "firewall", {}),
        ("convoy", "vhost-user", "chain", {"deployment": "process", "link": "shared"}),
        ("testpmd", "vhost-user", "swap", {"convoys": "ethdev-copy"}),
        ("testpmd", "virtio-user", "nothing", {}),
        ("convoy+vnf", "vhost-user", "router", {"vnf": "linux"}),
    ],
)
def test_in_an_oci_container(name, kind, case, more, here, tmp_path: Path):
    here(device(name))
    notes = conforms(device(name), kind, case, tmp_path, container="oci", **more)
    assert any(note.startswith("in an OCI container: podman ") for note in notes)


@IN_TURN
def test_a_switch_and_the_vnf_behind_it_have_a_core_each(tmp_path: Path):
    if len(CORES) < 2:
        pytest.skip("needs two cores")
    notes = conforms_to(
        device("convoy+vnf"), "vhost-user", (ROUTES,), ROUTE_ROWS, tmp_path, cores=tuple(CORES[:2])
    )
    assert "switch and VNFs have a core each" in notes


@pytest.mark.parametrize("memory", ["128", "4096"])
def test_memory(memory, tmp_path: Path):
    conforms(Convoy(), "vhost-user", "router", tmp_path, memory=memory)


def test_our_node_in_a_virtual_machine(here, tmp_path: Path):
    here(device("vm"))
    notes = conforms(device("vm"), "virtio-user", "chain", tmp_path, guest="convoy")
    assert "convoyd in the guest" in notes


@GUESTS
def test_testpmd_in_a_virtual_machine(here, tmp_path: Path):
    here(device("vm"))
    notes = conforms(device("vm"), "virtio-user", "swap", tmp_path, guest="testpmd")
    assert "testpmd in the guest" in notes


@pytest.mark.parametrize("nic", ["e1000e", "vmxnet3"])
def test_our_node_on_cards_that_qemu_emulates(nic, here, tmp_path: Path):
    here(device("vm"))
    notes = conforms(device("vm"), "tap", "chain", tmp_path, guest="convoy", nic=nic)
    assert f"on {nic}, which QEMU emulates: not comparable" in notes


@pytest.mark.parametrize(
    ("name", "case"), [("convoy", "router"), ("testpmd", "nothing"), ("ovs-dpdk", "router")]
)
def test_two_queues(name, case, here, tmp_path: Path):
    here(device(name))
    conforms(device(name), "vhost-user", case, tmp_path, queues=2)


@pytest.mark.parametrize(
    ("name", "case", "convoys"),
    [
        ("convoy", "chain", "native"),
        ("testpmd", "nothing", "ethdev-view"),
        ("testpmd", "swap", "ethdev-copy"),
    ],
)
def test_packets_in_convoys(name, case, convoys, here, tmp_path: Path):
    here(device(name))
    conforms(device(name), "vhost-user", case, tmp_path, convoys=convoys)


@pytest.mark.parametrize("link", ["vhost-user", "memif", "shared"])
def test_processes_that_send_each_other_convoys(link, tmp_path: Path):
    conforms(Convoy(), "vhost-user", "chain", tmp_path, "process", link=link, convoys="native")
