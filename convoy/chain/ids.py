# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The function ids of a descriptor."""

from typing import Annotated

from pydantic import Field, model_validator

from convoy.chain.model import Text
from convoy.chain.parameters import MORE, IdsParameters

Variable = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=64)]


class Ids(IdsParameters):
    """With its variables. Rules are in a file of their own."""

    variables: dict[Variable, Text] = Field(
        {},
        description=MORE["ids"]["variables"],
        examples=[{"HOME_NET": "[10.0.0.0/8, 2001:db8::/32]", "HTTP_PORTS": "[80, 8000:8999]"}],
    )

    @model_validator(mode="after")
    def _one_place_for_alerts(self) -> "Ids":
        if self.alerts_file is not None and self.alerts_socket is not None:
            raise ValueError("has alerts-file and alerts-socket; remove one")
        return self
