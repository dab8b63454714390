# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Which packets: by their service-chain id (SC-ID)."""

from pydantic import Field, model_validator

from convoy.base.model import Model


class ChainMatch(Model):
    """The packets of a chain: those with a service-chain id, or (empty) what no other matches."""

    vlan: int | None = Field(None, ge=0, le=4095, description="id of the outermost VLAN tag")
    vni: int | None = Field(
        None, ge=0, le=0xFFFFFF, description="VXLAN network id; functions see the inner packet"
    )

    @model_validator(mode="after")
    def _one(self) -> "ChainMatch":
        if self.vlan is not None and self.vni is not None:
            raise ValueError("vlan and vni together; keep one of them")
        return self

    def __str__(self) -> str:
        """Return it as the descriptor says it."""
        if self.vlan is not None:
            return f"vlan {self.vlan}"
        return f"vni {self.vni}" if self.vni is not None else "everything"
