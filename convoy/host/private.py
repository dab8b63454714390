# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A folder for one run's sockets and files that is gone afterwards, also when we are killed.

Nothing can be done by a process that is killed, so another one waits for its end: a shell that
reads a pipe of which only we have the other end.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Processes that die with us may write until they have: remove twice.
_WAIT_AND_REMOVE = 'cat >/dev/null; rm -rf -- "$1"; sleep 1; rm -rf -- "$1"'


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that only this user may enter; its path is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="convoy-"))
    with subprocess.Popen(
        ["sh", "-c", _WAIT_AND_REMOVE, "sh", str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,  # a terminal's Ctrl-C is not for it
    ) as remover:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():  # else somebody still writes there: it tries again
                remover.kill()
