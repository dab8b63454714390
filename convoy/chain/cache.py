# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The function cache of a descriptor."""

from pydantic import Field

from convoy.base.model import Name
from convoy.chain.parameters import MORE, CacheParameters


class Cache(CacheParameters):
    """With its ports."""

    outside: list[Name] = Field(min_length=1, max_length=64, description=MORE["cache"]["outside"])
