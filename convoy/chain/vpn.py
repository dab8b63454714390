# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The function vpn of a descriptor."""

import stat
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from convoy.base.model import Model, Name
from convoy.chain.parameters import MORE, VpnParameters
from convoy.chain.rule_match import Match


class VpnPolicy(Model):
    """Which packets are protected, and which pass without."""

    name: Name | None = Field(None, description="that associations name; protect needs it")
    match: Match = Field(
        Match(),
        description="of packets from inside; of those from outside source and destination change "
        "places; default: everything",
    )
    action: Literal["protect", "bypass", "discard"] = Field(
        "protect", description="in ESP only, in the clear, or not at all"
    )

    @model_validator(mode="after")
    def _has_a_name(self) -> "VpnPolicy":
        if self.action == "protect" and self.name is None:
            raise ValueError("has no name; associations need it")
        return self


class Vpn(VpnParameters):
    """With its ports and policies. Associations, which have keys, are in a file of their own."""

    outside: list[Name] = Field(min_length=1, max_length=64, description=MORE["vpn"]["outside"])
    policies: list[VpnPolicy] = Field(
        min_length=1, max_length=4096, description=MORE["vpn"]["policies"]
    )

    @model_validator(mode="after")
    def _names_differ(self) -> "Vpn":
        known: set[str] = set()
        for policy in self.policies:
            if policy.name in known:
                raise ValueError(f"policy {policy.name} is there twice; give one another name")
            if policy.name is not None:
                known.add(policy.name)
        return self


def others_may_read(path: Path) -> bool:
    """Return whether others than its owner may do anything with a file."""
    return stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO) != 0
