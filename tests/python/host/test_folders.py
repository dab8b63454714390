# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Folders and sockets in places that anybody may write: only what is this user's own is used."""

import os
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from convoy.errors import InputError
from convoy.host import counts
from convoy.host.counts import running_nodes
from convoy.host.folders import is_own_folder, is_own_socket, make_private

UID = os.getuid()
ANOTHER = UID + 1


@pytest.fixture
def planted(monkeypatch):
    """A folder in the temporary directory that looks like a node's, and its socket."""
    with tempfile.TemporaryDirectory(prefix="cv-") as name:  # pytest's are too long for sockets
        monkeypatch.setattr(tempfile, "tempdir", name)
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        with plant(Path(name) / "convoyd-AbCdEf") as path:
            yield path


@contextmanager
def plant(folder):
    made = folder / "dpdk" / "convoyd-4242"
    made.mkdir(parents=True)
    for each in (folder, folder / "dpdk", made):
        each.chmod(0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listens:
        listens.bind(str(made / "control.sock"))
        yield made / "control.sock"


@pytest.fixture
def query(monkeypatch):
    """The sockets that were connected to, which all answer."""
    paths = []
    monkeypatch.setattr(counts, "_answers", lambda path: paths.append(path) or True)
    return paths


def result(uid=UID or 1000):
    return [node.pid for node in running_nodes({}, uid)]


@pytest.fixture
def as_user(monkeypatch):
    """Root's nodes are not in /tmp; be a user whose files are this one's."""
    real = counts.is_own_folder, counts.is_own_socket
    monkeypatch.setattr(counts, "is_own_folder", lambda path, uid: real[0](path, UID))
    monkeypatch.setattr(counts, "is_own_socket", lambda path, uid: real[1](path, UID))


def test_a_node_of_this_user_is_found(planted, query, as_user):
    assert result() == [4242]
    assert query == [planted]


def test_a_folder_that_somebody_else_made_is_never_asked(planted, query):
    assert result(uid=ANOTHER) == []
    assert query == []


def test_a_folder_that_others_may_write_is_never_asked(planted, query, as_user):
    planted.parents[2].chmod(0o777)
    assert result() == []
    assert query == []


def test_a_link_to_a_folder_is_never_followed(planted, query, as_user):
    real = planted.parents[2]
    real.rename(real.with_name("elsewhere"))
    real.symlink_to(real.with_name("elsewhere"))
    assert result() == []
    assert query == []


def test_a_link_to_a_socket_is_never_followed(planted, query, as_user):
    planted.rename(planted.with_name("other"))
    planted.symlink_to(planted.with_name("other"))
    assert result() == []
    assert query == []


def test_root_finds_services_by_whom_their_folder_belongs_to(planted, query, monkeypatch):
    monkeypatch.setattr(counts, "SERVICES", planted.parents[3])
    monkeypatch.setattr(counts, "_folders", lambda environment, uid: [planted.parents[1]])
    assert result(uid=0) == [4242]
    planted.parent.chmod(0o777)
    assert result(uid=0) == []
    assert query == [planted]


def test_a_service_finds_its_own_node(planted, query, as_user):
    there = {"RUNTIME_DIRECTORY": str(planted.parents[2]), "XDG_RUNTIME_DIR": "/nowhere"}
    assert [node.pid for node in running_nodes(there, 1000)] == [4242]


def test_what_is_own(planted):
    assert is_own_socket(planted, UID)
    assert not is_own_socket(planted, ANOTHER)
    assert not is_own_socket(planted.parent, UID)
    assert is_own_folder(planted.parent, UID)
    assert not is_own_folder(planted.parent, ANOTHER)
    assert not is_own_folder(planted, UID)
    assert not is_own_folder(planted.parent / "none", UID)


def test_a_private_folder_is_no_link(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(InputError, match="link: is a link; set XDG_RUNTIME_DIR"):
        make_private(tmp_path / "link")


def test_a_private_folder_is_written_by_no_other(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o770)
    with pytest.raises(InputError, match="others may write it; take that from them: chmod go-w"):
        make_private(tmp_path / "open")
