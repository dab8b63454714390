# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A run's report in a real browser: figures drawn, tables sorted, nothing in the console."""

import re
import subprocess
import sys

import pytest

from convoy.report.html import html as as_html
from convoy.report.run_data import read
from convoy.report.run_document import document

from .browser import CHROMIUM, LOOK, visit

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make setup")

PROBE = """
seen.title = document.querySelector("h1").textContent;
seen.first = document.querySelector("h2").textContent;
seen.findings = document.querySelector("h2 + ul").children.length;
seen.plots = document.querySelectorAll(".plot .main-svg").length > 0;
const tables = [...document.querySelectorAll("table.sortable")];
const rates = tables.find((table) => table.textContent.includes("MRR"));
const column = [...rates.tHead.rows[0].cells].findIndex((c) => c.textContent.startsWith("PDR"));
const values = () => [...rates.tBodies[0].rows].map((r) => Number(r.cells[column].dataset.value));
rates.tHead.rows[0].cells[column].querySelector("button").click();
seen.down = values().every((v, i, all) => !i || all[i - 1] >= v);
rates.tHead.rows[0].cells[column].querySelector("button").click();
seen.up = values().every((v, i, all) => !i || all[i - 1] <= v);
seen.rows = values().length;
seen.wider = document.documentElement.scrollWidth > innerWidth;
seen.links = [...document.querySelectorAll("[src], link[href]")].filter(
  (e) => /^https?:/.test(e.src || e.href)).length;
"""


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    command = [sys.executable, "-c", "from convoy.cli.main import main; main()", "bench", "run"]
    command += ["baseline", "chain", "latency-rate", "dataplane-vs-vnf", "--quick", "--devices"]
    command += ["dummy", "--repeats", "2", "--output", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return as_html(document(read([folder])))


@pytest.mark.parametrize("width", [1400, 500])
def test_the_report_draws_and_sorts(html, tmp_path, width):
    seen = visit(html, LOOK + PROBE, tmp_path, width)
    assert seen["problems"] == []
    assert seen["title"] == "baseline, chain, latency-rate, dataplane-vs-vnf"
    assert seen["first"] == "What was found"
    assert seen["findings"] > 5
    assert len(seen["figures"]) >= 8
    assert (seen["plots"], seen["empty"]) == (True, [])
    assert (seen["down"], seen["up"], seen["rows"] >= 8) == (True, True, True)
    assert seen["wider"] is False
    assert seen["links"] == 0


def test_the_report_names_the_papers_and_what_could_not_run(html):
    for words in ("ClickOS", "529", "rules / VM", "What could not run here", "Xen", "# dummy"):
        assert words in html
    assert re.search(r"a response curve, not a measurement", html)
