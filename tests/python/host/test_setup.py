# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""tools/setup.sh: servers that it installs do not run, now or at boot; those it found go on."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[3] / "tools" / "setup.sh"
# Programs that setup calls. apt-get asks the policy as maintainer scripts do: invoke-rc.d by a
# service's name, deb-systemd-invoke by its unit's.
PROGRAMS = {
    "id": "echo 0",
    "dpkg-query": 'grep -qx "$4" $HERE/installed && echo installed',
    "apt-get": """\
[ $1 = install ] || exit 0
case " $* " in *" --no-remove "*) ;; *) exit 9 ;; esac
policy=$DPKG_ROOT/usr/sbin/policy-rc.d
for unit in nginx vsftpd.service bird other; do
	[ -x $policy ] && { $policy --quiet $unit start || [ $? = 104 ] || continue; }
	echo "started $unit" >> $HERE/done
done
exit $APT""",
    "update-rc.d": 'echo "$*" >> $HERE/done',
    "invoke-rc.d": 'echo "$*" >> $HERE/done',
}


@dataclass(frozen=True)
class Row:
    description: str
    installed: str
    done: list[str]
    apt: int = 0  # how it ends
    policy: str = ""  # the administrator's


NOT_NGINX = ["nginx disable", "nginx stop"]
NOT_VSFTPD = ["vsftpd disable", "vsftpd stop"]
NOT_BIRD = ["bird disable", "bird stop"]
ROWS = [
    Row("nothing is here", "", ["started other", *NOT_NGINX, *NOT_VSFTPD, *NOT_BIRD]),
    Row("nginx serves", "nginx", ["started nginx", "started other", *NOT_VSFTPD, *NOT_BIRD]),
    Row("all are here", "nginx-light\nvsftpd\nbird2", []),
    Row("apt fails", "", ["started other"], apt=7),
    Row(
        "the administrator has a policy",
        "",
        [*NOT_NGINX, *NOT_VSFTPD, *NOT_BIRD],
        policy="exit 101",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.description)
def test_servers_that_nobody_asked_for_do_not_run(row: Row, tmp_path: Path):
    tree, programs = tmp_path / "tree", tmp_path / "bin"
    sbin = tmp_path / "root" / "usr" / "sbin"
    for folder in (tree / "tools", tree / ".venv", programs, sbin):
        folder.mkdir(parents=True)
    shutil.copy(SETUP, tree / "tools")
    (tree / "tools" / "packages.txt").write_text("# ours\nnginx-light\nvsftpd\nbird2\ngone lenny\n")
    for lock in (tree, tree / ".venv"):
        (lock / "requirements.lock").touch()  # the Python environment is as it should be
    for name, body in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "installed").write_text(row.installed)
    policy = sbin / "policy-rc.d"
    if row.policy:
        policy.write_text(f"#!/bin/sh\n{row.policy}\n")
        policy.chmod(0o755)

    ended = subprocess.run(
        ["sh", tree / "tools" / "setup.sh"],
        env={
            "PATH": f"{programs}:{os.environ['PATH']}",
            "DPKG_ROOT": str(tmp_path / "root"),
            "HERE": str(tmp_path),
            "APT": str(row.apt),
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ended.returncode == row.apt, ended.stderr
    done = tmp_path / "done"
    assert (done.read_text().splitlines() if done.exists() else []) == row.done
    assert policy.exists() == bool(row.policy), "what was found is left, what was made is not"
