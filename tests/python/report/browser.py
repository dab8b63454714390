# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A page in Debian's Chromium, headless: what a script that runs in it has seen."""

import json
import re
import shutil
import subprocess
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

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
