# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The plugin, driven as a container runtime does."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
CONTAINER = "0958c8871b32a6ff" + "0" * 48
SHORT = CONTAINER[:12]
ANOTHER = "77" * 32


def program(folder: Path) -> Path:
    """Return an executable that runs it from this checkout, as the package's launcher does."""
    path = folder / "convoy"
    launcher = (ROOT / "packaging/debian/cni").read_text("utf-8")
    assert launcher.startswith("#!/usr/bin/python3 -IS\n")
    text = launcher.replace("/usr/lib/convoy-nfv", str(ROOT))
    path.write_text(text.replace("/usr/bin/python3", sys.executable), "utf-8")
    path.chmod(0o755)
    return path


class Plugin:
    """Calls of it, for one network."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.program = program(folder)
        self.config = {"cniVersion": "1.1.0", "name": "edge", "type": "convoy", **config}
        self.shared = Path(self.config.get("sharedDir", ""))

    def run(
        self,
        command: str,
        of: str = CONTAINER,
        interface: str = "net1",
        text: str | None = None,
        environment: dict[str, str] | None = None,
        **changes: Any,
    ) -> tuple[int, dict[str, Any]]:
        """Return its exit code and what it printed."""
        config = {key: one for key, one in {**self.config, **changes}.items() if one is not None}
        done = subprocess.run(
            [self.program], input=json.dumps(config) if text is None else text,
            capture_output=True, text=True, check=False, timeout=120,
            env={
                "PATH": os.environ["PATH"], "CNI_COMMAND": command, "CNI_CONTAINERID": of,
                "CNI_IFNAME": interface, "CNI_NETNS": "/run/netns/blue",
                "CNI_PATH": str(self.program.parent), **(environment or {}),
            },
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, json.loads(done.stdout) if done.stdout else {}

    def add(self, *arguments: Any, **changes: Any) -> dict[str, Any]:
        """ADD, which works."""
        code, reply = self.run("ADD", *arguments, **changes)
        assert code == 0, reply
        return reply

    def fine(self, command: str, *arguments: Any, **changes: Any) -> None:
        """Another command, which works and says nothing."""
        assert self.run(command, *arguments, **changes) == (0, {})

    def refused(self, command: str, *arguments: Any, **changes: Any) -> dict[str, Any]:
        """A command that ends with CNI's error."""
        code, reply = self.run(command, *arguments, **changes)
        assert code == 1
        assert set(reply) <= {"cniVersion", "code", "msg", "details"}, reply
        return reply

    def files(self) -> list[str]:
        """Return what is in its folder, with folders in it."""
        return sorted(
            str(path.relative_to(self.shared))
            for path in self.shared.rglob("*")
            if ".attachments" not in path.parts
        )

    def records(self) -> list[str]:
        """Return the attachments that it knows of."""
        return sorted(path.stem for path in (self.shared / ".attachments").glob("*.json"))
