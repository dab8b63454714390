# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""libconvoy as others use it: installed, found by pkg-config, and running the example."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap, wrpcap

from convoy.frame.model import Outer
from convoy.frame.read import decode
from convoy.frame.write import encode
from convoy.host.programs import CHECKOUT

BUILD = CHECKOUT / "build"


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True, text=True, check=False, timeout=120, env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install into a folder of our own; return where the pkg-config file is."""
    if not (BUILD / "dataplane/convoy/libconvoy.so").exists():
        pytest.skip("libconvoy is not built: make build")
    folder = tmp_path_factory.mktemp("installed")
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", folder)
    description = next(folder.rglob("libconvoy.pc"))
    text = description.read_text()
    description.write_text(text.replace("prefix=/", f"prefix={folder}/", 1))
    return description.parent


@pytest.fixture
def example(installed: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "native-vnf"
    shutil.copytree(CHECKOUT / "examples/native-vnf", folder)
    return folder


def swapped(packet: bytes) -> bytes:
    return packet[6:12] + packet[:6] + packet[12:]


@pytest.mark.parametrize("linking", ["shared", "static"])
def test_the_example_rewrites_convoys_in_place(
    installed: Path, example: Path, tmp_path: Path, linking: str
):
    library = installed.parent
    if linking == "static":
        for shared in library.glob("libconvoy.so*"):
            shared.rename(tmp_path / shared.name)
    try:
        run("make", "-C", example, PKG_CONFIG_PATH=str(installed))
        packets = [bytes([i]) * 12 + b"\x99\x99" + bytes(range(i, 60)) for i in range(1, 20)]
        outer = Outer(dst_mac="02:00:00:00:00:02", src_mac="02:00:00:00:00:01",
                      src="192.0.2.1", dst="192.0.2.2")  # fmt: skip
        packets = [bytes(range(i, i + 12)) + packet[12:] for i, packet in enumerate(packets)]
        convoy = encode(packets, outer, nfi=7)
        broken = convoy[:-1]
        wrpcap(str(tmp_path / "in.pcap"), [Ether(frame) for frame in (convoy, packets[0], broken)])
        output = run(
            example / "native-vnf", tmp_path / "in.pcap", tmp_path / "out.pcap",
            LD_LIBRARY_PATH=str(library),
        )  # fmt: skip
    finally:
        for shared in tmp_path.glob("libconvoy.so*"):
            shared.rename(library / shared.name)
    assert output == "20 packets, 1 frames refused\n"
    first, second = (bytes(frame) for frame in rdpcap(str(tmp_path / "out.pcap")))
    assert list(decode(first).packets) == [swapped(packet) for packet in packets]
    assert first[:46] == convoy[:46]
    assert second == swapped(packets[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "native-vnf: usage: native-vnf IN OUT\n"),
        (("none.pcap", "out.pcap"), "none.pcap: No such file or directory"),
        (("cut.pcap", "out.pcap"), "truncated dump file"),
        (("in.pcap", "none/out.pcap"), "none/out.pcap: No such file or directory"),
    ],
    ids=["no arguments", "no input", "a capture cut short", "no place for the output"],
)
def test_the_example_says_what_is_wrong(
    installed: Path, example: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
):
    run("make", "-C", example, PKG_CONFIG_PATH=str(installed))
    wrpcap(str(tmp_path / "in.pcap"), [Ether(bytes(60))])
    (tmp_path / "cut.pcap").write_bytes((tmp_path / "in.pcap").read_bytes()[:-1])
    done = subprocess.run(
        [str(example / "native-vnf"), *arguments],
        capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path,
        env=os.environ | {"LD_LIBRARY_PATH": str(installed.parent)},
    )  # fmt: skip
    assert done.returncode == 2
    assert message in done.stderr


def test_headers_stand_alone(installed: Path, tmp_path: Path):
    """Each header compiles by itself, in C and in C++, with nothing but pkg-config's flags."""
    flags = run("pkg-config", "--cflags", "libconvoy", PKG_CONFIG_PATH=str(installed)).split()
    root = next(installed.parents[2].rglob("include/convoy"))
    headers = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.h")}
    for header, text in headers.items():
        for compiler, suffix in (("gcc", "c"), ("g++", "cc")):
            source = tmp_path / f"one.{suffix}"
            source.write_text(f"#include <{header}>\nint main() {{ return 0; }}\n")
            run(compiler, "-Wall", "-Werror", "-fsyntax-only", *flags, source)
        for name in re.findall(r'#include "(.*)"', text):
            assert name in headers, f"{header} includes {name}, which is not installed"
