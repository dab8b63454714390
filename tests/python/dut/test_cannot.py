# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What devices refuse before anything starts, how they are started, how their answers are read."""

import subprocess
from pathlib import Path

import pytest

from convoy.dut import convoy, functions, linux, testpmd, veth
from convoy.dut.base import Function, PortAt, Setup
from convoy.dut.devices import device
from convoy.dut.ovs_dpdk import config, pmd_stats, port_stats
from convoy.dut.process import RunningProcess
from convoy.errors import ConvoyError, InputError
from convoy.host import guest, qemu
from convoy.host.initramfs import Initramfs, module_files
from convoy.host.namespace import shell
from convoy.host.process import Process

CHAIN = (functions.firewall(10), functions.router(10))
SWAP = Function("l2fwd", {"mode": "swap"})
OCI = {"container": "oci"}
IPV6 = Function("firewall", {"rules": [{"deny": {"dst": "2001:db8::/32"}}]})


def setup(path=(), kind="vhost-user", folder=Path("/nowhere"), **more) -> Setup:
    queues = more.pop("queues", 1)
    left, right = PortAt(kind, "l", queues), PortAt(kind, "r", queues)
    return Setup(path, left, right, more.pop("cores", (1,)), folder, **more)


# device, setup, what it says
REFUSED = [
    ("testpmd", setup((functions.router(1),)), "testpmd has no router"),
    ("testpmd", setup((functions.layer2(), functions.layer2())), "not a chain of 2"),
    ("testpmd", setup((functions.firewall(1),)), "testpmd has no firewall"),
    (
        "testpmd+vnf",
        setup((functions.router(1),), options={"vnf": "testpmd"}),
        "testpmd has no router",
    ),
    ("testpmd+vnf", setup((functions.bridge(),), options={"convoys": "guest"}), "use vnf=testpmd"),
    ("testpmd+vnf", setup((functions.bridge(),), back=()), "only of packets from left to right"),
    ("convoy+vnf", setup(CHAIN, back=(functions.router(1),)), "meet as many functions"),
    ("testpmd+vnf", setup((functions.bridge(),), options={"convoys": "switch"}), "ovs-dpdk only"),
    (
        "ovs-dpdk+vnf",
        setup((functions.router(10),), options={"vnf": "linux", "convoys": "switch"}),
        "ports are vhost-user",
    ),
    ("testpmd", setup(kind="memif"), "testpmd has no memif ports"),
    ("ovs-dpdk", setup((IPV6,)), "ovs-dpdk: 2001:db8::/32: others than our node do IPv4"),
    ("ovs-dpdk", setup(deployment="pipeline"), "ovs-dpdk cannot be deployed as pipeline"),
    ("ovs-dpdk", setup(options={"caches": "none"}), "caches=emc|emc+smc|smc|megaflow"),
    ("ovs-dpdk", setup(CHAIN, options={"convoys": "vhost"}), "without a function"),
    ("ovs-dpdk", setup(queues=9), "at most 8 queue(s) a port"),
    ("convoy", setup(kind="memif", queues=2), "memif and veth have one queue"),
    ("linux", setup((), "af_packet", queues=2), "at most 1 queue(s) a port"),
    ("linux", setup((SWAP,), "af_packet"), "linux: l2fwd: the kernel has no way to swap"),
    ("linux", setup(()), "linux has no vhost-user ports"),
    ("vm", setup((SWAP,), "virtio-user"), "vm: l2fwd: the kernel has no way to swap"),
    ("testpmd", setup((), back=()), "only of packets from left to right"),
    ("vpp", setup((), oversubscribed=True), "do not yield to others on their core"),
    ("convoy", setup((), "af_packet", options={"link": "veth"}), "give sockets as outer ports"),
    ("convoy", setup((), "af_packet", options={"datapath": "dpdk"}), "is of vhost-user and memif"),
    ("linux", setup(CHAIN, "af_packet", back=(CHAIN[0],)), "must meet as many functions"),
    (
        "convoy",
        setup(CHAIN, deployment="pipeline", options={"spread": "round-robin"}),
        "spread=round-robin is of functions on one worker (deployment: inline)",
    ),
    (
        "convoy",
        setup((functions.bridge(),), options={"spread": "round-robin"}),
        "spread=round-robin is of functions that remember no packets",
    ),
    ("convoy", setup(CHAIN, deployment="vm"), "convoy cannot be deployed as vm"),
    ("convoy", setup((), "af_packet", options=OCI), "container=oci: af_packet: give it ports that"),
    (
        "convoy",
        setup(CHAIN, deployment="process", options={**OCI, "link": "veth"}),
        "link=veth: containers here have no network",
    ),
    ("convoy+vnf", setup(CHAIN, options={**OCI, "vnf": "vm"}), "vm has no option container=oci"),
    ("ovs-dpdk", setup(CHAIN, options=OCI), "ovs-dpdk has no option container=oci"),
    (
        "vm",
        setup(CHAIN, "virtio-user", options={"guest": "convoy", "nic": "e1000e"}),
        "nic=e1000e: by virtio-user QEMU has virtio only; use ports of kind tap",
    ),
    (
        "vm",
        setup(CHAIN, "virtio-user", options={"guest": "convoy", "convoys": "ethdev-view"}),
        "convoys=ethdev-view: the library goes under guest=testpmd",
    ),
    (
        "vm",
        setup((SWAP,), "tap", options={"guest": "testpmd", "nic": "e1000e"}),
        "nic=e1000e: testpmd is measured on virtio; use guest=convoy",
    ),
    ("vm", setup(CHAIN, "virtio-user", options={"guest": "testpmd"}), "it runs one function"),
    (
        "vm",
        setup((functions.router(1),), "virtio-user", options={"guest": "testpmd"}),
        "it has no mode that does this router",
    ),
    (
        "ovs-dpdk+vnf",
        setup((functions.bridge(),), options={"vnf": "vm", "convoys": "guest"}),
        "convoys=ethdev-view: the library goes under guest=testpmd",
    ),
    (
        "vm",
        setup(CHAIN, "tap", options={"nic": "vmxnet3"}),
        "nic=vmxnet3: Debian's cloud kernel does not drive it; use guest=convoy",
    ),
]


