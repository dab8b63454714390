# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Errors that carry the exit code they end the command with.

Exit codes: 0 done; 1 the job ran and failed; 2 bad input, nothing was started;
130 interrupted.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError


class ConvoyError(Exception):
    """The job ran and failed."""

    exit_code = 1


class InputError(ConvoyError):
    """Bad input: names the file and line or option, the value, and the fix."""

    exit_code = 2


def message(detail: Mapping[str, Any]) -> str:
    """Return what one of pydantic's errors says, in our words."""
    text: str = detail["msg"].removeprefix("Value error, ")
    return text.replace("Input should be", "must be")


def first_problem(error: "ValidationError") -> str:
    """Return the first thing that is wrong, in one line: field, value, what it should be."""
    first = error.errors(include_url=False)[0]
    key = first.get("ctx", {}).get("key")  # of convoy/base/model.py's own errors
    field = ".".join(map(str, (*first["loc"], *([key] if key is not None else []))))
    value = "" if isinstance(first["input"], dict | list | tuple) else f"{first['input']!r}: "
    return f"{field}: {value}{message(first)}" if field else f"{value}{message(first)}"
