# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Who changes the node all the time, in a process of its own, which may be killed.

Arguments: the node's process id, its control socket, a file with its plan, the file of its rules.
It writes `applied` for each change.
"""

import itertools
import json
import sys
from pathlib import Path

from convoy.host.apply import apply
from convoy.host.counts import RunningNode

RULES = 50


def main(pid: str, control: str, plan: str, rules: str) -> None:
    """Apply the plan with one more rule each time, and begin anew with one."""
    node = RunningNode(int(pid), Path(control))
    wanted = json.loads(Path(plan).read_text())
    rule = Path(rules).read_text()
    for i in itertools.count():
        Path(rules).write_text(rule * (i % RULES + 1))
        apply(node, wanted)
        print("applied", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