@pytest.mark.parametrize(("name", "query", "words"), REFUSED)
def test_what_cannot_be_done_is_said_before_anything_starts(name, query, words):
    assert words in device(name).cannot(query)


@pytest.mark.parametrize("datapath", ["vring", "dpdk"])
def test_who_moves_packets_is_what_was_asked_for(datapath):
    query = setup((functions.router(1),), options={"datapath": datapath})
    assert [port["datapath"] for port in convoy.descriptor(query)["ports"].values()] == [
        datapath
    ] * 2


def test_what_can_be_done():
    assert device("convoy").cannot(setup(CHAIN, deployment="process")) == ""
    assert device("ovs-dpdk").cannot(setup(CHAIN, options={"caches": "megaflow"})) == ""
    assert device("linux").cannot(setup(CHAIN, "af_xdp")) == ""
    assert device("vm").cannot(setup(CHAIN, "virtio-user", options={"guest": "convoy"})) == ""


def test_a_process_for_each_function_is_joined_to_the_next():
    parts = convoy.processes(
        setup((*CHAIN, functions.layer2()), deployment="process", cores=(2, 3)), "memif"
    )
    assert [(p.left.kind, p.left.address, p.right.kind, p.right.address) for p in parts] == [
        ("vhost-user", "l", "memif", "/nowhere/link0"),
        ("memif-client", "/nowhere/link0", "memif", "/nowhere/link1"),
        ("memif-client", "/nowhere/link1", "vhost-user", "r"),
    ]
    assert [part.cores for part in parts] == [(2,), (3,), (2,)]
    assert [len(part.functions) for part in parts] == [1, 1, 1]


def test_processes_share_the_buffers_of_the_first():
    three = setup((*CHAIN, functions.layer2()), deployment="process")
    ports = [convoy.descriptor(part)["ports"] for part in convoy.processes(three, "shared")]
    at = {"shared": "/nowhere/pool"}
    client = at | {"role": "client"}
    assert [(p["left"].get("link"), p["right"].get("link")) for p in ports] == [
        (None, "link0"), ("link0", "link1"), ("link1", None)
    ]  # fmt: skip
    assert at.items() <= ports[0]["right"].items()
    assert "role" not in ports[0]["right"]
    for one in (ports[1]["left"], ports[1]["right"], ports[2]["left"]):
        assert client.items() <= one.items()


