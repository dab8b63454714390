# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What every model of a descriptor shares: strictness, and errors that name the fix."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from convoy.chain.problem import known


def refuse_unknown_keys(model: type[BaseModel], data: Any) -> None:
    """Raise for a mapping's first key that no field of the model has, with the nearest one."""
    if not isinstance(data, Mapping):
        return
    names = [info.alias or name for name, info in model.model_fields.items()]
    other = model.model_fields if model.model_config.get("populate_by_name") else ()
    for key in data:
        if key not in names and key not in other:
            raise PydanticCustomError(
                "convoy_key", "unknown key; {fix}", {"key": key, "fix": known("keys", key, names)}
            )


class Model(BaseModel):
    """Keys with hyphens, no unknown keys, no guessing of types, immutable."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=lambda name: name.replace("_", "-"),
    )

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, data: Any) -> Any:
        if data is None:  # `web:` with nothing after it
            data = {}
        refuse_unknown_keys(cls, data)
        return data


class Parameters(Model):
    """Of a network function."""

    def as_plan(self) -> dict[str, Any]:
        """Return them as nf/ reads them: what is not given has its default there."""
        return self.model_dump(exclude_none=True)


def one_of(noun: str, kinds: Mapping[str, type[Model]]) -> Any:
    """Return the type of a mapping that one key tells: {router: …} or {firewall: …}.

    Tags begin with # so that they cannot be taken for keys of the document.
    """

    def tell(data: Any) -> str | None:
        if isinstance(data, Model):
            return next((f"#{k}" for k, m in kinds.items() if type(data) is m), None)
        return next((f"#{k}" for k in kinds if isinstance(data, Mapping) and k in data), None)

    def check(data: Any) -> Any:
        if isinstance(data, Model):
            return data
        if not isinstance(data, Mapping):
            raise PydanticCustomError(
                "convoy",
                "must be a mapping; write {example}",
                {"example": f"{{{next(iter(kinds))}: …}} ({noun}: {', '.join(kinds)})"},
            )
        named = [kind for kind in kinds if kind in data]
        if len(named) > 1:
            raise PydanticCustomError(
                "convoy", "{names} together; keep one of them", {"names": " and ".join(named)}
            )
        if not named:
            wanted = next(iter(data), "")
            raise PydanticCustomError(
                "convoy_key", "unknown; {fix}", {"key": wanted, "fix": known(noun, wanted, kinds)}
            )
        return data

    tagged = tuple(Annotated[model, Tag(f"#{kind}")] for kind, model in kinds.items())
    union: Any = Union[tagged]  # noqa: UP007 -- made from a table
    return Annotated[union, Discriminator(tell), BeforeValidator(check)]


def _named(characters: int) -> Any:
    """Return the type of names of up to so many characters."""
    pattern = f"[A-Za-z][A-Za-z0-9_-]{{0,{characters - 1}}}"

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(
                "must be a name: a letter, then letters, digits, '-' or '_', "
                f"{characters} characters at most"
            )
        return text

    return AfterValidator(check), Field(json_schema_extra={"pattern": f"^{pattern}$"})


def _mac(text: str) -> str:
    if not re.fullmatch(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", text):
        raise ValueError("must be a MAC address; write it as 02:00:00:00:00:01")
    if int(text[:2], 16) & 1 or not text.strip("0:"):
        raise ValueError("must be a unicast MAC address, not multicast and not zero")
    return text.lower()


def _address(text: str) -> str:
    try:
        if "%" in text:
            raise ValueError
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError("must be an IPv4 or IPv6 address") from None


def prefix(text: str) -> str:
    """Return a prefix in its canonical form; a bare address is a host. Raises ValueError."""
    try:
        if "%" in text:
            raise ValueError
        interface = ipaddress.ip_interface(text)
    except ValueError:
        raise ValueError("must be a prefix such as 10.0.0.0/8 or 2001:db8::/32") from None
    if interface.ip != interface.network.network_address:
        raise ValueError(f"has bits set beyond the prefix length; write {interface.network}")
    return str(interface.network)


Name = Annotated[str, *_named(31)]  # what convoyd can hold
ChainName = Annotated[str, *_named(18)]  # the plan adds up to 13: web.back.q63.31
Text = Annotated[str, Field(min_length=1)]
File = Annotated[str, Field(min_length=1)]  # a path, from the descriptor's folder
Mac = Annotated[str, AfterValidator(_mac), Field(examples=["02:00:00:00:00:01"])]
Address = Annotated[str, AfterValidator(_address), Field(examples=["192.0.2.1"])]
Prefix = Annotated[str, AfterValidator(prefix), Field(examples=["10.0.0.0/8"])]
