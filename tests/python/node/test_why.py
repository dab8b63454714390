# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy why: each packet's way through a running node, and each kind of loss by its name."""

import contextlib
import io
import json
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet as Frame
from scapy.utils import PcapNgReader
from typer.testing import CliRunner

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cli.main import app
from convoy.client import Client, ClientError, Packet, RefusedError
from convoy.errors import InputError
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import wait_for

from .conftest import read_capture

PAGE = Path(__file__).parents[3] / "docs" / "why.md"
NODE = """
ports:
  in: {{af_packet: {interface}, mac: "02:00:00:00:00:0a"}}
  out: {{pcap: {{write: {folder}/out.pcap}}, mtu: 1400, mac: "02:00:00:00:00:0c"}}
  tunnel: {{pcap: {{write: {folder}/tunnel.pcap}}, convoys: {{ip: 192.0.2.1}}}}
next-hops: {{b: {{port: tunnel, mac: "02:00:00:00:00:0b", ip: 192.0.2.2}}}}
functions:
  fw: {{firewall: {{default: allow, rules: [{{deny: {{src: 10.0.0.66, name: bad}}}}]}}}}
  rtr:
    router:
      addresses: {{in: [10.0.0.1/24], out: [192.0.2.1/24]}}
      routes: [198.51.100.0/24 via 192.0.2.9]
      neighbours: {{192.0.2.9: "02:00:00:00:00:09"}}
  seen: {{firewall: {{stateful: true, default: deny, rules: [{{allow: {{proto: udp}}}}]}}}}
  cgn: {{nat: {{outside: [out], inside: [10.0.0.0/24], pool: [203.0.113.1], mappings: 4096}}}}
  slow: {{policer: {{cir-bps: 8000, cbs-bytes: 100, ebs-bytes: 100}}}}
  hops: {{ttl-limit: {{min: 10}}}}
  sorter: {{classifier: {{rules: [{{match: {{proto: tcp}}, output: tcp}}], outputs: {{tcp: web}}}}}}
chains:
  routed: {{from: in, to: out, match: {{vlan: 1}}, path: [fw, rtr]}}
  flows: {{from: in, to: out, match: {{vlan: 2}}, path: [seen, cgn]}}
  metered: {{from: in, to: out, match: {{vlan: 3}}, path: [slow]}}
  sorted: {{from: in, to: out, match: {{vlan: 4}}, path: [sorter]}}
  web: {{to: out, path: [hops]}}
  far: {{from: in, to: tunnel, match: {{vlan: 5}}}}
flows: {{max: 4096}}
workers: {{idle: sleep}}
memory: {{hugepages: never}}
"""
IN = "02:00:00:00:00:0a"


def frame(vlan: int, *layers: Frame, to: str = IN, size: int = 0) -> bytes:
    """Return a frame of a chain, which its VLAN is."""
    packet = Ether(dst=to, src="02:00:00:00:00:01") / Dot1Q(vlan=vlan)
    for layer in layers:
        packet = packet / layer
    return bytes(packet).ljust(max(60, size), b"\0")


def udp(source: str, target: str, port: int = 53, **ip: Any) -> Frame:
    return IP(src=source, dst=target, **ip) / UDP(sport=1000, dport=port) / b"some words of it"


# What is lost, and how: the frame, the function that drops it (None: the node), and the reason.
LOSSES: dict[str, tuple[bytes, str | None, str]] = {
    "no chain of its VLAN": (frame(99, udp("10.0.0.2", "198.51.100.1")), None, "no_chain"),
    "a rule": (frame(1, udp("10.0.0.66", "198.51.100.1")), "fw", "denied"),
    "no route": (frame(1, udp("10.0.0.2", "8.8.8.8")), "rtr", "no_route"),
    "TTL": (frame(1, udp("10.0.0.2", "198.51.100.1", ttl=1)), "rtr", "ttl_expired"),
    "a wrong checksum": (
        frame(1, udp("10.0.0.2", "198.51.100.1", chksum=1)), "rtr", "bad_header",
    ),
    "from itself": (frame(1, udp("127.0.0.1", "198.51.100.1")), "rtr", "martian"),
    "multicast": (frame(1, udp("10.0.0.2", "224.1.1.1")), "rtr", "multicast"),
    "no rule of the flow": (
        frame(2, IP(src="10.0.0.2", dst="198.51.100.1") / TCP(dport=80)),
        "seen", "default_denied",
    ),
    "the rest of a packet": (
        frame(2, IP(src="10.0.0.2", dst="198.51.100.1", proto=17, frag=8) / bytes(40)),
        "flows", "no_first_fragment",
    ),
    "too fast": (
        frame(3, udp("10.0.0.2", "198.51.100.1") / bytes(300)), "slow", "policed_red",
    ),
    "behind an output": (
        frame(4, IP(src="10.0.0.2", dst="198.51.100.1", ttl=3) / TCP(dport=80)),
        "hops", "ttl_below_min",
    ),
    "too long for its port": (
        frame(4, udp("10.0.0.2", "198.51.100.1") / bytes(1400)), None, "too_big",
    ),
}  # fmt: skip


