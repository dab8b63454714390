# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Why a frame is refused: the same names as the node's counters have."""

from enum import StrEnum

from convoy.errors import InputError


class Reason(StrEnum):
    """What a frame is; everything but `OK` and `NOT_A_CONVOY` is a refusal."""

    OK = "ok"
    NOT_A_CONVOY = "not_a_convoy"
    FRAGMENTED = "fragmented"
    BAD_CHECKSUM = "bad_checksum"
    TRUNCATED = "truncated"
    BAD_LENGTH = "bad_length"
    TRAILING_BYTES = "trailing_bytes"
    BAD_VERSION = "bad_version"
    BAD_TYPE = "bad_type"
    BAD_COUNT = "bad_count"
    RUNT_PACKET = "runt_packet"
    BAD_CODEC = "bad_codec"
    WRONG_DICTIONARY = "wrong_dictionary"
    BAD_BLOCK = "bad_block"
    BAD_FRAGMENT = "bad_fragment"


class FrameError(InputError):
    """A convoy that is refused whole; `reason` says why, the text with which value."""

    def __init__(self, reason: Reason, text: str):
        super().__init__(f"{reason}: {text}")
        self.reason = reason


class NotAConvoyError(FrameError):
    """An ordinary frame: nothing is wrong with it."""

    def __init__(self, text: str):
        super().__init__(Reason.NOT_A_CONVOY, text)
