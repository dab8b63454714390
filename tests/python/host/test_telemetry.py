# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a program answers that is about to end."""

import socket
import threading

import pytest

from convoy.host.counts import read_counts
from convoy.host.telemetry import Telemetry, TelemetryError


def test_a_node_that_is_ending_has_no_counts(tmp_path):
    path = tmp_path / "telemetry"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()

        def program():
            peer, _ = listener.accept()
            with peer:
                peer.send(b'{"max_output_len": 16384}')
                assert peer.recv(1024) == b"/convoy/ports"
                peer.send(b'{"/convoy/ports": null}')

        thread = threading.Thread(target=program)
        thread.start()
        ending = pytest.raises(TelemetryError, match="/convoy/ports: no answer: it is ending")
        with Telemetry(path) as telemetry, ending:
            read_counts(telemetry)
        thread.join()
