# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A port that gets no device for the peer that is there says why, and takes the next one."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from convoy.host.node import Node
from convoy.host.process import wait_for
from cores import CORES

from .plans import joined

DEADLINE_S = 60.0
REFUSED = "port link: no device for its peer: "


@pytest.mark.parametrize("peer_first", [False, True], ids=["peer later", "peer first"])
def test_a_peer_with_too_few_queues(peer_first: bool, tmp_path: Path) -> None:
    path = {"path": str(tmp_path / "s")}
    make = {"kind": "null", "frame_bytes": 60}
    near = joined(
        {"make": make, "link": {"kind": "virtio-user", "queues": 4, **path}},
        [("make", "link")],
        CORES[0],
    )
    far = [
        joined(
            {"link": {"kind": "vhost-user", "queues": queues, **path}, "make": make},
            [("make", "link")],
            CORES[-1],
        )
        for queues in (1, 4)
    ]

    with ExitStack() as first:
        if peer_first:
            first.enter_context(Node(far[0]))
        with Node(near) as node:
            if not peer_first:
                first.enter_context(Node(far[0]))

            def lines_of(begin: str) -> list[str]:
                text = node.process.stderr.text().splitlines()
                return [line for line in text if line.startswith(begin)]

            wait_for(lambda: bool(lines_of(REFUSED)), DEADLINE_S, "the reason")
            assert "4 pairs of queues" in lines_of(REFUSED)[0]
            assert len(lines_of("port link: waits for a peer at ")) == 1
            first.close()
            with Node(far[1]):
                wait_for(lambda: bool(lines_of("port link: peer connected")), DEADLINE_S, "a peer")
                assert len(lines_of(REFUSED)) == 1