class Wire:
    """A running node, and the wire to its port."""

    def __init__(self, node: Node, interface: str, folder: Path) -> None:
        self.node, self.folder = node, folder
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._socket.bind((interface, 0))

    def send(self, *frames: bytes) -> None:
        """Send frames, and wait until the node has them all."""
        before = self._received()
        for one in frames:
            self._socket.send(one)
        wait_for(lambda: self._received() >= before + len(frames), 20, "the node to receive")

    def _received(self) -> int:
        return int(self.node.counts()["accounting"]["received"])

    def client(self) -> Client:
        """Return a client that may change the node."""
        return Client(self.node.running.control)

    def why(self, *arguments: str, frames: Iterable[bytes] = ()) -> Any:
        """Run the command; frames come again and again meanwhile."""
        return self.run("why", *arguments, frames=frames)

    def run(self, *arguments: str, frames: Iterable[bytes] = ()) -> Any:
        """Run any command that takes --pid, likewise."""
        done = threading.Event()

        def send() -> None:
            while not done.wait(0.02):
                for one in frames:
                    self._socket.send(one)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            command = [*arguments, "--pid", str(self.node.process.pid)]
            return CliRunner().invoke(app, command)
        finally:
            done.set()
            sender.join()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def wire(veth: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    with tempfile.TemporaryDirectory(prefix="cv-") as name:  # a test's own may be too long
        folder = Path(name)
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        machine = this_machine()
        text = NODE.format(interface=veth[0], folder=folder)
        with Node(make_plan(loads(text, machine, folder), machine).data) as node:
            made = Wire(node, veth[1], folder)
            yield made
            made.close()
            assert node.stop()["accounting"]["conserved"]


def read(client: Client, count: int) -> list[Packet]:
    """Return as many packets as were traced, and no more."""
    packets: list[Packet] = []

    def are_there() -> bool:
        packets.extend(client.read_why()[0])
        return len(packets) >= count

    wait_for(are_there, 20, f"{count} packets")
    packets += client.read_why(wait_ms=20)[0]
    assert len(packets) == count, packets
    return packets


def test_each_kind_of_loss_is_named(wire: Wire):
    frames = [given[0] for given in LOSSES.values()]
    passes = frame(1, udp("10.0.0.2", "198.51.100.1"))
    with wire.client() as client:
        client.arm_why(drops=True, snap=2048)
        wire.send(passes, *frames)
        packets = read(client, len(LOSSES))
    by_bytes = {packet.before.data: packet for packet in packets if packet.before is not None}
    for what, (given, function, reason) in LOSSES.items():
        packet = by_bytes[given]
        assert (packet.port, packet.end) == ("in", "dropped"), what
        assert (packet.function, packet.reason) == (function, reason), what


def test_the_way_of_a_packet(wire: Wire):
    routed = frame(1, udp("10.0.0.2", "198.51.100.1"))
    with wire.client() as client:
        client.arm_why("vlan 1 and udp dst port 53 and src net 10.0.0.0/24", snap=2048)
        wire.send(frame(1, udp("10.0.0.2", "198.51.100.1", port=54)), routed)
        (packet,) = read(client, 1)
    ways = [(step.chain, step.function, step.verdict) for step in packet.way]
    assert ways == [("routed", "fw", "next"), ("routed", "rtr", "next")]
    assert all(step.cycles and step.bytes == len(routed) for step in packet.way)
    assert (packet.chain, packet.end, packet.out, packet.origin) == (
        "routed", "sent", "out", "port",
    )  # fmt: skip
    assert packet.before is not None
    assert packet.after is not None
    assert packet.before.data == routed
    assert packet.after.data in read_capture(wire.folder / "out.pcap")


def captured(data: bytes) -> list[tuple[str, bytes]]:
    """Return the packets of a capture, with the ports that they are of."""
    with PcapNgReader(io.BytesIO(data)) as reader:  # type: ignore[no-untyped-call]
        return [(bytes(one.sniffed_on or b"", "utf-8").decode(), bytes(one)) for one in reader]


def received(reader: socket.socket) -> bytes:
    """Return what is there to be read, which is all."""
    data = b""
    reader.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while piece := reader.recv(1 << 20):
            data += piece
    return data


def test_a_mirror_has_each_packet(wire: Wire):
    given = [frame(2, udp("10.0.0.2", "198.51.100.1"), size=60 + 90 * i) for i in range(16)]
    reader, writer = socket.socketpair()
    with wire.client() as client, reader, writer:
        for left in (False, True):
            client.arm_why("udp and vlan 2", snap=2048)
            count, lost = client.mirror(writer, begins=True, wait_ms=0)
            wire.send(*given, frame(1, udp("10.0.0.2", "198.51.100.1")))
            while count < len(given):
                more, lost = client.mirror(writer, begins=False, as_they_left=left)
                count += more
            assert lost == 0
            ports, packets = zip(*captured(received(reader)), strict=True)
            assert set(ports) == {"out" if left else "in"}
            if left:
                sent = [one for one in read_capture(wire.folder / "out.pcap") if one[15] == 2]
                assert sorted(packets) == sorted(sent[-16:])
            else:
                assert list(packets) == given


def test_a_mirror_waits_for_no_reader(wire: Wire):
    one = frame(1, udp("10.0.0.2", "198.51.100.1"), size=1500)
    reader, writer = socket.socketpair()
    with wire.client() as client, reader, writer:
        client.arm_why("udp", snap=2048)
        with pytest.raises(RefusedError, match="the mirror's socket: nobody reads it"):
            while True:
                wire.send(*[one] * 100)
                client.mirror(writer, begins=True)
        reader.close()
        wire.send(one)
        with pytest.raises(RefusedError, match="the mirror's socket: Broken pipe"):
            client.mirror(writer, begins=True)
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(wire.folder.joinpath("x").open("wb"))
            tcp = stack.enter_context(socket.socket(socket.AF_INET))
            datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            for no_socket in (file.fileno(), tcp.fileno(), datagrams.fileno(), None):
                with pytest.raises(RefusedError, match="no unix stream socket came"):
                    client.call("why.mirror", {}, no_socket)
        reader, writer = socket.socketpair()
        with reader, writer:  # it goes on for others
            wire.send(one)
            while not (count := client.mirror(writer, begins=True)[0]):
                pass
            assert len(captured(received(reader))) == count


def test_mirrors_of_the_command(wire: Wire):
    one = frame(2, udp("10.0.0.2", "198.51.100.1"))
    file, path = wire.folder / "mirror.pcapng", wire.folder / "mirror.sock"
    done = wire.run("mirror", "vlan", "2", "--write", str(file), "--duration", "1s", frames=[one])
    assert done.exit_code == 0
    packets = [packet for _, packet in captured(file.read_bytes())]
    assert packets == [one] * len(packets)
    assert packets

    got = bytearray()

    def read() -> None:
        with socket.socket(socket.AF_UNIX) as reader:
            wait_for(path.exists, 20, "the mirror's socket")
            reader.connect(str(path))
            while piece := reader.recv(65536):
                got.extend(piece)

    reader = threading.Thread(target=read)
    reader.start()
    arguments = ["mirror", "vlan 2", "--listen", str(path), "--duration", "3s", "--left", "--json"]
    done = wire.run(*arguments, frames=[one])
    reader.join()
    result = json.loads(done.stdout)
    assert result == {"schema": "convoy.mirror/1", "packets": len(captured(got)), "lost": 0}
    assert not path.exists()
    assert {port for port, _ in captured(got)} == {"out"}
    for wrong, words in (
        ([], "give one of --listen"),
        (["--write", "x", "--drops", "--left"], "--left: what is dropped does not leave"),
        (["--write", "-", "--json"], "--json: standard output has the capture"),
        (["--write", "/nowhere/x"], "--write: /nowhere/x: No such file"),
        (["--listen", "/nowhere/x"], "/nowhere/x: No such file"),
        (["in", "nowhere", "--write", "x"], "the node has no such port"),
    ):
        done = wire.run("mirror", *wrong)
        assert isinstance(done.exception, InputError), done.output
        assert words in str(done.exception).lower() or words in str(done.exception)


def becauses(packet: Packet) -> dict[str, str | None]:
    """Return what each function's verdict is owed to."""
    return {step.function: step.because for step in packet.way}


def test_what_decided(wire: Wire):
    flow = frame(2, udp("10.0.0.2", "198.51.100.1"))
    refused = frame(2, IP(src="10.0.0.2", dst="198.51.100.1") / TCP(dport=80))
    neighbour = frame(1, udp("10.0.0.2", "192.0.2.77"))
    with wire.client() as client:
        client.arm_why("src host 10.0.0.2 and (udp or tcp) or src host 10.0.0.66")
        for sent, wanted in (
            (LOSSES["a rule"][0], {"fw": "rule 1 (bad)"}),
            (LOSSES["no route"][0], {"fw": "no rule", "rtr": "no route"}),
            (LOSSES["TTL"][0], {"fw": "no rule", "rtr": "198.51.100.0/24 dev out"}),
            (neighbour, {"fw": "no rule", "rtr": "192.0.2.0/24 dev out"}),
            (
                frame(1, udp("10.0.0.2", "10.0.0.1")),
                {"fw": "no rule", "rtr": "10.0.0.1/32 an address of its own"},
            ),
            (flow, {"seen": "new flow, rule 1", "cgn": None}),
            (flow, {"seen": "known flow", "cgn": None}),
            (refused, {"seen": "new flow, no rule"}),
            (refused, {"seen": "flow that is denied"}),
            (frame(4, udp("10.0.0.2", "198.51.100.1")), {"sorter": "no rule"}),
        ):
            wire.send(sent)
            assert becauses(read(client, 1)[0]) == wanted


def test_outputs_flows_and_convoys(wire: Wire):
    tcp = IP(src="10.0.0.2", dst="198.51.100.1") / TCP(dport=80)
    with wire.client() as client:
        client.arm_why("chain sorted or chain flows or chain far")
        wire.send(frame(4, tcp), frame(2, udp("10.0.0.2", "198.51.100.1")))
        by_output, by_flow = read(client, 2)
        wire.send(*[frame(5, udp("10.0.0.2", "198.51.100.1", port=port)) for port in range(9)])
        far = read(client, 9)
    assert [(step.chain, step.function, step.verdict, step.output) for step in by_output.way] == [
        ("sorted", "sorter", "output", "tcp"),
        ("web", "hops", "next", None),
    ]
    assert by_output.out == "out"
    assert [(step.function, step.verdict) for step in by_flow.way] == [
        ("seen", "next"),
        ("cgn", "next"),
    ]
    assert by_flow.after is not None
    assert IP(by_flow.after.data[18:]).src == "203.0.113.1"
    assert {(packet.end, packet.out, packet.next_hop) for packet in far} == {
        ("sent", "tunnel", "b")
    }
    assert all(packet.convoy and 1 <= packet.convoy <= 9 for packet in far)


def test_a_reason_is_part_of_a_filter(wire: Wire):
    frames = [given[0] for given in LOSSES.values()]
    with wire.client() as client:
        client.arm_why("drop default_denied or drop too_big or drop denied and not host 10.0.0.66")
        wire.send(*frames)
        drops = {(packet.function, packet.reason) for packet in read(client, 2)}
    assert drops == {("seen", "default_denied"), (None, "too_big")}


def test_what_the_node_says_itself(wire: Wire):
    ask = ARP(op=1, hwsrc="02:00:00:00:00:01", psrc="10.0.0.2", pdst="10.0.0.1")
    with wire.client() as client:
        client.arm_why("arp and vlan")
        wire.send(frame(1, ask, to="ff:ff:ff:ff:ff:ff"))
        request, answer = read(client, 2)
    assert (request.end, request.way[-1].function) == ("absorbed", "rtr")
    assert (answer.origin, answer.end, answer.out) == ("function", "sent", "in")


def test_it_ends_with_its_client(wire: Wire):
    with wire.client() as first, wire.client() as second:
        first.arm_why()
        first.arm_why("udp")  # instead
        with pytest.raises(ClientError, match="another `convoy why` watches"):
            second.arm_why()
        with pytest.raises(RefusedError, match=r"why\.arm first"):
            second.read_why()
        first.close()
        wait_for(lambda: _arms(second), 20, "the first to go")
    with (
        Client(wire.node.running.read) as reader,
        pytest.raises(ClientError, match="this socket is for reading"),
    ):
        reader.arm_why()


def _arms(client: Client) -> bool:
    try:
        client.arm_why()
    except ClientError:
        return False
    return True


def test_nobody_waits_for_who_does_not_read(wire: Wire):
    one = frame(1, udp("10.0.0.2", "198.51.100.1"), size=1500)
    sent = 6000  # more than the ring has room for
    with wire.client() as client:
        client.arm_why("udp", snap=2048)
        for _ in range(sent // 100):
            wire.send(*[one] * 100)
        packets, lost, count = [None], 0, 0
        while packets:
            packets, lost = client.read_why(wait_ms=20)
            count += len(packets)
        assert lost > 0
        assert count + lost == sent
    with wire.client() as client:
        client.arm_why(sample=10)
        wire.send(*[one] * 100)
        assert len(client.read_why()[0]) < 60


WRONG = {
    "host 10.0.0.300": 'filter: column 6: "10.0.0.300": give an IPv4 or IPv6 address',
    "in nowhere": 'filter: column 4: "nowhere": the node has no such port',
    "--duration x": "--duration: 'x': write a time like 30s, 5m, 1h or 0.5",
    "--run /nowhere/x": "--run: '/nowhere/x': /nowhere/x: No such file or directory",
    "--run '": "--run: ''': No closing quotation",
    "--pcapng /nowhere/x": "--pcapng: /nowhere/x: No such file or directory",
}


def test_wrong_input_is_one_line(wire: Wire):
    for arguments, message in WRONG.items():
        done = wire.why(*arguments.split())
        assert isinstance(done.exception, InputError)  # exit code 2
        assert str(done.exception) == message


def masked(text: str) -> set[str]:
    """Return the lines of what was printed, without times, cycles and ports that are drawn.

    Packets come again, and their flow is known by then; or two in one burst, of which one is asked
    about.
    """
    text = re.sub(r"  (known|new) flow(, rule 1)?$", "  new flow, rule 1", text, flags=re.MULTILINE)
    text = re.sub(r"\d\d:\d\d:\d\d\.\d+", "TIME", text)
    text = re.sub(r" +\d+ cycles", " N cycles", text)
    return set(re.sub(r"(?<=113.1:)\d+", "PORT", text).splitlines())


def test_the_page_shows_what_it_prints(wire: Wire):
    frames = [
        LOSSES["TTL"][0],
        frame(2, udp("10.0.0.2", "198.51.100.1")),
        LOSSES["behind an output"][0],
        LOSSES["too long for its port"][0],
    ]
    done = wire.why("src", "host", "10.0.0.2", "-c", "8", frames=frames)
    assert done.exit_code == 0
    *packets, end = done.stdout.splitlines()
    assert end.startswith("8 packets: ")
    assert masked("\n".join(packets)) == masked(PAGE.read_text()) & masked("\n".join(packets))
    assert "  dropped by rtr: ttl_expired" in packets


def test_as_json(wire: Wire):
    done = wire.why("--drops", "-c", "3", "--json", frames=[LOSSES["a rule"][0]])
    *packets, end = [json.loads(line) for line in done.stdout.splitlines()]
    assert end == {
        "schema": "convoy.why/1", "packets": 3, "lost": 0, "ends": {"dropped: denied": 3},
    }  # fmt: skip
    assert [packet["way"][-1]["reason"] for packet in packets] == ["denied"] * 3


def test_it_ends_with_what_it_runs(wire: Wire):
    frames = [frame(2, udp("10.0.0.2", "198.51.100.1"))]
    done = wire.why("udp", "--run", "sh -c 'sleep 0.5; exit 3'", frames=frames)
    assert re.fullmatch(r"\d+ packets?: \d+ sent", done.stdout.splitlines()[-1])
    assert "--run: exit code 3" in done.stderr
    slow = wire.why("udp", "-c", "1", "--run", "sleep 600", frames=frames)  # it is ended, too
    assert slow.stdout.splitlines()[-1] == "1 packet: 1 sent"


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not here")
def test_a_capture_opens_in_wireshark(wire: Wire):
    file = wire.folder / "why.pcapng"
    dropped, sent = LOSSES["TTL"][0], frame(2, udp("10.0.0.2", "198.51.100.1"))
    done = wire.why("udp", "--pcapng", str(file), "-c", "20", frames=[dropped, sent])
    assert done.stdout.startswith("20 packets: ")
    fields = ["frame.interface_name", "ip.src", "frame.len", "frame.comment"]
    shown = subprocess.run(
        ["tshark", "-r", str(file), "-Tfields", *[f"-e{field}" for field in fields]],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    way = "sent by out, 62 bytes: vlan 2 203.0.113.1:PORT > 198.51.100.1:53 udp; flows: seen next"
    text = re.sub(r" \((known|new) flow(, rule 1)?\)", "", shown.stdout)
    assert set(re.sub(r"(?<=113.1:)\d+", "PORT", text).splitlines()) == {
        "in\t10.0.0.2\t62\tdropped by rtr: ttl_expired; routed: fw next (no rule), "
        "rtr drop: ttl_expired (198.51.100.0/24 dev out)",
        f"in\t10.0.0.2\t62\t{way}, cgn next",
        f"out\t203.0.113.1\t62\tleft: {way}, cgn next",
    }
