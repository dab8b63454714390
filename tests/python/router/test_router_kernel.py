# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Random routes and packets, compared packet by packet with what this machine's kernel forwards.

Left out, where kernels differ from the RFCs on purpose: they forward 240/4, and since 5.3 all of
0/8 but 0.0.0.0; they forward to :: and to link-local addresses, and do not validate the IPv6 source
of a packet that goes back out of the port it came in by. Options other than no-operation they
rewrite, tags need interfaces of their own: those are compared with the model only.
"""

import random
import tempfile
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings

from .kernel import Kernel, UnavailableError, cut
from .model import Route, Setup
from .node import through
from .traffic import MARK, PORTS, frame, setups

PACKETS = 300
# Sent last and routed back: what was forwarded before it has arrived.
LAST_HOST, LAST_NUMBER = "100.64.0.1", 0xFFFFFFFF


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    try:
        with Kernel(PORTS) as made:
            yield made
    except UnavailableError as why:
        pytest.skip(f"no network namespaces here: {why}")


def sent_back_unvalidated(data: bytes) -> bool:
    """Say whether a packet that came back has a source that no router may forward."""
    return data[12:14] == b"\x86\xdd" and data[22:24] in (b"\0\0", b"\xfe\x80")


def last_frame(setup: Setup) -> bytes:
    rng = random.Random(0)
    only = Setup(setup.ports, [Route(f"{LAST_HOST}/32", "left")], {LAST_HOST: "02:00:00:00:ff:ff"})
    while True:
        made = frame(rng, only, LAST_NUMBER, PORTS["left"], odd=0, tags=False)
        if made[12:14] == b"\x08\0" and made[14] == 0x45 and made[30:34] == b"\x64\x40\0\x01":
            return made


def kernels_differ(data: bytes) -> bool:
    """Say whether an address is one that RFC 1812 does not let through and kernels do."""
    if data[12:14] == b"\x86\xdd":
        return data[38:54] == bytes(16) or data[38:40] == b"\xfe\x80"
    if data[12:14] != b"\x08\0" or len(data) < 34:
        return False
    addresses = data[26:30], data[30:34]
    return any(a[0] >= 240 or (a[0] == 0 and a != bytes(4)) for a in addresses)


def kernel_takes(setup: Setup) -> bool:
    """Say whether no route has an IPv6 gateway that another leads to by another port.

    Linux refuses such a one, unless the other is the default route.
    """
    routes = [route for route in setup.routes if ":" in route.prefix]
    return not any(
        one.via
        and other.dev not in (None, one.dev)
        and not other.prefix.startswith("::/")
        and ip_address(one.via) in ip_network(other.prefix)
        for one in routes
        for other in routes
    )


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(made=setups())
def test_random_routers(kernel: Kernel, made: tuple[Setup, random.Random]):
    setup, rng = made
    assume(kernel_takes(setup))
    setup.routes.append(Route(f"{LAST_HOST}/32", "left"))
    setup.neighbours[LAST_HOST] = "02:00:00:00:ff:ff"
    odd = rng.choice([0.0, 0.1, 0.4])
    frames = [frame(rng, setup, i, PORTS["left"], odd=odd, tags=False) for i in range(PACKETS)]
    frames = [each for each in frames if not kernels_differ(each)]
    kernel.configure(setup)
    theirs = kernel.through(frames, last_frame(setup))
    with tempfile.TemporaryDirectory() as folder:
        ours = through(setup, Path(folder), frames).frames
    theirs["left"] = [each for each in theirs["left"] if not sent_back_unvalidated(each)]
    for name in setup.ports:
        mine = [cut(each) for each in ours[name]]
        mine = [each for each in mine if MARK in each[-10 - len(MARK) :]]
        only_ours = {each.hex() for each in mine} - {each.hex() for each in theirs[name]}
        only_theirs = {each.hex() for each in theirs[name]} - {each.hex() for each in mine}
        assert (only_ours, only_theirs) == (set(), set()), name
        assert mine == theirs[name], "the same packets in another order"


def test_sound_packets_all_go_through(kernel: Kernel, tmp_path: Path):
    """The comparison is not one of nothing with nothing."""
    rng = random.Random(1)
    via = {"0.0.0.0/0": "192.0.2.1", "::/0": "2001:db8::1"}
    setup = Setup(dict(PORTS), [Route(prefix, "right", hop) for prefix, hop in via.items()])
    setup.neighbours = {hop: "02:00:00:00:ee:01" for hop in via.values()}
    frames = [frame(rng, setup, i, PORTS["left"], odd=0, tags=False) for i in range(PACKETS)]
    frames = [each for each in frames if sound(each)]
    setup.routes.append(Route(f"{LAST_HOST}/32", "left"))
    setup.neighbours[LAST_HOST] = "02:00:00:00:ff:ff"
    kernel.configure(setup)
    theirs = kernel.through(frames, last_frame(setup))
    assert len(frames) > PACKETS / 4
    assert len(theirs["right"]) == len(frames)
    assert [cut(each) for each in through(setup, tmp_path, frames).frames["right"]] == theirs[
        "right"
    ]


def sound(data: bytes) -> bool:
    """Say whether any router forwards it by a default route."""
    destination = data[30] if data[12:14] == b"\x08\0" else data[38]
    return not kernels_differ(data) and 0 < destination < 224 and destination != 127
