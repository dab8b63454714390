# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a guest says that was broken into: it harms nobody but its own part."""

import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from convoy.client import Client, ClientError, connection
from convoy.errors import ConvoyError
from convoy.hybrid.guest import of_guest

COUNTS: dict[str, Any] = {
    "ports": {"link1": {"device": {"link": "up"}, "rx_packets": 3, "drops": {"tx_full": 1}}},
    "functions": {"fw": {"packets": 3, "drops": {"denied": 1}}},
    "flows": {},
    "workers": [{"core": 0}],
    "accounting": {"received": 3, "conserved": True},
}


def test_workers_are_on_this_machines_core():
    assert of_guest(COUNTS, 5)["workers"] == [{"core": 5}]
    assert COUNTS["workers"] == [{"core": 0}]


@pytest.mark.parametrize(
    "wrong",
    [
        {"workers": None},
        {"workers": ["all"]},
        {"workers": {"core": 0}},
        {"accounting": []},
        {"accounting": {"received": "3"}},
        {"ports": []},
        {"ports": {"link1": 3}},
        {"ports": {"link1": {"rx_packets": 3}}},
        {"ports": {"link1": {"device": {}, "rx_packets": None}}},
        {"functions": {"fw": {"drops": ["denied"]}}},
        {"functions": {"fw": {"drops": {"denied": {}}}}},
        {"flows": {"fw": None}},
    ],
)
def test_what_are_no_counts_is_said(wrong):
    with pytest.raises(ConvoyError, match="no counts"):
        of_guest({**COUNTS, **wrong}, 0)


def test_an_answer_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "_ANSWER_MAX", 1 << 16)
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def babble() -> None:
            peer, _ = listener.accept()
            with peer:
                try:
                    for _ in range(1 << 12):
                        peer.sendall(bytes(1 << 16))
                except OSError:
                    pass  # it was cut off

        thread = threading.Thread(target=babble)
        thread.start()
        with pytest.raises(ClientError, match="more than 65536 bytes"):
            Client(path)
        thread.join()
