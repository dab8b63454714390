# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""CNI's protocol: what to do is in variables, the network's configuration on standard input."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from convoy.cni import commands
from convoy.cni.errors import CniError, Code
from convoy.errors import ConvoyError

VERSIONS = ("0.3.1", "0.4.0", "1.0.0", "1.1.0")
CONFIG_MAX_BYTES = 1 << 20
_COMMANDS: dict[str, Callable[[Mapping[str, Any], Mapping[str, str]], Mapping[str, Any] | None]] = {
    "ADD": commands.add,
    "DEL": commands.delete,
    "CHECK": commands.check,
    "GC": commands.collect,
    "STATUS": commands.status,
}


def main() -> None:
    """Do what a runtime asks for; print the result, or the error."""
    version = VERSIONS[-1]
    try:
        command = os.environ.get("CNI_COMMAND", "")
        config = _config(command)
        version = str(config.get("cniVersion", version))[:16]
        reply = _run(command, config)
    except CniError as error:
        reply = {"cniVersion": version, "code": int(error.code), "msg": error.message}
        if error.details:
            reply["details"] = error.details
        _say(reply)
        sys.exit(1)
    if reply is not None:
        _say(reply)


def _config(command: str) -> dict[str, Any]:
    text = sys.stdin.buffer.read(CONFIG_MAX_BYTES + 1)
    if command == "VERSION" and not text.strip():
        return {}
    if len(text) > CONFIG_MAX_BYTES:
        raise CniError(Code.CONTENT, f"the configuration is longer than {CONFIG_MAX_BYTES} bytes")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CniError(Code.CONTENT, "the configuration is no JSON", str(error)) from None
    if not isinstance(config, dict):
        raise CniError(Code.CONTENT, "the configuration is no JSON object")
    return config


def _run(command: str, config: dict[str, Any]) -> Mapping[str, Any] | None:
    version = config.get("cniVersion", VERSIONS[-1])
    if command == "VERSION":
        return {"cniVersion": str(version), "supportedVersions": VERSIONS}
    if command not in _COMMANDS:
        raise CniError(
            Code.ENVIRONMENT,
            f"CNI_COMMAND: {command[:80]!a}: must be {', '.join(_COMMANDS)} or VERSION",
        )
    if config.get("cniVersion") not in VERSIONS:
        raise CniError(
            Code.VERSION,
            f"cniVersion: {ascii(config.get('cniVersion'))[:80]}: must be {' or '.join(VERSIONS)}",
        )
    try:
        return _COMMANDS[command](config, dict(os.environ))
    except OSError as error:
        raise CniError(Code.IO, f"{error.filename or 'a file'}: {error.strerror}") from None
    except ConvoyError as error:
        raise CniError(Code.IO, str(error)) from None


def _say(what: Mapping[str, Any]) -> None:
    print(json.dumps(what))
