# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Traffic as people write it: "2 Mpps 64", "500 kpps imix", "20 Mpps 64 in convoys of 22"."""

import re
from dataclasses import dataclass, replace

from convoy.advise.fit import Mix
from convoy.errors import InputError
from convoy.sim.model import IMIX

_RATE = re.compile(r"(?P<number>\d+(?:\.\d+)?(?:e\d+)?) *(?P<unit>[kMG]?pps|[kMG]b/s)", re.ASCII)
_SIZE = re.compile(r"(?P<size>\d{1,6}|imix|facebook-like)(?: *B)?", re.ASCII)
_CONVOYS = re.compile(r" *in convoys of (?P<packets>[1-9]\d{0,2})$")
BYTES = range(64, 9018 + 1)  # of a frame, with FCS
RATE_MAX = 1e15  # packets or bits a second
_FACTOR = {"k": 1e3, "M": 1e6, "G": 1e9}


@dataclass(frozen=True)
class Traffic:
    """A load, in packets per second of frames of one size (bytes with FCS) or of a mix."""

    rate_pps: float
    size: str
    convoys: int = 0  # packets that arrive in one frame; 0: plain packets

    @property
    def frames(self) -> int | Mix | None:
        """Return the size, or imix's sizes and their shares; None: a mix that is known by name."""
        if self.size.isdigit():
            return int(self.size)
        if self.size != "imix":
            return None
        whole = sum(one["weight"] for one in IMIX)
        return tuple((one["bytes"], one["weight"] / whole) for one in IMIX)

    @property
    def arrival(self) -> str:
        """Return in what the packets arrive."""
        return f"convoys of {self.convoys}" if self.convoys else "plain packets"

    def __str__(self) -> str:
        """Return it as people write it."""
        size = f"{self.size} B" if self.size.isdigit() else self.size
        return f"{self.rate_pps / 1e6:.4g} Mpps of {size}, {self.arrival}"


def parse_size(text: str, rate_pps: float) -> Traffic:
    """Read a frame size, and in what packets arrive, of a load whose rate is known."""
    words = text.strip()
    convoys = _CONVOYS.search(words)
    size = _SIZE.fullmatch(words[: convoys.start()] if convoys else words)
    if size is None:
        raise InputError(
            f"--traffic: '{text}': the rates are the day's: give the frame size alone, as '64' or "
            "'64 in convoys of 22'"
        )
    return _load(text, rate_pps, size["size"], convoys)


def _load(text: str, rate_pps: float, size: str, convoys: re.Match[str] | None) -> Traffic:
    if size.isdigit() and int(size) not in BYTES:
        raise InputError(
            f"--traffic: '{text}': {size}: a frame has {BYTES[0]} to {BYTES[-1]} bytes, with FCS"
        )
    return Traffic(rate_pps, size, int(convoys["packets"]) if convoys else 0)


def parse(text: str) -> Traffic:
    """Read a load. Raises InputError with the value and an example."""
    words = text.replace(",", " ").replace("@", " ").strip()
    convoys = _CONVOYS.search(words)
    words = words[: convoys.start()] if convoys else words
    rate = _RATE.match(words)
    size = _SIZE.fullmatch(words[rate.end() :].strip()) if rate else None
    if rate is None or size is None:
        raise InputError(
            f"--traffic: '{text}': write a rate and a frame size, as '2 Mpps 64', "
            "'500 kpps imix', '10 Gb/s 1500' or '20 Mpps 64 in convoys of 22'"
        )
    number = float(rate["number"]) * _FACTOR.get(rate["unit"][0], 1.0)
    if not 0 < number <= RATE_MAX:
        raise InputError(f"--traffic: '{text}': the rate must be more than 0, {RATE_MAX:g} at most")
    load = _load(text, number, size["size"], convoys)
    if rate["unit"].endswith("pps"):
        return load
    frames = load.frames
    if frames is None:
        raise InputError(f"--traffic: '{text}': {load.size} has no one size; give its rate in pps")
    mix = ((frames, 1.0),) if isinstance(frames, int) else frames
    return replace(load, rate_pps=number / 8 / sum(bytes_ * share for bytes_, share in mix))
