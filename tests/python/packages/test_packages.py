# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The Debian packages, in a bare root of the same release, with nothing but their repository.

`make check-packages` builds them and runs this; it takes minutes, so `make check` does not.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from .root import Root

ROOT = Path(__file__).resolve().parents[3]
FIRST_PACKET_S = 60.0
EVERYDAY = ("check", "run", "top", "apply", "next-hop", "doctor", "preload")

if not os.environ.get("CONVOY_PACKAGES"):
    pytest.skip("takes minutes: make check-packages", allow_module_level=True)
if os.getuid() != 0:
    pytest.skip("only root makes a root: sudo make check-packages", allow_module_level=True)
for program, package in (("mmdebstrap", "mmdebstrap"), ("lintian", "lintian")):
    if shutil.which(program) is None:
        pytest.skip(f"{program}: apt-get install {package}", allow_module_level=True)

REPOSITORY = Path(os.environ["CONVOY_PACKAGES"]).resolve()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    with Root(tmp_path_factory.mktemp("root") / release, release, REPOSITORY) as made:
        yield made


def quick_start() -> list[str]:
    """Return the three commands of the README, as a machine runs them that has the repository."""
    text = (ROOT / "README.md").read_text("utf-8")
    section = text.split("## Install", 1)[1].split("\n## ", 1)[0]
    block = re.search(r"```\n(.*?)```", section, re.DOTALL)
    assert block is not None
    lines = [line.partition("#")[0].strip() for line in block[1].splitlines()]
    return [line.removeprefix("sudo ") for line in lines if line]


def test_lintian_has_nothing_to_say():
    done = subprocess.run(
        ["lintian", "--fail-on", "error,warning", *sorted(REPOSITORY.glob("*.deb"))],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert not re.findall(r"^[EW]:.*", done.stdout, re.MULTILINE)


def test_the_readmes_commands_forward_a_packet_within_a_minute_of_installing(root):
    install, copy, run = quick_start()
    begin = time.monotonic()
    root.run(f"{install} -y -qq")
    installed = time.monotonic()
    output = root.run(f"cd /root; {copy}; {run}")
    forwarded = time.monotonic()
    print(f"installed {installed - begin:.1f} s, forwarded {forwarded - installed:.1f} s later")
    assert "received 2000 = sent 1962 + dropped 38 + held 0: conserved" in output
    assert (root.path / "root/out.pcap").stat().st_size == 24 + 1962 * 16 + 336175
    assert forwarded - installed <= FIRST_PACKET_S


def test_nobody_runs_it_as_well(root):
    root.install("convoy-nfv")
    output = root.run(
        "cp -r /usr/share/doc/convoy-nfv/examples /tmp/mine; chmod -R a+rwX /tmp/mine; "
        "cd /tmp/mine; "
        "setpriv --reuid 65534 --regid 65534 --clear-groups "
        "convoy run three-functions.yaml --read packets.pcap --write out.pcap"
    )
    assert "conserved" in output


def test_everyday_commands_need_no_other_package(root):
    root.install("convoy-nfv")
    root.run("convoy check --plan /usr/share/doc/convoy-nfv/examples/home-gateway.yaml")
    assert "which is not here" in root.run("convoy report --help")
    for command in EVERYDAY:
        root.run(f"convoy {command} --help")
    assert "convoy-tester" in root.run("convoy bench nf", code=2)
    assert "install Convoy's Debian package convoy-preload" in root.run(
        "convoy preload ethdev -- /usr/bin/convoyd", code=2
    )


def test_the_other_packages(root):
    root.install("convoy-tester", "convoy-preload", "convoy-sim", "libconvoy-dev")
    root.run("convoy-gen --version; convoy-sim --help")
    root.run("convoy bench run --help; convoy bench nf --entries 10 --repeats 1")
    root.run("convoy sim run /usr/share/doc/convoy-sim/examples/sim/measured-node.yaml --json")
    root.run("convoy preload ethdev -- /usr/bin/convoyd --help")
    root.run("convoy preload vhost -- /usr/bin/convoyd --help")


def test_bash_completes(root):
    root.install("convoy-nfv")
    words = root.run(
        "bash -c 'COMP_WORDS=(convoy re) COMP_CWORD=1; "
        ". /usr/share/bash-completion/completions/convoy; "
        "_convoy_completion convoy; echo ${COMPREPLY[@]}'"
    )
    assert {"report", "results"} == set(words.split())


def test_the_unit_is_valid_and_confined(root):
    root.install("convoy-nfv")
    unit = next(root.path.glob("*lib/systemd/system/convoy@.service"))
    for command in (
        ["verify", "--man=no", "--recursive-errors=no", unit.with_name("convoy@x.service").name],
        ["security", "--offline=true", "--threshold=20", unit.name],
    ):
        done = subprocess.run(
            ["systemd-analyze", f"--root={root.path}", *command],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]


def test_the_dashboard_and_the_alerts_are_there(root):
    root.install("convoy-nfv")
    monitoring = root.path / "usr/share/convoy-nfv/monitoring"
    assert json.loads((monitoring / "convoy-dashboard.json").read_text("utf-8"))["panels"]
    assert "convoy_up" in (monitoring / "convoy-alerts.yaml").read_text("utf-8")


def test_purged_nothing_is_left(root):
    root.run(
        "apt-get purge -y -qq convoy-nfv convoy-tester convoy-preload convoy-sim "
        "libconvoy0 libconvoy-dev || true"
    )
    left = root.run("find /etc /usr /var/lib /lib/systemd -ipath '*convoy*'").split()
    assert [path for path in left if "/apt/" not in path and "/dpkg/" not in path] == []
