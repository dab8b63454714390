# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The commands that pages show, with what they print, as a test runs and compares them.

A fenced block that has commands is run, unless a comment right above its fence says why not:

    <!-- not run: needs a network card -->

Lines after `$ ` are commands, the others what they print. A block without `$ ` has only commands. A
descriptor that the commands below it use gets its file's name: <!-- file: chain.yaml -->.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from .pages import ROOT, lines, name

_PROGRAMS = (
    "sudo|make|apt-get|echo|mkdir|cp|ip|podman|systemctl|ovs-ofctl|tshark|sed|ninja|meson|"
    "convoy-gen|convoy-sim|convoyd|dpdk-testpmd"
)
_ELSEWHERE = "[A-Z_]+=\\S+ \\S|build-asan/|# systemctl"
_END = "---- exit status"
ENTER = "<!-- enter -->"
_ALWAYS = [
    # What differs by machine or by moment, though its words do not.
    (r"\bcore \d+", "core N"),
    (r"\bconvoyd \d+", "convoyd N"),
    (r"\d+\.\d+", "N"),
]
# worker, core, busy, longest iteration
_WORKER = re.compile(r"^(\d+) \d+ N % N us$")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    note: str
    kind: str
    text: tuple[str, ...]

    @property
    def why_not(self) -> str | None:
        """Return why no test runs it, or None."""
        return self._note("not run")

    @property
    def file(self) -> str | None:
        """Return the name of the file that it is, or None."""
        return self._note("file")

    def _note(self, key: str) -> str | None:
        match = re.fullmatch(rf"<!-- {key}: (.+) -->", self.note)
        return match[1] if match else None

    def has_commands(self, verbs: set[str]) -> bool:
        """Say whether a line is a command, of which `convoy` has these."""
        return self.kind in ("", "text", "console") and any(
            re.match(rf"\$ \S|(?:{_PROGRAMS}) |{_ELSEWHERE}", line)
            or ((match := re.match(r"convoy (\w[\w-]*)(?: |$)", line)) and match[1] in verbs)
            for line in self.text
        )

    def session(self) -> list[tuple[str, list[str] | None]]:
        """Return each command with the lines that it prints, or None if the page shows none."""
        if not any(line.startswith("$ ") for line in self.text):
            return [(line, None) for line in self.text if line]
        result: list[tuple[str, list[str]]] = []
        for line in self.text:
            if line.startswith("$ "):
                result.append((line[2:], []))
            else:
                result[-1][1].append(line)
        return [*result]

    def __str__(self) -> str:
        return f"{name(self.page)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Return a page's fenced blocks."""
    result: list[Block] = []
    before, fence = "", None
    text: list[str] = []
    for number, line, code in lines(page):
        if not code:
            before = line or before
        elif fence is None:
            fence, text = (number, line.strip("` "), before), []
        elif line.startswith("```"):
            result.append(Block(page, fence[0], fence[2], fence[1], tuple(text)))
            fence, before = None, ""
        else:
            text.append(line)
    return result


def is_followed(page: Path) -> bool:
    """Say whether a page is one session: it says above a block how that begins (test_tutorials)."""
    return any(block.note == ENTER for block in blocks(page))


def run(
    commands: Sequence[str], folder: Path, enter: Sequence[str] = ()
) -> list[tuple[int, list[str]]]:
    """Run commands in one shell, started by enter; return each one's exit status and output."""
    # Pages show a machine of two cores.
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    runtime = folder / "r"
    runtime.mkdir(exist_ok=True)
    ends = f"printf '\\n{_END} %s\\n' $?"
    script = "".join(f"{command}\n{ends}\n" for command in commands)
    done = subprocess.run(
        ["taskset", "-c", cores, *enter, "bash", "-c", script], cwd=folder, text=True, timeout=90,
        check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={
            **os.environ, "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
            "XDG_RUNTIME_DIR": str(runtime), "COLUMNS": "200", "LC_ALL": "C.UTF-8",
        },
    )  # fmt: skip
    output = done.stdout.replace(f"{runtime}/convoy", "/run/convoy")
    parts = re.split(rf"\n{_END} (\d+)\n", output)
    return [
        (int(status), text.rstrip().splitlines())
        for text, status in zip(parts[::2], parts[1::2], strict=False)
    ]


def plain(line: str) -> str:
    """Return a line of output without what differs by machine or moment; its words stay."""
    for pattern, word in _ALWAYS:
        line = re.sub(pattern, word, line)
    return _WORKER.sub(r"\1 N N % N us", re.sub(r"\s+", " ", line).strip())


def differences(shown: list[str], printed: list[str]) -> list[str]:
    """Return what is not alike, line by line. Which memory a machine has is left out."""
    pairs = zip_longest(_words(shown), _words(printed), fillvalue="(nothing)")
    return [f"shown: {one}\nfound: {other}" for one, other in pairs if one != other]


def _words(text: list[str]) -> list[str]:
    return [plain(line) for line in text if line.strip() and not line.startswith("note: memory: ")]
