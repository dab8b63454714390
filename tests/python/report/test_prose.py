# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from convoy.report.html import prose


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("", ""),
        ("one\ntwo\n\nthree", "<p>one\ntwo</p>\n<p>three</p>\n"),
        ("## Head\n\nbody", '<h2 id="head">Head</h2>\n<p>body</p>\n'),
        ("### Head\nbody", '<h3 id="head">Head</h3>\n<p>body</p>\n'),
        ("- one\n  goes on\n- two", "<ul>\n<li>one\ngoes on</li>\n<li>two</li>\n</ul>\n"),
        ("a `b<c` **d** e", "<p>a <code>b&lt;c</code> <strong>d</strong> e</p>\n"),
        ("[to](#there)", '<p><a href="#there">to</a></p>\n'),
        ("[to](javascript:x)", "<p>[to](javascript:x)</p>\n"),
        ("![to](http://x/y.png)", '<p>!<a href="http://x/y.png">to</a></p>\n'),
        ("<b>", "<p>&lt;b&gt;</p>\n"),
        ("    <script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>\n"),
    ],
)  # fmt: skip
def test_prose(text, html):
    assert prose(text) == html


@example("<a>")
@example("<!-- -->")
@example("[]()")
@example('[a](#"onclick="a)')
@given(st.text(alphabet=st.sampled_from("a<>&\"'`*[]()#!-\n "), max_size=60))
def test_text_never_becomes_a_tag_of_its_own(text):
    link = r'<a href="(#[^"<>]*)?">'  # to nowhere: the page itself
    heading = r'<h[1-6]( id="[a-z0-9-]+")?>'
    plain = "p|ul|ol|li|code|strong|em"
    ours = rf"{link}|{heading}|<({plain})>|</({plain}|a|h[1-6])>"
    assert "<" not in re.sub(ours, "", prose(text))
