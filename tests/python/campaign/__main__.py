# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The fault campaign: `make campaign HOURS=n`. docs/campaign.md says what it injects."""

import argparse
import secrets
import signal
import sys
import tempfile
import time
from pathlib import Path

from .campaign import run
from .faults import FAULTS
from .record import as_json, as_markdown, environment


def main() -> None:
    """Run it; exit code 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__)
    parser.add_argument("--hours", type=float, default=0.1, help="for how long")
    parser.add_argument("--seed", type=int, help="of an earlier run, to repeat it")
    parser.add_argument("--first", type=int, default=0, help="its number to begin at")
    parser.add_argument("--count", type=int, help="so many faults, then end")
    parser.add_argument("--only", choices=FAULTS, action="append", help="faults of this kind")
    parser.add_argument("--record", type=Path, help="write the table to FILE.md and FILE.json")
    options = parser.parse_args()
    if not options.hours > 0:
        parser.error(f"--hours {options.hours:g}: more than 0")
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    print(f"campaign: seed {seed}", flush=True)
    steps = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started must end
    with tempfile.TemporaryDirectory(prefix="cvc") as folder:
        end = time.monotonic() + options.hours * 3600
        for step in run(Path(folder) / "r", seed, options.first, options.only):
            steps.append(step)
            print(step.line(), flush=True)
            if time.monotonic() > end or len(steps) == options.count:
                break
    about = environment(seed, options.hours)
    if options.record:
        options.record.with_suffix(".md").write_text(as_markdown(about, steps), "utf-8")
        options.record.with_suffix(".json").write_text(as_json(about, steps), "utf-8")
    print(as_markdown(about, steps))
    sys.exit(not all(step.ok for step in steps))


if __name__ == "__main__":
    main()
