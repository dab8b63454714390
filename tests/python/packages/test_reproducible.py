# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The same tree gives the same packages, byte for byte, wherever and however it is built."""

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# What a package must not depend on, as `make deb` before it had it otherwise.
OTHERWISE = {
    "CCACHE_DISABLE": "1",  # what a cache brings would be the same for that reason
    "TZ": "Asia/Kolkata",
    "LC_ALL": "C",
    "USER": "somebody",
}

if not os.environ.get("CONVOY_PACKAGES"):
    pytest.skip("takes minutes: make check-packages", allow_module_level=True)

REPOSITORY = Path(os.environ["CONVOY_PACKAGES"]).resolve()


def contents(package: Path) -> dict[str, str]:
    """Return what is in a package: each file's rights, owner, time and digest, in their order."""
    done = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True, timeout=300
    )
    match = {}
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isreg() else None
            digest = hashlib.sha256(file.read()).hexdigest() if file else member.linkname
            rights = f"{member.mode:o} {member.uname}:{member.gname} {member.mtime}"
            match[member.name] = f"{rights} {digest}"
    return match


def differences(one: Path, other: Path) -> list[str]:
    """Return the names of files that differ; where none does, the package itself does."""
    a, b = contents(one), contents(other)
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    return names[:20] or [f"{one.name}: order of files, or what describes it"]


@pytest.mark.timeout(3600)
def test_built_again_elsewhere_they_are_the_same(tmp_path):
    again = tmp_path / "another-name-for-it"
    done = subprocess.run(
        ["sh", "-c", 'umask 027; exec tools/deb "$1"', "sh", again],
        cwd=ROOT, env={**os.environ, **OTHERWISE, "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    first = sorted(REPOSITORY.glob("*.deb"))
    assert first and [one.name for one in first] == sorted(one.name for one in again.glob("*.deb"))
    match = {
        one.name: differences(one, again / one.name)
        for one in first
        if one.read_bytes() != (again / one.name).read_bytes()
    }
    assert match == {}
    assert (REPOSITORY / "Packages").read_bytes() == (again / "Packages").read_bytes()
