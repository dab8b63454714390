# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Who lost a packet, and why: read from what `convoy why --json` prints, and from nothing else."""

import json
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """What became of a packet that came in by a port."""

    chain: str | None
    function: str | None  # None: the node
    reason: str


def verdicts_of(lines: Iterable[str]) -> dict[bytes, Verdict]:
    """Return a verdict on each packet that was dropped, by its bytes as they came."""
    verdicts: dict[bytes, Verdict] = {}
    for line in lines:
        reply = json.loads(line)
        if "schema" in reply or reply["from"] != "port" or reply["end"] != "dropped":
            continue
        last = reply["way"][-1] if reply["way"] else {"verdict": "next"}
        by = last["function"] if last["verdict"] == "drop" else None
        assert by is None or last["reason"] == reply["reason"], reply
        data = bytes.fromhex(reply["before"]["hex"])
        assert len(data) == reply["before"]["bytes"], "cut short"
        verdicts[data] = Verdict(reply.get("chain"), by, reply["reason"])
    return verdicts
