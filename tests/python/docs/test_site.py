# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""tools/site, without mkdocs: the navigation has each page once, and links to folders resolve."""

from collections import Counter
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from .pages import PAGES, ROOT


@pytest.fixture(scope="module")
def site():
    loader = SourceFileLoader("site_of_pages", str(ROOT / "tools/site"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_navigation_has_each_page_once(site):
    pages = Counter(page for of_section in site.navigation().values() for page in of_section)
    assert set(pages) == {page.relative_to(ROOT) for page in PAGES}
    assert set(pages.values()) == {1}


def test_navigation_is_by_reader(site):
    sections = site.navigation()
    assert list(sections)[1:3] == ["Learn it", "Run it"]
    assert sections["Run it"][0] == Path("docs/installing.md")
    assert sections["Measurements"][0] == Path("docs/measurements/README.md")
    assert "  - Run it:\n      - docs/installing.md\n" in site.configuration(sections)


def test_links_to_folders_lead_to_a_page(site, tmp_path):
    page = Path("docs/README.md")
    site.stage(tmp_path, [page])
    assert "(../examples" not in (tmp_path / page).read_text("utf-8")
    readme = Path("README.md")
    site.stage(tmp_path, [readme])
    site.list_folders(tmp_path, [readme])
    assert "(examples/native-vnf/README.md)" in (tmp_path / readme).read_text("utf-8")
    listing = (tmp_path / "examples/native-vnf/README.md").read_text("utf-8")
    assert "meson.build" in listing or ".c)" in listing
