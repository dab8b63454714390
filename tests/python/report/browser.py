# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A page in Debian's Chromium, headless: what a script that runs in it has seen."""

import json
import re
import shutil
import subprocess
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

# For visit(): captions of figures, of those in which no line, point or bar is drawn, and columns of
# tables that two clicks do not sort both ways: numbers, then words, then what is missing.
LOOK = """
const figures = [...document.querySelectorAll("figure")];
const caption = (figure) => figure.querySelector("figcaption").textContent;
seen.figures = figures.map(caption);
seen.empty = figures.filter((figure) => !figure.querySelector(
  ".cartesianlayer .point, .cartesianlayer .js-line")).map(caption);
seen.tables = document.querySelectorAll("table.sortable").length;
seen.unsorted = [];
const missing = (cell) => cell.classList.contains("missing");
const number = (cell) => cell.dataset.value === undefined ? NaN : Number(cell.dataset.value);
const kind = (cell) => missing(cell) ? 2 : isNaN(number(cell)) ? 1 : 0;
const words = (one, other) =>
  one.textContent.localeCompare(other.textContent, "en", {numeric: true});
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    for (const sign of head.classList.contains("number") ? [-1, 1] : [1, -1]) {
      head.querySelector("button").click();
      const cells = [...table.tBodies[0].rows].map((row) => row.cells[column]);
      const wrong = cells.slice(1).some((cell, i) => {
        const [one, other] = [cells[i], cell];
        if (kind(one) !== kind(other)) return kind(one) > kind(other);
        return sign * (kind(one) ? words(one, other) : number(one) - number(other)) > 0;
      });
      if (wrong) seen.unsorted.push(`${table.caption?.textContent}: ${head.textContent}`);
    }
  });
}
"""

_WRAP = """<script>
const problems = [];
addEventListener("error", (event) => problems.push(event.message));
addEventListener("unhandledrejection", (event) => problems.push(String(event.reason)));
for (const kind of ["error", "warn"]) {
  const plain = console[kind];
  console[kind] = (...words) => { problems.push(words.join(" ")); plain(...words); };
}
addEventListener("load", () => {
  const probe = setInterval(() => {
    const figures = document.querySelectorAll("script[data-figure]").length;
    if (figures && document.documentElement.dataset.figures !== "drawn") return;
    clearInterval(probe);
    const seen = {};
    try { PROBE } catch (error) { problems.push(error.message); }
    seen.problems = problems;
    const out = document.createElement("output");
    out.id = "seen"; out.textContent = JSON.stringify(seen);
    document.body.append(out);
  }, 20);
});
</script></head>"""


def options(tmp: Path, width: int) -> list[str]:
    """Return the command without what it is to do."""
    assert CHROMIUM is not None
    return [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", f"--user-data-dir={tmp / 'profile'}", "--virtual-time-budget=20000",
        f"--window-size={width},900",
    ]  # fmt: skip


def visit(html: str, probe: str, tmp: Path, width: int) -> dict:
    """Open a page; when its figures are drawn, run a script that fills `seen`, and return it."""
    path = tmp / "page.html"
    path.write_text(html.replace("</head>", _WRAP.replace("PROBE", probe), 1), "utf-8")
    done = subprocess.run(
        [*options(tmp, width), "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    result = re.search(r'<output id="seen">(.*?)</output>', done.stdout, re.S)
    assert result is not None, "the page's figures were not drawn"
    import html as entities

    return dict(json.loads(entities.unescape(result[1])))
