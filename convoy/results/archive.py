# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Runs' folders in one compressed file, to be kept and passed on.

A tar file, compressed by xz: NAME/plan.yaml, host.json, trials.jsonl, points.jsonl, memory.jsonl,
simulated.jsonl of each run. Logs and pages are left out; pages can be made again. Equal results
make equal bytes.
"""

import io
import re
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path

from convoy.base.files import write_whole
from convoy.errors import InputError
from convoy.results.folder import (
    HOST,
    MEMORY,
    PLAN,
    POINTS,
    SIMULATED,
    TRIALS,
    RunFolder,
)

FILES = (PLAN, HOST, TRIALS, POINTS, MEMORY, SIMULATED)
MOST_BYTES = 4 << 30  # that an archive may hold
MOST_FILES = 1000
_HISTOGRAM = re.compile(rb'"histogram_ns":\[[^"]*\](?=[,}])')
_NAME = re.compile(rf"([\w.+-]{{1,100}})/({'|'.join(map(re.escape, FILES))})")


def pack(folders: Sequence[Path], to: Path, checkout: Path, histograms: bool = True) -> None:
    """Write an archive of runs' folders, each by its name. Raises InputError.

    Where the checkout lies is not in it: paths of its programs begin there.
    histograms: with those of latency; its percentiles are kept either way.
    """
    here = f"{checkout}/".encode()
    names = [path.resolve().name for path in folders]
    for path, name in zip(folders, names, strict=True):
        if names.count(name) > 1:
            raise InputError(f"{path}: two runs are called '{name}'; rename one of the folders")
        if not _NAME.fullmatch(f"{name}/{PLAN}") or name.startswith("."):
            raise InputError(f"{path}: '{name}': use letters, digits, '_', '.', '+' and '-' only")
        RunFolder(path).plan()
        RunFolder(path).host()
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w:xz", format=tarfile.PAX_FORMAT, preset=9) as archive:
        for path, name in sorted(zip(folders, names, strict=True), key=lambda one: one[1]):
            for file in FILES:
                if (path / file).exists():
                    data = (path / file).read_bytes().replace(here, b"")
                    if not histograms:
                        data = _HISTOGRAM.sub(b'"histogram_ns":[]', data)
                    entry = tarfile.TarInfo(f"{name}/{file}")
                    entry.size = len(data)
                    archive.addfile(entry, io.BytesIO(data))
    try:
        write_whole(to, result.getvalue())
    except OSError as error:
        raise InputError(f"{to}: {error.strerror}; give another file") from None


@contextmanager
def unpacked(paths: Sequence[Path]) -> Iterator[dict[Path, Path]]:
    """Yield where runs' folders lie, by what they are called: ARCHIVE/NAME if they were in one.

    Raises InputError where a file is no archive of results, or a folder is given twice. Nothing
    but an archive's regular files is read.
    """
    places = [path.resolve() for path in paths]
    for path, place_of in zip(paths, places, strict=True):
        if places.count(place_of) > 1:
            raise InputError(f"{path}: given twice; give each run's folder once")
    with tempfile.TemporaryDirectory(prefix="convoy-results-") as place:
        folders: dict[Path, Path] = {}
        for number, path in enumerate(paths):
            if path.is_file():
                names = _unpack(path, Path(place, str(number)))
                folders |= {path / name: Path(place, str(number), name) for name in names}
            else:
                folders[path] = path
        yield folders


def _unpack(path: Path, to: Path) -> list[str]:
    names: dict[str, None] = {}
    room = MOST_BYTES
    try:
        with tarfile.open(path, "r:*") as archive:
            for number, entry in enumerate(archive):
                match = _NAME.fullmatch(entry.name)
                if not entry.isreg() or match is None or match[1].strip(".") == "":
                    raise InputError(
                        f"{path}: has '{entry.name[:80]}', and only files of runs may be in it; "
                        "make it by convoy results pack"
                    )
                room -= entry.size
                if room < 0 or number == MOST_FILES:
                    raise InputError(
                        f"{path}: has more than {MOST_BYTES >> 30} GiB or {MOST_FILES} files; "
                        "unpack it yourself and give the folders"
                    )
                source = archive.extractfile(entry)
                assert source is not None  # it is a regular file
                (to / match[1]).mkdir(parents=True, exist_ok=True)
                (to / entry.name).write_bytes(source.read())
                names[match[1]] = None
    except (tarfile.TarError, EOFError, LZMAError) as error:
        raise InputError(
            f"{path}: {error}; give a run's folder, or what results pack made"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; give another file") from None
    if not names:
        raise InputError(f"{path}: no run is in it; make it by convoy results pack")
    return list(names)
