# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A guest in a process of its own, which may be killed: its packets go out and must come back.

It writes what happens to it, one line each, with the time of CLOCK_MONOTONIC: `connected TIME` when
its handshake began, `back COUNT TIME` when packets came back since the last line, `wrong TIME` for
one that no guest sent, `earlier TIME` for one of the guest before it. It connects again when the
node is gone.
"""

import contextlib
import os
import select
import sys
import time
from pathlib import Path

from hostile.front_end import FrontEnd, Request
from hostile.guest import FREE, Guest

PERIOD_S = 0.004
REPORT_S = 0.02
ETHERTYPE = b"\x88\xb5"  # for experiments


def say(*words: object, at: float | None = None) -> None:
    """Write a line."""
    print(*words, f"{time.monotonic() if at is None else at:.6f}", flush=True)


def connect(path: Path) -> Guest:
    """Connect, as soon as somebody serves the port; tell when the handshake began."""
    while True:
        begin = time.monotonic()
        with contextlib.suppress(OSError, AssertionError):
            front_end = FrontEnd.connect(path)
            front_end.socket.settimeout(5)
            try:
                guest = Guest(front_end, front_end.ask_number(Request.GET_FEATURES)).start()
                say("connected", at=begin)
                return guest
            except BaseException:
                front_end.close()
                raise
        time.sleep(0.005)  # nothing signals it


def hung_up(guest: Guest) -> bool:
    """Return whether the node is gone."""
    connection = guest.front_end.socket
    return bool(select.select([connection], [], [], 0)[0])


def packet(number: int) -> bytes:
    """Return a packet that says which it is."""
    return bytes(12) + ETHERTYPE + number.to_bytes(8) + bytes(40)


def of_a_guest(got: bytes) -> bool:
    """Return whether a packet is whole. It may be of the guest before, and have been under way."""
    return got == packet(int.from_bytes(got[14:22]))


def carry(guest: Guest) -> None:
    """Send packets and tell of those that come back, until the node is gone."""
    number, back, reported_s = 0, 0, 0.0
    while not hung_up(guest):
        came = guest.received()
        back += len(came)
        if back and time.monotonic() > reported_s + REPORT_S:
            say("back", back)
            back, reported_s = 0, time.monotonic()
        if not all(map(of_a_guest, came)):
            say("wrong")
        if any(int.from_bytes(got[14:22]) > number for got in came):
            say("earlier")
        number += 1
        guest.send([packet(number)])
        time.sleep(PERIOD_S)


def main() -> None:
    """Be a guest of a socket; with `truncate`, take its memory back on end of input."""
    path = Path(sys.argv[1])
    if "truncate" in sys.argv:
        guest = connect(path)
        sys.stdin.read()
        guest.send([packet(0)])
        os.ftruncate(guest.memory.file, FREE)
        os.ftruncate(guest.memory.file, 0)
        say("truncated")
        guest.front_end.until_closed()
        return
    while True:
        with connect(path) as guest:
            carry(guest)


if __name__ == "__main__":
    main()
