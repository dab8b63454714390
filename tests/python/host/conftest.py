# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A machine made of files: what doctor and placement read under /sys and /proc."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Tree = Callable[[Mapping[str, str]], Path]

SERVER = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast CPU @ 2.50GHz\n"
    "flags\t\t: sse4_2 avx2 constant_tsc nonstop_tsc\n\nprocessor\t: 1\n",
    "proc/loadavg": "0.00 0.01 0.05 1/100 4242",
    "proc/meminfo": "MemTotal: 65536000 kB\nMemAvailable: 60000000 kB\n",
    "proc/mounts": "none /dev/hugepages hugetlbfs rw 0 0\n",
    "proc/sys/kernel/sched_autogroup_enabled": "0",
    "sys/devices/system/cpu/online": "0-3",
    "sys/devices/system/cpu/isolated": "2-3",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/vulnerabilities/meltdown": "Not affected",
    "sys/devices/system/node/node0/cpulist": "0-1",
    "sys/devices/system/node/node1/cpulist": "2-3",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "1024",
    "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "1000",
    "sys/class/iommu/dmar0/name": "",
    "sys/class/net/eth0/device/numa_node": "0",
    "sys/class/net/eth0/speed": "25000",
    "dev/kvm": "",
    **{
        f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list": str(core)
        for core in range(4)
    },
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Make a machine; an empty text removes nothing, a missing key leaves the server's."""

    def make(changes: Mapping[str, str | None]) -> Path:
        for name, content in {**SERVER, **changes}.items():
            if content is not None:
                path = tmp_path / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
        return tmp_path

    return make
