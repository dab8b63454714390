# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Doctor: each finding on a machine that has it and on one that has not."""

import pytest

from convoy.cli.doctor import diagnose, measurable
from convoy.dut.devices import DEVICES
from convoy.host.container import _tried

CPU = "sys/devices/system/cpu"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
HUGE = "sys/kernel/mm/hugepages/hugepages-2048kB"


def find(root, name, allowed=None):
    findings = list(diagnose(root, allowed, lambda command: None, lambda: ()))
    return next((finding for finding in findings if finding.name == name), None)


# description, files that differ from a good server, finding, level, part of what is found, fix
ROWS = [
    ("a server", {}, "processor", "ok", "Fast CPU", ""),
    (
        "a guest",
        {"proc/cpuinfo": "model name : V\nflags : hypervisor sse4_2\n"},
        "processor",
        "note",
        "in a virtual machine",
        "bare metal",
    ),
    (
        "an old processor",
        {"proc/cpuinfo": "flags : sse2\n"},
        "instructions",
        "problem",
        "no SSE4.2",
        "x86-64-v2",
    ),
    ("four cores", {}, "cores", "ok", "4 (0-3)", ""),
    ("one core", {f"{CPU}/online": "0"}, "cores", "problem", "1 (0)", "two cores"),
    ("two nodes", {}, "NUMA", "note", "node 0: cores 0-1, node 1: cores 2-3", "one node"),
    ("isolated", {}, "isolated cores", "ok", "2-3", ""),
    ("not isolated", {f"{CPU}/isolated": ""}, "isolated cores", "note", "none", "isolcpus=3"),
    ("governor", {}, "frequency governor", "ok", "performance", ""),
    (
        "another governor",
        {f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"},
        "frequency governor",
        "problem",
        "performance, powersave",
        "echo performance",
    ),
    ("turbo", {f"{CPU}/intel_pstate/no_turbo": "0"}, "turbo", "note", "on", "no_turbo"),
    ("boost", {f"{CPU}/cpufreq/boost": "1"}, "turbo", "note", "on", "cpufreq/boost"),
    ("no turbo", {f"{CPU}/cpufreq/boost": "0"}, "turbo", "ok", "off", ""),
    (
        "threads",
        {
            f"{CPU}/cpu{i}/topology/thread_siblings_list": f"{i // 2 * 2}-{i // 2 * 2 + 1}"
            for i in range(4)
        },
        "hardware threads",
        "note",
        "0-1 2-3",
        "smt/control",
    ),
    ("large pages", {THP: "always [madvise] never\n"}, "large pages", "ok", "(madvise)", ""),
    ("large pages off", {THP: "always madvise [never]\n"}, "large pages", "note", "never", THP),
    ("no large pages", {}, "large pages", "note", "no support", ""),
    ("a good clock", {}, "time stamp counter", "ok", "constant", ""),
    (
        "a bad clock",
        {"proc/cpuinfo": "flags : sse4_2 tsc\n"},
        "time stamp counter",
        "problem",
        "not constant",
        "constant_tsc",
    ),
    (
        "mitigations",
        {f"{CPU}/vulnerabilities/spectre_v2": "Mitigation: Retpolines"},
        "mitigations",
        "note",
        "active: spectre_v2",
        "mitigations=off",
    ),
    ("no mitigations", {}, "mitigations", "ok", "active: none", ""),
    (
        "autogroup",
        {"proc/sys/kernel/sched_autogroup_enabled": "1"},
        "autogroup",
        "note",
        "on",
        "sysctl kernel.sched_autogroup_enabled=0",
    ),
    ("quiet", {}, "load", "ok", "0 in", ""),
    ("busy", {"proc/loadavg": "1.50 1 1 1/1 1"}, "load", "note", "1.5 in", "top"),
    ("hugepages", {}, "hugepages", "ok", "1000 of 1024 free", ""),
    (
        "taken hugepages",
        {f"{HUGE}/free_hugepages": "10"},
        "hugepages",
        "note",
        "10 of 1024 free",
        "echo 512 | sudo tee /sys/kernel",
    ),
    ("not mounted", {"proc/mounts": ""}, "hugepages", "note", "not mounted", "mount -t hugetlbfs"),
    (
        "no hugepages",
        {f"{HUGE}/nr_hugepages": None, f"{HUGE}/free_hugepages": None},
        "hugepages",
        "note",
        "none",
        "",
    ),
    (
        "hugepages on one node",
        {
            "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": "512",
            "sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages": "0",
        },
        "hugepages by node",
        "note",
        "none on node1",
        "node1/hugepages",
    ),
    ("memory", {}, "memory", "ok", "58593 MiB", ""),
    (
        "little memory",
        {"proc/meminfo": "MemAvailable: 500000 kB"},
        "memory",
        "problem",
        "488 MiB",
        "mb: 256",
    ),
    (
        "Landlock",
        {"sys/kernel/security/lsm": "lockdown,landlock,apparmor"},
        "Landlock",
        "ok",
        "on",
        "",
    ),
    (
        "no Landlock",
        {"sys/kernel/security/lsm": "lockdown,apparmor\n"},
        "Landlock",
        "note",
        "off",
        "lsm=landlock,lockdown,apparmor",
    ),
    ("a card", {}, "network card", "ok", "eth0: ?, 25000 Mb/s, NUMA node 0", ""),
    ("iommu", {}, "IOMMU", "ok", "dmar0", ""),
    ("no iommu", {"sys/class/iommu/dmar0/name": None}, "IOMMU", "note", "off", "iommu=pt"),
    ("kvm", {}, "KVM", "ok", "/dev/kvm", ""),
    ("no kvm", {"dev/kvm": None}, "KVM", "note", "none", "modprobe"),
]


@pytest.mark.parametrize(
    ("files", "name", "level", "result", "fix"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_finding(tree, files, name, level, result, fix):
    finding = find(tree(files), name)
    assert finding is not None
    assert finding.level == level
    assert result in finding.state
    assert fix in finding.fix
    assert bool(finding.fix) >= bool(fix)


def test_cores_that_we_may_not_use_do_not_count(tree):
    assert find(tree({}), "cores", {3}).state == "1 (3)"


def test_an_empty_machine_is_described_too(tmp_path):
    findings = list(diagnose(tmp_path, set(), lambda command: None))
    assert {finding.name for finding in findings} >= {"processor", "cores", "hugepages", "IOMMU"}


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("nftables v1.0.6 (Lester Gooch #5)", "1.0.6"),
        ("ovs-vswitchd (Open vSwitch) 3.1.0", "3.1.0"),
        ("vpp v26.06-rc0~12-gabc built by x", "26.06-rc0~12-gabc"),
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)", "7.2.22"),
        ("/usr/bin/abacus", "/usr/bin/abacus"),
    ],
)
def test_version(line, version):
    from convoy.host.doctor.programs import version as parse

    assert parse(line) == version


def test_every_device_is_listed():
    result = {finding.name: finding for finding in measurable()}
    devices = {f"device {each.name}" for each in DEVICES if each.name != "dummy"}
    assert result.keys() == {*devices, "OCI containers", "applications"}
    for each in DEVICES:
        if each.name != "dummy":
            presence = each.presence()
            words = presence.missing or presence.version
            assert result[f"device {each.name}"].state == words


def test_an_application_that_lacks_a_program_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("convoy.run.application._SBIN", "")
    monkeypatch.setattr("convoy.host.container._tried", _tried.__wrapped__)  # what it knew before
    result = next(one for one in measurable() if one.name == "applications")
    assert result.level == "note"
    assert "http: not installed: nginx (Debian: apt-get install nginx-light)" in result.state
