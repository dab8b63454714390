# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The page of claims says what the results beside it say: no verdict is written by hand."""

import runpy

from .pages import ROOT

CLAIMS = runpy.run_path(str(ROOT / "tools/claims"))


def test_the_page_is_made_of_its_results():
    assert CLAIMS["PAGE"].read_text("utf-8") == CLAIMS["made_of"](CLAIMS["RUN"])
