# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The page in a real browser, where Chromium is installed: it draws, it sorts, it complains not."""

import json
import re
import shutil
import subprocess

import plotly.graph_objects as go
import pytest

from convoy.report.document import Document, Figure, Table
from convoy.report.html import html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make setup")

# Runs when the figures are drawn; leaves what it saw in the document, which the browser prints.
PROBE = """<script>
const problems = [];
addEventListener("error", (event) => problems.push(event.message));
addEventListener("unhandledrejection", (event) => problems.push(String(event.reason)));
const probe = setInterval(() => {
  if (document.documentElement.dataset.figures !== "drawn") return;
  clearInterval(probe);
  const column = () => [...document.querySelectorAll("tbody tr")].map(r => r.cells[1].textContent);
  const head = document.querySelectorAll("th")[1];
  const seen = {before: column()};
  head.querySelector("button").click(); seen.once = column();
  head.querySelector("button").click(); seen.twice = column();
  seen.sorted = head.getAttribute("aria-sort");
  seen.traces = document.querySelectorAll(".plot .scatterlayer .trace").length;
  seen.wider = document.documentElement.scrollWidth > innerWidth;
  seen.problems = problems;
  const out = document.createElement("output");
  out.id = "seen"; out.textContent = JSON.stringify(seen);
  document.body.append(out);
}, 20);
</script></head>"""


@pytest.mark.parametrize("width", [1200, 500])
def test_page_draws_and_sorts(tmp_path, width):
    page = Document("Title")
    page.add(Table(
        ["what", "rate", *(f"column {i}" for i in range(12))],
        [[name, rate, *["value"] * 12] for name, rate in
         [("a", 9), ("b", 10.5), ("c", None), ("d", 100)]],
    ))  # fmt: skip
    figure = go.Figure([go.Scatter(x=[1, 2], y=[1, 2]), go.Scatter(x=[1, 2], y=[2, 1])])
    page.add(Figure(figure))
    path = tmp_path / "page.html"
    path.write_text(html(page).replace("</head>", PROBE, 1), "utf-8")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=20000", f"--window-size={width},900", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    result = re.search(r'<output id="seen">(.*?)</output>', done.stdout)
    assert result is not None, "the page's figures were not drawn"
    seen = json.loads(result[1])
    assert seen == {
        "before": ["9", "10.5", "–", "100"],
        "once": ["100", "10.5", "9", "–"],
        "twice": ["9", "10.5", "100", "–"],
        "sorted": "ascending",
        "traces": 2,
        "wider": False,
        "problems": [],
    }
