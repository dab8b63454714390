#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Random vhost-user guests against a running node, for as long as you like.

    .venv/bin/python tests/fuzz/vhost_messages.py --seconds 3600

A seed is one guest's whole life: --seed N begins with that one, and it is printed where the node
died, hung, or a sanitizer found something.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from hostile.random_messages import STEPS, Life
from hostile.targets import TARGETS

WELL_EVERY = 100  # lives; neighbours' packets take longer than a life


def main() -> int:
    """Run; return 1 where something was found."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--steps", type=int, default=STEPS)
    options.add_argument("--target", choices=TARGETS, default="convoyd-asan")
    wanted = options.parse_args()
    end, seed = time.monotonic() + wanted.seconds, wanted.seed
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        target = TARGETS[wanted.target](Path(folder))
        try:
            target.until_it_carries()
            while time.monotonic() < end:
                Life(target, seed).live(wanted.steps)
                target.calm()
                target.assert_sound()
                if seed % WELL_EVERY == 0:
                    target.assert_well()
                seed += 1
            target.assert_well()
        except Exception as error:
            print(f"--target {wanted.target} --seed {seed}: {error}\n{target.output()}")
            return 1
        finally:
            target.close()
    print(f"{wanted.target}: {seed - wanted.seed} lives from seed {wanted.seed}, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
