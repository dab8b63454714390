# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Where devices stand, if that is not the tester's machine, and what joins the two."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from convoy.chain.nic import NIC, Nic

# Neither may begin with -: ssh would read an option.
HOST = r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,63}@)?[A-Za-z0-9:][A-Za-z0-9.:_%-]{0,252}$"
COMMAND = r"^[A-Za-z0-9/~_.][A-Za-z0-9/~_.+-]{0,254}$"


def _alike(ports: tuple[str, str]) -> tuple[str, str]:
    left, right = map(Nic.read, ports)
    if left.name == right.name:
        raise ValueError(f"{left.name} twice; give two interfaces: left,right")
    if left.kind != right.kind:
        raise ValueError("both must be of one kind: af_packet, af_xdp or dpdk")
    return ports


_Nic = Annotated[str, Field(pattern=NIC)]
Nics = Annotated[tuple[_Nic, _Nic], AfterValidator(_alike)]  # left and right


class DeviceHost(BaseModel):
    """Another machine, on which devices are started."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    host: str = Field(pattern=HOST)  # as ssh takes it: USER@HOST
    tester_ports: Nics
    device_ports: Nics
    command: str = Field("convoy", pattern=COMMAND)  # that is run there

    @property
    def kind(self) -> str:
        """Return the kind of the device's ports."""
        return Nic.read(self.device_ports[0]).kind
