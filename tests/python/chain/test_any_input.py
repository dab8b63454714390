# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Whatever stands in a file: a descriptor or a DescriptorError, never anything else."""

import json
from pathlib import Path

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from convoy.base.problem import DescriptorError
from convoy.base.yaml_text import parse
from convoy.chain.load import loads
from convoy.chain.machine import Machine
from convoy.chain.plan import make_plan

from .conftest import GOOD

MACHINE = Machine(nodes={0: 0, 1: 0}, runtime_dir=Path("/run/convoy"))

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["left", "right", "fw", "10.0.0.0/8", "::/0", "default", "1-2", "02:00:00:00:00:01", "\0"]
    )
)
keys = st.sampled_from(
    [
        "ports",
        "functions",
        "chains",
        "workers",
        "memory",
        "left",
        "right",
        "fw",
        "rtr",
        "br",
        "firewall",
        "router",
        "l2fwd",
        "rules",
        "allow",
        "deny",
        "routes",
        "neighbours",
        "match",
        "vlan",
        "vni",
        "from",
        "to",
        "path",
        "both-ways",
        "cores",
        "idle",
        "vhost-user",
        "af_packet",
        "pcap",
        "null",
        "read",
        "write",
        "via",
        "dev",
        "prefix",
        "src",
        "dst",
        "proto",
        "sport",
        "dport",
        "mode",
        "sides",
    ]
) | st.text(max_size=8)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)


def outcome(content: str | bytes) -> None:
    try:
        loaded = loads(content, MACHINE, Path("/nowhere"), "x")
    except DescriptorError as error:
        assert error.lines
        assert all(line.startswith("x:") and line.isprintable() for line in error.lines)
        return
    plan = make_plan(loaded, MACHINE)
    assert json.loads(json.dumps(plan.data, allow_nan=False)) == plan.data


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes(content):
    outcome(content)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="aplef:-[]{}*&!#'\"|>? \n\t~01.%@,", max_size=120))
def test_any_punctuation(content):
    outcome(content)


@settings(max_examples=300, deadline=None)
@given(documents)
def test_any_document(document):
    outcome(yaml.safe_dump(document, allow_unicode=True))


def places(value, loc=()):
    yield loc
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*loc, key))


GOOD_DATA = parse(GOOD.encode(), "good").data


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(list(places(GOOD_DATA))), documents)
def test_one_value_exchanged(loc, value):
    data = json.loads(json.dumps(GOOD_DATA))
    if not loc:
        data = value
    else:
        inner = data
        for key in loc[:-1]:
            inner = inner[key]
        inner[loc[-1]] = value
    outcome(yaml.safe_dump(data, allow_unicode=True))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_text_cut_and_spliced(data):
    start = data.draw(st.integers(0, len(GOOD)))
    end = data.draw(st.integers(start, len(GOOD)))
    insert = data.draw(st.text(alphabet="a:-[]{}*&!#'\"\n\t 0", max_size=6))
    outcome(GOOD[:start] + insert + GOOD[end:])
