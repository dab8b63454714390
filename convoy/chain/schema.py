# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The JSON schema of descriptors, for editors."""

from typing import Any

from convoy.chain.descriptor import Descriptor


def json_schema() -> dict[str, Any]:
    """Return the schema (JSON Schema 2020-12), made from the models."""
    schema = Descriptor.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://convoy.invalid/chain.schema.json",
        **schema,
        "title": "Convoy chain descriptor",
    }
