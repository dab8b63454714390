# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Errors by the numbers that CNI's specification has for them."""

from enum import IntEnum


class Code(IntEnum):
    """What went wrong."""

    VERSION = 1
    UNSUPPORTED = 2  # a key of the network's configuration, which the message names
    ENVIRONMENT = 4
    IO = 5
    CONTENT = 6  # no JSON
    CONFIG = 7
    TRY_AGAIN = 11
    NOT_AVAILABLE = 50
    OCCUPIED = 100  # another container's, or another network's
    MISSING = 101  # what was added is not there any more


class CniError(Exception):
    """Ends the plugin; the runtime shows both texts."""

    def __init__(self, code: int, message: str, details: str = "") -> None:
        super().__init__(f"{message}: {details}" if details else message)
        self.code = code
        self.message = message
        self.details = details
