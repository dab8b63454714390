# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Processes that never outlive us: started, waited for by condition, stopped, with `with`.

A process is the leader of a session and process group of its own (so that a terminal's Ctrl-C is
ours to pass on, and nice values rank it by itself), and the kernel kills it should we die.
"""

import contextlib
import errno
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from convoy.errors import ConvoyError
from convoy.host.scope import Scope

LINES_KEPT = 10_000
LINE_MAX = 1 << 23  # characters; a longer line is read as several
# The kernel kills a process whose parent dies, from this request on: the shell checks once that we
# are still there. No Python runs between fork and exec: beside other threads it could hang.
_BOUND = ("setpriv", "--pdeathsig", "KILL", "sh", "-c",
          'test "$PPID" = "$1" || exit 127; shift; exec "$@"', "sh")  # fmt: skip


class ProcessError(ConvoyError):
    """A process ended when it should not have, or did not when it should."""


def wait_for(condition: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Wait until a condition holds that nothing signals. Raises ProcessError after deadline_s."""
    end = time.monotonic() + deadline_s
    pause = threading.Event()
    while not condition():
        if time.monotonic() > end:
            raise ProcessError(f"{what}: not within {deadline_s:g} s")
        pause.wait(0.01)


class Lines:
    """What a process writes to one of its streams, read as it comes by a thread of its own."""

    def __init__(
        self,
        stream: IO[str],
        on_line: Callable[[str], None] | None = None,
        kept: int = LINES_KEPT,
    ) -> None:
        """Read a stream; on_line, if given, is called with each line by the reading thread."""
        self._on_line = on_line
        self._lines: deque[str] = deque(maxlen=kept)
        self._read = 0  # lines ever read
        self._ended = False
        self._change = threading.Condition()
        self._stream = stream
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._stream:
            while line := self._stream.readline(LINE_MAX):
                if self._on_line is not None:
                    self._on_line(line.rstrip("\n"))
                with self._change:
                    self._lines.append(line.rstrip("\n"))
                    self._read += 1
                    self._change.notify_all()
        with self._change:
            self._ended = True
            self._change.notify_all()

    def text(self) -> str:
        """Return what was written (the last LINES_KEPT lines)."""
        with self._change:
            return "\n".join(self._lines)

    def count(self) -> int:
        """Return how many lines have come."""
        with self._change:
            return self._read

    def line(self, number: int, deadline_s: float) -> str | None:
        """Return the line of that number (from 0), or None: it ended, or too late."""
        with self._change:
            self._change.wait_for(lambda: self._read > number or self._ended, deadline_s)
            first = self._read - len(self._lines)
            if self._read <= number or number < first:
                return None
            return self._lines[number - first]

    def alive(self) -> bool:
        """Return whether more may come."""
        with self._change:
            return not self._ended

    def wait_end(self, deadline_s: float) -> None:
        """Wait until the stream was read to its end."""
        self._thread.join(deadline_s)

    def wait(
        self, wanted: Callable[[str], bool], deadline_s: float, renewed: bool = False
    ) -> str | None:
        """Return the first line (of those kept) that is wanted, or None: it ended, or too late.

        renewed: each line that comes gives it the whole time again.
        """
        end = time.monotonic() + deadline_s
        seen = 0
        with self._change:
            while True:
                fresh = list(self._lines)[max(0, len(self._lines) - (self._read - seen)) :]
                seen = self._read
                if fresh and renewed:
                    end = time.monotonic() + deadline_s
                for line in fresh:
                    if wanted(line):
                        return line
                left = end - time.monotonic()
                if self._ended or left <= 0:
                    return None
                self._change.wait(left)


