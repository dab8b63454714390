# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Where our programs are looked for, in order, and what is said when they are nowhere."""

import pytest

from convoy.errors import InputError
from convoy.host import programs


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Make an executable in places; find looks in this folder as its checkout."""
    monkeypatch.setattr(programs, "CHECKOUT", tmp_path)

    def make(*names):
        for name in names:
            path = tmp_path / name / "convoyd"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o755)
        return {"CONVOY_BIN": str(tmp_path / "bin"), "PATH": str(tmp_path / "path")}

    return make


@pytest.mark.parametrize(
    ("there", "result"),
    [
        (["bin", "build/daemon", "path"], "bin"),
        (["build/daemon", "path"], "build/daemon"),
        ([".", "path"], "."),
        (["path"], "path"),
    ],
)
def test_order(places, tmp_path, there, result):
    assert programs.find("convoyd", places(*there)) == tmp_path / result / "convoyd"


def test_nowhere(places, monkeypatch):
    for name, value in places().items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        InputError, match=r"convoyd: not found in CONVOY_BIN, .* run `make build`.* convoy-nfv"
    ):
        programs.need("convoyd")


@pytest.mark.parametrize(("name", "there"), [("convoyd", False), ("libconvoy_ethdev.so", True)])
def test_a_library_need_not_be_executable(places, tmp_path, name, there):
    (tmp_path / name).touch(mode=0o644)  # as Debian's packages have libraries
    assert (programs.find(name, places()) == tmp_path / name) is there
