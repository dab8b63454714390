# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""docs/ports.md knows every kind and every key that the node knows."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from convoy.errors import ConvoyError
from convoy.host.node import Node

from .plans import joined

TEXT = (Path(__file__).resolve().parents[3] / "docs/ports.md").read_text()
PARTS = dict(re.findall(r"^## ([\w-]+)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))


def _refusal(port: dict[str, Any]) -> str:
    plan = joined({"p": port, "none": {"kind": "null"}}, [("p", "none")])
    with pytest.raises(ConvoyError) as caught, Node(plan):
        pass
    return str(caught.value)


def test_every_kind_has_its_part() -> None:
    words = _refusal({"kind": "nosuch"})
    assert set(words.split("must be one of:")[1].split()) == set(PARTS)


@pytest.mark.parametrize("kind", PARTS)
def test_every_key_is_explained(kind: str) -> None:
    keys = _refusal({"kind": kind, "nosuch": 1}).split("known are:")[1].split()
    assert keys[:4] == ["name", "kind", "mtu", "mac"]
    for key in keys[4:]:
        assert f"`{key}`" in PARTS[kind], key


@pytest.mark.parametrize("kind", PARTS)
def test_its_examples_have_no_other_keys(kind: str) -> None:
    examples = re.findall(r"^\{.*\}$", PARTS[kind], re.MULTILINE)
    assert examples
    for example in examples:
        port = json.loads(example)
        assert port["kind"] == kind
        assert "is not a key" not in _refusal({**port, "mtu": 1})
