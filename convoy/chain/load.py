# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A descriptor file to a checked descriptor: every error with file, line, field, value and fix."""

from dataclasses import dataclass
from pathlib import Path

from convoy.base.validate import validate
from convoy.base.yaml_text import Text, parse, read
from convoy.chain import links
from convoy.chain.descriptor import Descriptor
from convoy.chain.machine import Machine

BEGIN = "begin with ports: (see examples/)"


@dataclass(frozen=True)
class Loaded:
    """A descriptor that is right, and where it came from."""

    descriptor: Descriptor
    text: Text
    base: Path  # relative paths in it start here


def load(path: Path, machine: Machine) -> Loaded:
    """Load a descriptor from a file. Raises DescriptorError."""
    return check_text(read(path, BEGIN), path.parent.absolute(), machine)


def loads(content: str | bytes, machine: Machine, base: Path, name: str = "<text>") -> Loaded:
    """Load a descriptor from memory; relative paths in it start at base. Raises DescriptorError."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return check_text(parse(data, name, BEGIN), base, machine)


def check_text(text: Text, base: Path, machine: Machine) -> Loaded:
    """Check a parsed descriptor. Raises DescriptorError with every problem."""
    descriptor = validate(text, Descriptor)
    problems = links.problems(descriptor, base, machine)
    if problems:
        raise text.error(problems)
    return Loaded(descriptor, text, base)
