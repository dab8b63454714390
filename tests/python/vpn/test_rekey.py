# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Keys change while packets flow through a tunnel with both ends in one chain; none is lost."""

from pathlib import Path

import pytest

from convoy.errors import InputError
from convoy.host.apply import apply
from convoy.host.node import Node
from node.test_apply import changed, lose_nothing_while, plan_of

CHAIN = """
functions:
  west: {vpn: {outside: [right], policies: [{name: all}], sa-file: west}}
  east: {vpn: {outside: [left], policies: [{name: all}], sa-file: east}}
chains: {all: {from: left, to: right, path: [west, east]}}
"""
REKEYS = 3


def key(number: int) -> str:
    return bytes(number + i for i in range(20)).hex()


def write(folder: Path, name: str, lines: list[str]) -> None:
    (folder / name).touch(0o600)
    (folder / name).write_text("\n".join(lines))


def leaves(folder: Path, number: int) -> None:
    line = f"out {1000 + number} policy all local 192.0.2.1 peer 192.0.2.2 esn yes"
    write(folder, "west", [f"{line} key {key(number)}"])


def enters(folder: Path, *numbers: int) -> None:
    line = "policy all local 192.0.2.2 esn yes key"
    write(folder, "east", [f"in {1000 + number} {line} {key(number)}" for number in numbers])


@pytest.mark.alone
def test_keys_change_and_nothing_is_lost(tmp_path: Path) -> None:
    leaves(tmp_path, 0)
    enters(tmp_path, 0)
    plan = plan_of(tmp_path, CHAIN)

    def change(node: Node) -> None:
        for number in range(REKEYS):
            enters(tmp_path, number, number + 1)
            assert apply(node.running, plan) == [changed("east", "sa_file")]
            leaves(tmp_path, number + 1)
            assert apply(node.running, plan) == [changed("west", "sa_file")]
            enters(tmp_path, number + 1)
            assert apply(node.running, plan) == [changed("east", "sa_file")]
        (tmp_path / "east").write_text("in 300 nonsense")
        with pytest.raises(InputError, match="a word is not known"):
            apply(node.running, plan)

    counts = lose_nothing_while(tmp_path, plan, change)
    for end in ("west", "east"):
        (sa,) = counts["functions"][end]["info"]["sas"]
        assert sa["spi"] == 1000 + REKEYS
        assert sa["packets"] > 0
    assert (sa["replayed"], sa["bad_tags"]) == (0, 0)
