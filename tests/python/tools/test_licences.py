# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Everything that is shipped has a licence: in itself, or by Debian's file copyright."""

import re
import subprocess
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OURS = "BSD-3-Clause"
LINES = 10  # of a file, in which it says so
# What has no place for a comment, or is text and numbers for people, or a list of names: all ours,
# by "Files: *" in packaging/debian/copyright.
WITHOUT = {
    "*.md": "documents",
    "*.json": "JSON has no comments",
    "*.csv": "numbers, each table with its source",
    "examples/packets.pcap": "made by tools/example-packets",
    "docs/measurements/*.tar.xz": "results of our runs",
    "tests/fuzz/corpus/*": "inputs that fuzzers found",
    "*.lock": "names of packages",
    ".*ignore": "names of files",
    ".clang-format": "settings",
    "packaging/debian/*": "lists and fields that Debian's tools read",
    "convoy/VERSION": "a number",
    "LICENSE": "is one",
}
COPYRIGHT = (ROOT / "packaging/debian/copyright").read_text("utf-8")


def files() -> list[Path]:
    try:
        done = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no checkout of git")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def licence_of(path: Path) -> str | None:
    head = b"\n".join(path.read_bytes()[:4096].split(b"\n")[:LINES]).decode("utf-8", "replace")
    found = re.search(r"SPDX-License-Identifier: ([A-Za-z0-9.+-]+)", head)
    return found[1] if found else None


def is_excused(path: Path) -> bool:
    name = str(path.relative_to(ROOT))
    return path.stat().st_size == 0 or any(fnmatch(name, pattern) for pattern in WITHOUT)


def test_each_file_says_its_licence_or_is_excused():
    licences = {path: licence_of(path) for path in files()}
    assert [path for path, one in licences.items() if one is None and not is_excused(path)] == []
    assert {one for one in licences.values() if one is not None} == {OURS}


def test_no_excuse_is_left_over():
    names = [str(path.relative_to(ROOT)) for path in files() if licence_of(path) is None]
    for pattern in WITHOUT:
        assert any(fnmatch(name, pattern) for name in names), pattern


def stanzas() -> list[dict[str, str]]:
    """Return the paragraphs of Debian's file: fields by name."""
    found = []
    for paragraph in re.split(r"\n\n+", COPYRIGHT.strip()):
        fields = re.findall(r"^([A-Z][\w-]*):(.*(?:\n .*)*)", paragraph, re.MULTILINE)
        found.append({name: text.strip() for name, text in fields})
    return found[1:]  # the first is of the whole file


def test_the_licence_is_the_projects():
    text = (ROOT / "LICENSE").read_text("utf-8").split()
    (stated,) = [one["License"] for one in stanzas() if one["License"].startswith(f"{OURS}\n")]
    words = [word for word in stated.split()[1:] if word != "."]
    assert text[text.index("Redistribution") :] == words
    (all_files,) = [one for one in stanzas() if one.get("Files") == "*"]
    assert all_files["License"] == OURS


def test_each_licence_that_is_named_has_its_text():
    named = {one["License"] for one in stanzas() if "Files" in one}
    texts = {one["License"].partition("\n")[0] for one in stanzas() if "Files" not in one}
    assert named == texts


def bundled() -> list[str]:
    lines = (ROOT / "packaging/debian/bundled.txt").read_text("utf-8").splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def folders_of(module: metadata.Distribution) -> set[str]:
    """Return what it puts beside others: packages and modules."""
    tops = {path.parts[0] for path in module.files or ()}
    return {one for one in tops if not one.endswith((".dist-info", "..")) and one not in ("bin",)}


@pytest.mark.parametrize("name", bundled())
def test_a_bundled_module_is_in_debians_file_under_its_licence(name):
    module = metadata.distribution(name)
    said = module.metadata.get("License-Expression") or module.metadata.get("License") or ""
    said += " ".join(module.metadata.get_all("Classifier") or ())
    stated = {
        folder: one["License"]
        for one in stanzas()
        for pattern in one.get("Files", "").split()
        for folder in [pattern.removeprefix("debian/bundled/").removesuffix("/*")]
    }
    wanted = folders_of(module) - {"share", "etc", "__pycache__"}
    assert wanted and wanted <= set(stated), wanted
    for folder in wanted:
        word = stated[folder].partition("-")[0]  # Apache, MIT, PSF
        assert word.lower() in said.lower().replace("python-2.0", "psf"), said[:200]
