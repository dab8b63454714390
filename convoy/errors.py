# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Errors that carry the exit code they end the command with.

Exit codes: 0 done; 1 the job ran and failed; 2 bad input, nothing was started;
130 interrupted.
"""


class ConvoyError(Exception):
    """The job ran and failed."""

    exit_code = 1


class InputError(ConvoyError):
    """Bad input: names the file and line or option, the value, and the fix."""

    exit_code = 2
