# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Runs convoy-sim on a network. The result is its JSON, schema convoy.sim.result/1."""

import contextlib
import json
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Literal

from convoy.errors import ConvoyError, InputError
from convoy.host.programs import need

Json = dict[str, Any]
Engine = Literal["auto", "feed-forward", "event-heap", "ns3"]
ShareDone = Callable[[float, int], None]
"""Told the share done (0 to 1) and the original packets so far."""


def run(network: Json, engine: Engine = "auto", progress: ShareDone | None = None) -> Json:
    """Simulate. An interrupt ends it early: then the result has "complete": false.

    Raises InputError for what convoy-sim refuses (it names the node), ConvoyError if it dies.
    """
    program = need("convoy-sim")
    with tempfile.TemporaryDirectory(prefix="convoy-sim-") as folder:
        file = Path(folder) / "network.json"
        file.write_text(json.dumps(network), "utf-8")
        command = [str(program), "--engine", engine, "--progress", str(file)]
        # A session of its own: the terminal's Ctrl-C reaches it once, from here.
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        ) as process:
            try:
                return _result(process, progress)
            except BaseException:
                process.kill()
                raise


def _result(process: subprocess.Popen[bytes], progress: ShareDone | None) -> Json:
    assert process.stdout is not None and process.stderr is not None
    words: list[str] = []
    listener = threading.Thread(target=_listen, args=(process.stderr, progress, words))
    listener.start()
    output = bytearray()
    while True:
        try:
            chunk = process.stdout.read1(1 << 20)  # type: ignore[attr-defined]
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            continue
        if not chunk:
            break
        output += chunk
    process.wait()
    listener.join()
    if process.returncode:
        message = "\n".join(words).removeprefix("convoy-sim: ")
        if process.returncode == 2:
            raise InputError(message)
        raise ConvoyError(f"convoy-sim ended with {process.returncode}: {message}")
    result: Json = json.loads(output)
    return result


def _listen(stream: IO[bytes], progress: ShareDone | None, words: list[str]) -> None:
    for line in stream:
        with contextlib.suppress(ValueError):
            report = json.loads(line)
            if progress is not None:
                progress(report["progress"], report["original_packets"])
            continue
        words.append(line.decode(errors="replace").rstrip())
