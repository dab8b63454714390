# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""OpenFlow over TLS: who shows a certificate of the right authority steers, nobody else does."""

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from convoy.chain.load import loads
from convoy.errors import ConvoyError, InputError
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for

from .conftest import ADD, BARRIER, DEADLINE_S, NODE, PASSED, flow_mod, free_port, message, node_of

FILES = "private-key: node.key, certificate: node.pem, ca-certificate: ca.pem"

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="no openssl: apt-get install openssl"
)


def openssl(folder: Path, *words: str) -> None:
    done = subprocess.run(["openssl", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def make_authority(folder: Path, name: str) -> None:
    words = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={name}"
    openssl(folder, *words.split(), "-keyout", f"{name}.key", "-out", f"{name}.pem")


def make_certificate(folder: Path, name: str, authority: str = "ca") -> None:
    words = f"req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name}"
    openssl(folder, *words.split(), "-keyout", f"{name}.key", "-out", f"{name}.csr")
    words = f"x509 -req -days 2 -in {name}.csr -CA {authority}.pem -CAkey {authority}.key"
    openssl(folder, *words.split(), "-CAcreateserial", "-out", f"{name}.pem")
    (folder / f"{name}.key").chmod(0o600)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two authorities; the node and a controller of the one, one of the other."""
    make_authority(tmp_path, "ca")
    make_authority(tmp_path, "other")
    make_certificate(tmp_path, "node")
    make_certificate(tmp_path, "controller")
    make_certificate(tmp_path, "untrusted", "other")
    return tmp_path


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def node(folder: Path, port: int, lines: list[str]) -> Iterator[Node]:
    node = node_of(NODE.format(keys=f"listen: 'pssl:{port}', {FILES}"), folder)
    node._on_line = lines.append
    with node as one:
        yield one
        assert one.stop()["accounting"]["conserved"]


def context_of(folder: Path, name: str | None, server: bool = False) -> ssl.SSLContext:
    """Return the end of a controller, which trusts the node's authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / "ca.pem")
    if name is not None:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


def read(stream: ssl.SSLSocket, kind: int) -> bytes:
    """Return the body of the next message of a kind."""
    while True:
        head = b""
        while len(head) < 8:
            head += take(stream, 8 - len(head))
        body = b""
        while len(body) < int.from_bytes(head[2:4], "big") - 8:
            body += take(stream, int.from_bytes(head[2:4], "big") - 8 - len(body))
        if head[1] == kind:
            return body


def take(stream: ssl.SSLSocket, most: int) -> bytes:
    data = stream.recv(most)
    if not data:
        raise EOFError
    return data


def steers(stream: ssl.SSLSocket) -> bool:
    """Set entries over a connection, many records at a time, and see that they are in effect."""
    stream.settimeout(DEADLINE_S)
    mods = b"".join(flow_mod(ADD, 1 + vni % 2, vni) for vni in range(1, 3001))
    stream.sendall(message(0) + mods + message(BARRIER, 9))
    read(stream, PASSED)
    return True


def refused(context: ssl.SSLContext, port: int) -> bool:
    with (
        pytest.raises((ssl.SSLError, ConnectionError, EOFError)),
        socket.create_connection(("127.0.0.1", port)) as raw,
        context.wrap_socket(raw) as stream,
    ):
        steers(stream)
    return True


def ofctl(folder: Path, port: int, name: str, *words: str) -> str:
    done = subprocess.run(
        ["ovs-ofctl", "-O", "OpenFlow13", "-p", f"{name}.key", "-c", f"{name}.pem", "-C", "ca.pem",
         words[0], f"ssl:127.0.0.1:{port}", *words[1:]],
        cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE_S,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("ovs-ofctl") is None, reason="no ovs-ofctl: openvswitch-switch")
def test_open_vswitch_sets_entries(node: Node, folder: Path, port: int) -> None:
    assert ofctl(folder, port, "controller", "add-flow", "dl_vlan=100,actions=output:2") == ""
    assert "dl_vlan=100" in ofctl(folder, port, "controller", "dump-flows")
    assert "dl_vlan=100" not in ofctl(folder, port, "untrusted", "dump-flows")


def test_only_certificates_of_the_authority_steer(
    node: Node, folder: Path, port: int, lines: list[str]
) -> None:
    context = context_of(folder, "controller")
    with socket.create_connection(("127.0.0.1", port)) as raw, context.wrap_socket(raw) as stream:
        assert stream.version() in ("TLSv1.2", "TLSv1.3")
        assert steers(stream)
        # By a thread each: what OpenSSL keeps of a failure is its thread's, and Python may take it
        # for a failure of the next connection.
        for name in ("untrusted", None):
            with ThreadPoolExecutor(1) as thread:
                assert thread.submit(refused, context_of(folder, name), port).result()
        for rubbish in (
            b"",
            b"\x04\x00\x00\x08\x00\x00\x00\x01",
            b"\xff" * 70000,
            b"GET / HTTP/1.0\r\n",
        ):
            with socket.create_connection(("127.0.0.1", port)) as plain:
                plain.settimeout(DEADLINE_S)
                plain.sendall(rubbish)
                if rubbish:
                    with pytest.raises((EOFError, ConnectionError)):
                        while plain.recv(4096) or raise_end():
                            pass
        assert steers(stream)  # who steers is not disturbed
    wait_for(
        lambda: any("TLS: " in line for line in lines), DEADLINE_S, "a line of why it was refused"
    )
    assert node.counts()["openflow"]["entries"] == 3000


def raise_end() -> bool:
    raise EOFError


def test_a_handshake_that_stops_ends(node: Node, port: int) -> None:
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(100)
    with socket.create_connection(("127.0.0.1", port)) as silent:
        silent.settimeout(DEADLINE_S)
        silent.sendall(hello)
        assert silent.recv(4096) == b""  # after five seconds


def test_a_node_connects_to_its_controller(folder: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.settimeout(DEADLINE_S)
        with node_of(NODE.format(keys=f"controllers: 'ssl:127.0.0.1:{port}', {FILES}"), folder):
            for name in ("untrusted", "controller"):  # it comes again to one that it trusts
                raw, _ = listener.accept()
                raw.settimeout(DEADLINE_S)
                try:
                    with context_of(folder, name, True).wrap_socket(raw, server_side=True) as one:
                        assert steers(one) == (name == "controller")
                except (ssl.SSLError, ConnectionError, EOFError):
                    assert name == "untrusted"


def test_wrong_files_are_refused(folder: Path, port: int) -> None:
    keys = f"listen: 'pssl:{port}', {FILES}"
    (folder / "readable.key").write_bytes((folder / "node.key").read_bytes())
    (folder / "readable.key").chmod(0o644)
    (folder / "bad.pem").write_text("nothing")
    os.mkfifo(folder / "pipe")
    for old, new, words in (
        ("node.key", "readable.key", "others may read or write it"),
        ("node.key", "controller.key", "key values mismatch"),
        ("node.pem", "bad.pem", "certificate: "),
        ("ca.pem", "bad.pem", "ca_certificate: "),
        ("node.pem", "pipe", "certificate: .*is no file"),
        ("ca.pem", "pipe", "ca_certificate: .*is no file"),
    ):
        with (
            pytest.raises(ConvoyError, match=words),
            node_of(NODE.format(keys=keys.replace(old, new)), folder),
        ):
            pass
    for wrong, words in (
        (f"listen: 'pssl:{port}'", "TLS needs private-key, certificate, ca-certificate"),
        (f"listen: 'ptcp:{port}', {FILES}", "write ssl: or pssl:"),
        (keys.replace("ca.pem", "missing.pem"), "openflow.ca-certificate: .*no such file"),
    ):
        with pytest.raises(InputError, match=words):
            loads(NODE.format(keys=wrong), this_machine(), folder)
