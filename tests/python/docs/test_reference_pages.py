# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The pages of the reference run say what its results say: nothing in them is written by hand."""

import runpy

import pytest

from convoy.report.run_data import Run, read

from .pages import ROOT

TOOL = runpy.run_path(str(ROOT / "tools/reference"))


@pytest.fixture(scope="module")
def run() -> Run:
    return read([TOOL["CLAIMED"], TOOL["OTHERS"]])


@pytest.mark.parametrize("name", TOOL["PAGES"])
def test_the_page_is_made_of_its_results(run, name):
    assert (TOOL["PLACE"] / name).read_text("utf-8") == TOOL["PAGES"][name](run)