@pytest.mark.parametrize(
    ("link", "cores", "expected"),
    [
        ("vhost-user", (2,), [(None, None), (256, None)]),  # a guest makes the rings
        ("memif", (2,), [(None, 256), (256, None)]),
        ("vhost-user", (2, 3), [(None, None), (None, None)]),
        ("memif", (2, 3), [(None, None), (None, None)]),
    ],
)
def test_processes_that_share_a_core_have_short_rings_between_them(link, cores, expected):
    parts = convoy.processes(setup(CHAIN[:2], deployment="process", cores=cores), link)
    ports = [convoy.descriptor(part)["ports"] for part in parts]
    assert [
        tuple(port[end].get("slots") for end in ("left", "right")) for port in ports
    ] == expected


def test_one_function_alone_is_one_process():
    alone = setup(CHAIN[:1], deployment="process")
    assert convoy.processes(alone, "memif") == [alone]


def test_a_router_behind_another_takes_frames_that_are_not_for_it():
    scripts = linux.scripts(setup((CHAIN[1], CHAIN[0], CHAIN[1]), "af_packet"))
    assert ["pkttype set unicast" in script.text for script in scripts] == [False, False, True]


def test_namespaces_are_wired_in_a_row():
    lines = veth.wiring([10, 20], setup(CHAIN, "af_packet", cores=(0, 3)))
    assert lines[0] == "ip link add l type veth peer name left netns 10"
    assert "--target=10 --net ip link add right type veth peer name left netns 20" in lines[1]
    assert lines[2] == "ip link add r type veth peer name right netns 20"
    assert "echo 9 > /sys/class/net/left/queues/rx-0/rps_cpus" in lines[-1]


def test_threads_of_open_vswitch_run_on_the_devices_cores():
    configuration = config(setup(cores=(1, 4)), "smc").options("x")
    assert (configuration["pmd-cpu-mask"], configuration["dpdk-lcore-mask"]) == ("0x12", "0x2")
    assert (configuration["emc-insert-inv-prob"], configuration["smc-enable"]) == ("0", "true")
    assert "--no-huge" in configuration["dpdk-extra"]
    assert "--in-memory" in config(setup(hugepages=True), "emc").options("x")["dpdk-extra"]


PMD = """\
pmd thread numa_id 0 core_id 1:
  packets received: 100
  avg. datapath passes per packet: 1.00
  emc hits: 90
  idle cycles: 2000 (50.00%)
  processing cycles: 1500 (50.00%)
  avg cycles per packet: 35.00 (3500/100)
pmd thread numa_id 0 core_id 2:
  packets received: 11
  emc hits: 3
  processing cycles: 7 (50.00%)
main thread:
  packets received: 1000
"""


def test_what_poll_threads_counted_is_added_up_and_the_main_thread_is_none():
    assert pmd_stats(PMD) == {
        "packets received": 111,
        "emc hits": 93,
        "idle cycles": 2000,
        "processing cycles": 1507,
    }
    with pytest.raises(ConvoyError, match="no numbers of a poll thread"):
        pmd_stats("main thread:\n  packets received: 3\n")


PORTS = """\
OFPST_PORT reply (OF1.4) (xid=0x2): 3 ports
  port LOCAL: rx pkts=7, bytes=700, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=0, bytes=0, drop=7, errs=0, coll=0
           duration=0.1s
  port  left: rx pkts=100, bytes=6000, drop=1, errs=0, frame=?, over=?, crc=?
           tx pkts=3, bytes=180, drop=2, errs=?, coll=?
  port  right: rx pkts=4, bytes=240, drop=0, errs=0, frame=?, over=?, crc=?
           tx pkts=95, bytes=5700, drop=5, errs=?, coll=?
"""


def test_what_ports_counted_is_added_up_but_for_the_switchs_own():
    assert port_stats(PORTS) == {
        "rx pkts": 104, "rx bytes": 6240, "rx drop": 1,
        "tx pkts": 98, "tx bytes": 5880, "tx drop": 7,
    }  # fmt: skip


