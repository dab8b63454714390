# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What every model of a document shares: strictness, and errors that name the fix."""

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

from convoy.base.problem import known


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
        defer_build=True,
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


def named(characters: int) -> Any:
    """Return the annotations of a name of up to so many characters."""
    pattern = f"[A-Za-z][A-Za-z0-9_-]{{0,{characters - 1}}}"

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(
                "must be a name: a letter, then letters, digits, '-' or '_', "
                f"{characters} characters at most"
            )
        return text

    return AfterValidator(check), Field(json_schema_extra={"pattern": f"^{pattern}$"})


Name = Annotated[str, *named(31)]  # what convoyd can hold
