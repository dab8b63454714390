# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The plugin for addresses (ipam), which gets what this one got."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from convoy.cni.errors import CniError, Code

DEADLINE_S = 60.0


def delegate(
    plugin: str, config: Mapping[str, Any], environment: Mapping[str, str], command: str
) -> dict[str, Any]:
    """Run a plugin of CNI_PATH with a command; return its result. Raises CniError."""
    program = _program(plugin, environment.get("CNI_PATH", ""))
    try:
        done = subprocess.run(
            [program], input=json.dumps(config), stdout=subprocess.PIPE, text=True, check=False,
            env={**environment, "CNI_COMMAND": command}, timeout=DEADLINE_S,
        )  # fmt: skip
        reply = json.loads(done.stdout) if done.stdout.strip() else {}
    except subprocess.TimeoutExpired:
        raise CniError(Code.TRY_AGAIN, f"ipam: {plugin}: no answer for {DEADLINE_S:g} s") from None
    except (OSError, ValueError) as error:
        raise CniError(Code.IO, f"ipam: {plugin}: {error}") from None
    if not isinstance(reply, dict):
        raise CniError(Code.CONTENT, f"ipam: {plugin}: its result is no object")
    if done.returncode != 0:
        code = reply.get("code")
        raise CniError(
            code if isinstance(code, int) else Code.IO,
            f"ipam: {plugin}: {reply.get('msg', f'ended with {done.returncode}')}",
            str(reply.get("details", "")),
        )
    return reply


def _program(plugin: str, path: str) -> Path:
    for folder in path.split(":"):
        program = Path(folder) / plugin
        if folder.startswith("/") and os.access(program, os.X_OK):
            return program
    raise CniError(Code.CONFIG, f"ipam.type: {plugin!r}: not in CNI_PATH", path)