class Process(Scope):
    """A running program. Use it with `with`: at the end it is stopped, and gone."""

    def __init__(
        self,
        command: Sequence[str | Path],
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        stop_deadline_s: float = 10.0,
        takes_input: bool = False,
        on_line: Callable[[str], None] | None = None,
        on_output: Callable[[str], None] | None = None,
        lines_kept: int = LINES_KEPT,
    ) -> None:
        """Start it. environment is added to ours. Raises ProcessError.

        takes_input: it reads lines that `say` writes, rather than nothing.
        on_line, on_output: called with each line of its stderr, of its stdout, by other threads.
        lines_kept: of each of its streams, the last ones.
        """
        self.command = tuple(str(word) for word in command)
        self.name = Path(self.command[0]).name
        self.stop_deadline_s = stop_deadline_s
        if shutil.which(self.command[0], path=os.environ.get("PATH", os.defpath)) is None:
            why = os.strerror(errno.EACCES if Path(self.command[0]).exists() else errno.ENOENT)
            raise ProcessError(f"{self.command[0]}: {why}")
        # Given to the program alone: what is preloaded under it is none of the shell's business.
        added = [f"{name}={value}" for name, value in (environment or {}).items()]
        try:
            self._popen = subprocess.Popen(
                [*_BOUND, str(os.getpid()), *(["env", *added] if added else []), *self.command],
                stdin=subprocess.PIPE if takes_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            raise ProcessError(f"{error.filename}: {error.strerror}") from None
        assert self._popen.stdout is not None and self._popen.stderr is not None
        self.stdout = Lines(self._popen.stdout, on_output, lines_kept)
        self.stderr = Lines(self._popen.stderr, on_line, lines_kept)

    @property
    def pid(self) -> int:
        """Its process id, which is its process group's too."""
        return self._popen.pid

    @property
    def command_line(self) -> str:
        """What was started, as a shell would take it."""
        return shlex.join(self.command)

    def say(self, line: str) -> None:
        """Write a line to its standard input (takes_input). Raises ProcessError if it is gone."""
        assert self._popen.stdin is not None, "not started with takes_input"
        try:
            self._popen.stdin.write(line + "\n")
            self._popen.stdin.flush()
        except OSError:
            raise ProcessError(f"{self.name} ended: {self.last_words()}") from None

    def end_input(self) -> None:
        """Close its standard input."""
        if self._popen.stdin is not None and not self._popen.stdin.closed:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()

    def running(self) -> bool:
        """Return whether it has not ended."""
        return self._popen.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it ended (negative: by that signal), None while it runs."""
        return self._popen.poll()

    def wait_line(
        self, wanted: Callable[[str], bool], deadline_s: float, what: str, renewed: bool = False
    ) -> str:
        """Return the first line of its stdout that is wanted. Raises ProcessError.

        renewed: it may take as long as it likes, but be silent no longer than deadline_s.
        """
        line = self.stdout.wait(wanted, deadline_s, renewed)
        if line is not None:
            return line
        if self._ended_within(1.0):
            raise ProcessError(f"{self.name} ended before {what}: {self.last_words()}")
        if renewed:
            last = (self.stdout.text().splitlines() or ["nothing at all"])[-1].strip()
            raise ProcessError(
                f"{self.name}: not {what}; silent for {deadline_s:g} s after: {last}"
            )
        raise ProcessError(f"{self.name}: not {what} within {deadline_s:g} s")

    def wait(self, deadline_s: float | None = None) -> int:
        """Wait until it ends and everything it wrote was read; return its exit code."""
        try:
            code = self._popen.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise ProcessError(f"{self.name}: did not end within {deadline_s:g} s") from None
        self.stdout.wait_end(1.0)
        self.stderr.wait_end(1.0)
        return code

    def last_words(self) -> str:
        """Return the last thing it said about why it ended, its own words before others'."""
        self.stderr.wait_end(1.0)
        lines = [line.strip() for line in self.stderr.text().splitlines() if line.strip()]
        own = [line for line in lines if line.startswith(f"{self.name}:")]
        return (own or lines or [f"exit code {self.exit_code}"])[-1]

    def signal(self, number: int) -> None:
        """Send a signal to it (and to nothing else: it passes it on as it likes)."""
        if self.running():
            self._popen.send_signal(number)

    def stop(self) -> int:
        """Ask it to end, insist after stop_deadline_s, and return its exit code."""
        self.end_input()
        self.signal(signal.SIGTERM)
        if not self._ended_within(self.stop_deadline_s):
            self._kill_group()
        return self.wait()

    def _ended_within(self, deadline_s: float) -> bool:
        try:
            self._popen.wait(deadline_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _kill_group(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self._popen.kill()

    def _leave(self) -> None:
        try:
            self.stop()
        finally:
            self._kill_group()  # what it started and left behind


def output_of(process: Process) -> str:
    """Return what a process wrote, to both of its streams: the last LINES_KEPT lines of each."""
    return "\n".join(text for text in (process.stdout.text(), process.stderr.text()) if text)
