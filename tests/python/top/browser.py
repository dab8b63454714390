# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A page that lives, in Debian's Chromium, headless: asked by the DevTools protocol over pipes."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DEADLINE_S = 60
# It reads from descriptor 3 and writes to 4.
_EXEC = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3]]
for number, pipe in zip((3, 4), pipes):
    os.dup2(pipe, number)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A browser with one page. Problems that its console had are in `problems`."""

    def __init__(self, tmp: Path, width: int = 1280, height: int = 900) -> None:
        """Start it."""
        assert CHROMIUM is not None
        self.problems: list[str] = []
        self._numbers = itertools.count(1)
        self._rest = b""
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        command = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--remote-debugging-pipe", f"--user-data-dir={tmp / 'profile'}",
            f"--window-size={width},{height}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", _EXEC, str(to_browser), str(from_browser), *command],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = str(attached["sessionId"])
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    _session = ""

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.kill()
        self._process.wait(DEADLINE_S)
        os.close(self._write)
        os.close(self._read)

    def open(self, url: str) -> None:
        """Go to a page."""
        self._call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """Return what an expression is in the page."""
        result = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression: str, what: str) -> Any:
        """Return an expression's value as soon as it is true; the page may not be there yet."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            value = self.evaluate(f"(() => {{ try {{ return {expression} }} catch {{ }} }})()")
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"{what}: not within {DEADLINE_S} s")

    def screenshot(self, path: Path) -> None:
        """Save what it shows as PNG."""
        result = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(result["data"]))

    def dark(self) -> None:
        """Show pages as to who prefers dark ones."""
        feature = {"name": "prefers-color-scheme", "value": "dark"}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._note(answer)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._read, 1 << 16)
            assert piece, "Chromium has ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.problems.append(str(params["exceptionDetails"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.problems.append(str(params["entry"]))