def test_testpmd_modes():
    assert testpmd.mode(()) == ["--forward-mode=io"]
    assert testpmd.mode((SWAP,)) == ["--forward-mode=macswap"]
    assert testpmd.mode((Function("5tswap"),)) == ["--forward-mode=5tswap"]
    assert testpmd.mode((functions.layer2(),))[0] == "--forward-mode=mac"
    assert testpmd.mode((functions.bridge(),)) == ["--forward-mode=io"]
    with pytest.raises(InputError, match="no mode"):
        testpmd.mode((functions.router(1),))


@pytest.mark.parametrize(
    ("accelerator", "words", "never"),
    [("tcg", {"tcg", "max"}, {"kvm", "host"}), ("kvm", {"kvm", "host"}, {"tcg", "max"})],
)
def test_a_virtual_machines_command(accelerator, words, never):
    device = qemu.NetDevice("vhost-user", "left.sock", "02:00:00:00:0d:01")
    command = qemu.command(accelerator, [1], 384, Path("/boot/k"), Path("initramfs"), [device])
    assert words <= set(command)
    assert not never & set(command)
    assert any("vectors=0" in word for word in command) == (accelerator == "tcg")
    assert command[:3] == ["taskset", "-c", "1"]


def test_a_driver_that_is_not_installed_is_said(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(guest, "_PMDS", tmp_path)
    (tmp_path / "pmds-1").mkdir()
    for name in ("bus_pci", "bus_vdev", "mempool_ring", "net_virtio"):
        (tmp_path / f"pmds-1/librte_{name}.so").touch()
    with pytest.raises(ConvoyError, match="not installed: DPDK's driver net_vmxnet3"):
        guest.node_guest(Path("/boot/k"), {}, [], "vmxnet3")


def test_an_archive_holds_what_was_put_in(tmp_path: Path):
    made = Initramfs()
    made.console()
    made.file("etc/motd", b"hello\n", 0o640)
    made.link("etc/issue", "motd")
    archive = made.archive()
    assert len(archive) % 512 == 0
    busybox = guest.busybox()
    if busybox is None:
        pytest.skip("no busybox here: make setup")
    listed = subprocess.run([busybox, "cpio", "-t", "-v"], input=archive, capture_output=True)
    assert listed.returncode == 0, listed.stderr
    lines = [line.split() for line in listed.stdout.decode().splitlines()]
    assert [(line[0], line[-1]) for line in lines] == [
        ("drwxr-xr-x", "."),
        ("drwxr-xr-x", "dev"),
        ("crw-------", "dev/console"),
        ("drwxr-xr-x", "etc"),
        ("-rw-r-----", "etc/motd"),
        ("lrwxrwxrwx", "motd"),
    ]


def test_modules_come_after_those_that_they_need(tmp_path: Path):
    (tmp_path / "modules.dep").write_text(
        "net/a-net.ko: lib/b.ko lib/c.ko\nlib/b.ko: lib/c.ko\nlib/c.ko:\nlib/d.ko: lib/c.ko\n"
    )
    (tmp_path / "modules.builtin").write_text("kernel/e.ko\n")
    files = module_files(tmp_path, ("a_net", "e", "d"))
    assert [file.name for file in files] == ["c.ko", "b.ko", "a-net.ko", "d.ko"]
    with pytest.raises(ConvoyError, match="no module f"):
        module_files(tmp_path, ("f",))


def test_a_script_that_fails_says_why():
    assert shell("echo one\necho two") == "one\ntwo\n"
    with pytest.raises(ConvoyError, match=r"sh: .*nosuchcommand"):
        shell("nosuchcommand\necho after")


class Alone(RunningProcess):
    """A device of which nobody waits for anything."""

    def ready(self, deadline_s):
        pass


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo first >&2; echo last >&2; exit 3", "sh: first; last"),
        ("exit 3", "sh: exit code 3"),
        ("echo last >&2; kill -SEGV $$", "sh: ended by SIGSEGV; last"),
    ],
)
def test_a_device_that_died_says_how(script, words):
    with Process(["/bin/sh", "-c", script]) as process:
        process.wait(60)
        assert str(Alone(process, ()).died()) == words
