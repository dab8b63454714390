# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Dates and times as documents and names of folders have them."""

import datetime


def now() -> datetime.datetime:
    """Return the time, with its zone: UTC."""
    return datetime.datetime.now(datetime.UTC)


def timestamp() -> str:
    """Return the time for a document: ISO 8601 in UTC, to the second."""
    return now().isoformat(timespec="seconds")


def folder_timestamp() -> str:
    """Return the local time for a folder's name."""
    return now().astimezone().strftime("%Y%m%d-%H%M%S")
