# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""tools/check-words: words that the field's terms have replaced do not come back."""

import runpy

import pytest

from convoy.host.programs import CHECKOUT

mistakes = runpy.run_path(str(CHECKOUT / "tools/check-words"))["mistakes"]


@pytest.mark.parametrize(
    ("path", "text", "word"),
    [
        ("dataplane/a.c", "enum cv_hop_drop why;", "cv_hop_drop"),
        ("dataplane/a.h", "// Closes the open frame.", "open frame"),
        ("docs/a.md", "They travel together.", "travel together"),
        ("nf/a.c", "// Judges a packet.", "Judges"),
        ("daemon/a.c", 'set(object, "turns", 1);', '"turns"'),
        ("daemon/a.c", "bool asked = true;", "asked"),
        ("preload/a.h", "char said[128]; // reported once", "said"),
        ("sim/engine/a.cc", "class SinkStation final", "Station"),
        ("sim/engine/a.hh", "std::vector<Run<Lone>> runs;", "Lone"),
        ("sim/engine/a.cc", "serve_calmly(items, n);", "calmly"),
        ("convoy/a.py", "ceiling_pps: float", "ceiling"),
        ("convoy/a.py", "self._crowded = True", "crowded"),
        ("convoy/a.py", "said = greeting.get('params')", "said"),
        ("convoy/a.py", "def _told(self) -> float:", "_told"),
        ("convoy/a.py", "self._remove_strangers(node)", "strangers"),
        ("pyproject.toml", 'description = "packets travel together"', "travel together"),
        ("convoy/a.py", 'why = "one that was kept off its core"', "kept off"),
        ("tests/python/a.py", '"""With a stand-in for convoyd."""', "stand-in"),
        ("docs/decisions/a.md", "It is measured once more.", "once more"),
        ("docs/a.md", "Functions are judged by their drops.", "judged"),
        ("convoy/a.py", "unjudged = _judge(trial)", "judge"),
        ("docs/a.md", "Trials with a stranger beside the core.", "stranger"),
        ("scenarios/a.yaml", "# The device at full speed.", "full speed"),
        ("convoy/report/a.html.j2", "<p>no sure difference</p>", "no sure difference"),
        ("tools/a.lua", "-- what a receiver takes apart", "takes apart"),
        ("tools/generate", "# The ceiling of the tester.", "ceiling"),
        # Over the end of a line: prose, comments, a text in pieces.
        ("docs/a.md", "Packets travel\ntogether.", "travel together"),
        ("docs/a.md", "> Packets travel\n> together.", "travel together"),
        ("dataplane/a.c", "\t// It is taken\n\t// apart.", "taken apart"),
        ("dataplane/a.c", '\tputs("a packet travels "\n\t     "alone\\n");', "travels alone"),
        ("convoy/a.py", "# Put\n# together.", "Put together"),
        ("convoy/a.py", '(\n    "sent flat "\n    f"out"\n)', "flat out"),
        ("scenarios/a.yaml", "# A core that was kept\n# off.", "kept off"),
    ],
)
def test_a_word_is_refused(path: str, text: str, word: str):
    (line,) = mistakes(path, f"\n{text}\n")
    at = 3 if text.startswith("(") else 2
    assert line.startswith(f'{path}:{at}: "{word}" is a word of our own: write ')


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nf/a.c", "// The hop limit is less by one; a next hop has no route."),
        ("dataplane/a.c", "// One after the other, in turn; a group of sockets."),
        ("convoy/a.py", "# The same, once more."),
        ("convoy/a.py", '"""It is said of what\nwas found; "nobody" is asked."""'),
        ("tests/python/a.py", "def test_senders_are_told():"),
        ("nf/a.c", "// It is said of what was found; nobody is asked."),
        ("nf/a.c", 'cv_error_set(error, "what was said");'),
        ("nf/test_a.c", "static void senders_are_told(void **state)"),
        ("nf/a.c", "masked = address & mask; // of a station"),
        ("sim/a.cc", "std::chrono::steady_clock::now()"),
        ("sim/meson.build", "if ns3.found()"),
        ("docs/a.md", "It takes the part."),
        ("docs/a.md", "Clone it."),
    ],
)
def test_ordinary_words_pass(path: str, text: str):
    assert not mistakes(path, text)
