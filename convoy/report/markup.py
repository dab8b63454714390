# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The little of Markdown that a report's own words need, as safe HTML.

Blocks, apart by an empty line: `# ` to `### ` headings, lists of `- ` lines, code between two
lines of three backquotes, else a paragraph. Inside them `code`, **bold** and [text](#anchor).
Everything else is text and is escaped: a host name or a command line cannot become markup.
"""

import re
from html import escape

_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\((#[\w-]+|https?://[^\s)]+)\)")
_HEADING = re.compile(r"(#{1,3}) +(.*)")
_FENCE = "```"


def _inline(text: str) -> str:
    out, at = [], 0
    for found in _INLINE.finditer(text):
        out.append(escape(text[at : found.start()]))
        code, bold, label, target = found.groups()
        if code is not None:
            out.append(f"<code>{escape(code)}</code>")
        elif bold is not None:
            out.append(f"<strong>{escape(bold)}</strong>")
        else:
            out.append(f'<a href="{escape(target)}">{escape(label)}</a>')
        at = found.end()
    out.append(escape(text[at:]))
    return "".join(out)


def _block(lines: list[str]) -> str:
    heading = _HEADING.fullmatch(lines[0])
    if heading is not None:
        # The page's title is its only h1.
        level = len(heading[1]) + 1
        rest = _block(lines[1:]) if lines[1:] else ""
        return f"<h{level}>{_inline(heading[2])}</h{level}>\n{rest}"
    if lines[0].startswith("- "):
        items: list[str] = []
        for line in lines:
            if line.startswith("- "):
                items.append(line[2:])
            else:
                items[-1] += " " + line.strip()
        return "<ul>\n" + "".join(f"<li>{_inline(item)}</li>\n" for item in items) + "</ul>\n"
    return f"<p>{_inline(' '.join(line.strip() for line in lines))}</p>\n"


def to_html(text: str) -> str:
    """The text as HTML. Never fails: what is no markup is shown as it is."""
    out: list[str] = []
    block: list[str] = []
    code = False

    def flush() -> None:
        if code:
            out.append(f"<pre><code>{escape(chr(10).join(block))}</code></pre>\n")
        elif block:
            out.append(_block(block))
        block.clear()

    for line in text.splitlines():
        if line.strip() == _FENCE:
            flush()
            code = not code
        elif line.strip() or code:
            block.append(line)
        else:
            flush()
    flush()
    return "".join(out)
