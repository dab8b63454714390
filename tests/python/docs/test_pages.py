# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Links resolve, lines are short, and what pages say of the command is so."""

import re
import shlex
import subprocess

import pytest
import typer

from convoy.cli import main

from .pages import PAGES, ROOT, anchors, commands, lines, links, name, prose

WIDTH = 100
COMMAND = typer.main.get_command(main.app)
# A folder of these is an idea of its own; what lies deeper belongs to it.
DEPTHS = dict.fromkeys(("convoy", "daemon", "dataplane", "gen", "nf", "preload", "sim", "tests"), 2)
TOP = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != ".")

ABBREVIATIONS = {
    "MRR": "maximum receive rate",
    "NDR": "non drop rate",
    "NFI-ID": "network function instance",
    "PDR": "partial drop rate",
    "SC-ID": "service chain id",
    "SPI": "service path id|security parameters index",  # of NSH, of ESP
}

each_page = pytest.mark.parametrize("page", PAGES, ids=name)


@each_page
def test_links_resolve(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@each_page
def test_lines_are_short(page):
    long = [
        number
        for number, line, code in lines(page)
        if len(line) > WIDTH and not code and not line.lstrip().startswith("|")
    ]
    assert not long


@each_page
def test_abbreviations_are_spelled_out(page):
    text = re.sub(r"[\s-]+", " ", prose(page)).lower()
    used = {short for short in ABBREVIATIONS if re.search(rf"\b{short}\b", prose(page))}
    assert not {short for short in used if not re.search(ABBREVIATIONS[short], text)}


def _problem(words: list[str]) -> str | None:
    command, at = COMMAND, 0
    while at < len(words) and (subcommands := getattr(command, "commands", None)) is not None:
        if words[at].startswith("-"):
            break
        if words[at] not in subcommands:
            return f"no command {words[at]}"
        command, at = subcommands[words[at]], at + 1
    rest = words[at : words.index("--")] if "--" in words else words[at:]
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    for word in rest:
        option = re.match(r"--?[a-z][a-z-]*", word)
        if option and option[0] not in known and option[0] != "--help":
            return f"no option {option[0]}"
    return None


@each_page
def test_commands_and_options_exist(page):
    for command in commands(page):
        lexer = shlex.shlex(command, posix=True, punctuation_chars="|;")
        lexer.whitespace_split, lexer.commenters = True, ""
        assert _problem(list(lexer)[1:]) is None, command


@each_page
def test_files_exist(page):
    text = prose(page).replace("NAME", "*")  # tests/fuzz/fuzz_NAME.c: any of them
    named = re.findall(rf"`((?:{'|'.join(TOP)})/[\w./*-]*)`", text)
    # What is built, measured or found is not there in a fresh checkout; what an example may add is.
    kept = [one for one in named if not one.startswith(("build", "results")) and "*" not in one]
    assert not [one for one in kept if not list(ROOT.glob(one.rstrip("/")))]
    sources = {file.name for top in DEPTHS for file in (ROOT / top).rglob("*.*")}
    assert not set(re.findall(r"`(\w+\.(?:c|h|cc|hh|py))`", text)) - sources


@pytest.mark.parametrize(
    ("program", "sources"), [("convoy-gen", "gen/**/*.c"), ("convoyd", "daemon/**/*.c")]
)
def test_options_of_programs_exist(program, sources):
    text = "".join(source.read_text("utf-8") for source in ROOT.glob(sources))
    named = {
        option
        for page in PAGES
        for command in re.findall(rf"(?:`|\$ ){program} ([^`\n]*)", page.read_text("utf-8"))
        for option in re.findall(r"(?<!\S)--([a-z][a-z-]*)", command)
    }
    assert not {option for option in named if f'"{option}"' not in text}


def test_what_is_no_command_is_found():
    assert _problem(["nosuch"]) == "no command nosuch"
    assert _problem(["bench", "nosuch"]) == "no command nosuch"
    assert _problem(["check", "chain.yaml", "--nosuch"]) == "no option --nosuch"
    assert _problem(["preload", "ethdev", "--mode", "copy", "--", "testpmd", "--vdev"]) is None


def test_schemas_are_those_of_the_code():
    schema = r"convoy\.[a-z.-]+/[0-9]+"
    sources = [
        source.read_text("utf-8")
        for folder in ("convoy", "gen", "daemon", "sim")
        for source in (ROOT / folder).rglob("*")
        if source.suffix in (".py", ".c", ".h", ".cc", ".hh")
    ]
    written = {result for source in sources for result in re.findall(schema, source)}
    named = {result for page in PAGES for result in re.findall(schema, page.read_text("utf-8"))}
    assert named
    assert named <= written


def test_every_page_is_in_an_index():
    indexed = {ROOT / "README.md", ROOT / "docs/README.md"}
    for index in (
        ROOT / "README.md",
        ROOT / "docs/README.md",
        ROOT / "docs/measurements/README.md",
    ):
        indexed |= {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    assert not [name(page) for page in PAGES if page not in indexed]


def _tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout: which files belong to the project is not known")
    return listed.stdout.split("\0")[:-1]


def test_sources_name_pages_that_exist():
    for file in _tracked():
        if (
            (ROOT / file).exists()
            and not file.startswith("tests/python/tools/")
            and file.endswith((".c", ".h", ".cc", ".hh", ".py", ".yaml", ".lua", "meson.build"))
        ):
            text = (ROOT / file).read_text("utf-8", errors="replace")
            for page in re.findall(r"\bdocs/[\w/-]+\.md\b", text):
                assert (ROOT / page).exists(), file


def test_every_folder_is_explained():
    folders = set()
    for file in _tracked():
        *parts, _ = file.split("/")
        if parts:
            folders.add("/".join(parts[: DEPTHS.get(parts[0], 1)]))
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    # "sim/main.cc" belongs to "sim/", which the page explains by its parts.
    assert not sorted(folder for folder in folders if f"`{folder}/" not in page)


def test_a_package_imports_what_stands_above_it():
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    order = re.findall(r"^\| `convoy/(\w+)/`", page, re.MULTILINE)
    assert set(order) == {file.parent.name for file in (ROOT / "convoy").glob("*/__init__.py")}
    for place, package in enumerate(order):
        for file in (ROOT / "convoy" / package).rglob("*.py"):
            text = file.read_text("utf-8")
            used = set(re.findall(r"^\s*(?:from|import) convoy\.(\w+)", text, re.MULTILINE))
            used |= set(re.findall(r"^\s*from convoy import (\w+)", text, re.MULTILINE))
            assert not used & set(order[place + 1 :]), file
