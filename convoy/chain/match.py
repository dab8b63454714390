# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which packets: by their service-chain id (SC-ID), or by the NFI-ID of their convoy."""

from pydantic import Field, model_validator

from convoy.base.model import Model


class Scid(Model):
    """The packets with a service-chain id, or (empty) those of no other one."""

    vlan: int | None = Field(None, ge=0, le=4095, description="id of the outermost VLAN tag")
    vni: int | None = Field(
        None, ge=0, le=0xFFFFFF, description="VXLAN network id; functions see the inner packet"
    )

    @model_validator(mode="after")
    def _one(self) -> "Scid":
        given = list(self.model_dump(exclude_none=True))
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} together; keep one of them")
        return self

    def __str__(self) -> str:
        """Return it as the descriptor says it."""
        for key, value in self.model_dump(exclude_none=True).items():
            return f"{key} {value}"
        return "everything"


class ChainMatch(Scid):
    """The packets of a chain: those with an id, or (empty) what no other chain matches."""

    nfi: int | None = Field(
        None,
        ge=0,
        le=0xFFFF,
        description="NFI-ID: packets of the convoys to this instance; the port has convoys",
    )
