# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Processes: started, waited for, stopped, and none left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from convoy.host.process import Process, ProcessError, wait_for


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


READY = "import time; print('up', flush=True); time.sleep(60)"


def gone(pid: int) -> bool:
    """No such process, or one that only waits to be reaped by somebody else."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_line_is_waited_for():
    with Process(python(READY)) as process:
        assert process.wait_line(lambda line: line == "up", 10, "it was up") == "up"
        assert process.running()
    assert process.exit_code == -signal.SIGTERM


def test_an_end_before_the_line_tells_the_last_words():
    code = "import sys; print('a'); print('python3: no plan', file=sys.stderr); sys.exit(2)"
    with Process(python(code)) as process:
        process.name = "python3"
        with pytest.raises(ProcessError, match=r"ended before it was up: python3: no plan"):
            process.wait_line(lambda line: line == "up", 10, "it was up")
        assert process.exit_code == 2


def test_a_line_that_does_not_come():
    with Process(python(READY)) as process, pytest.raises(ProcessError, match="not it was done"):
        process.wait_line(lambda line: line == "down", 0.2, "it was done")


def test_no_such_program():
    with pytest.raises(ProcessError, match="/no/such: No such file"):
        Process(["/no/such"])
    with pytest.raises(ProcessError, match="no-such: No such file"):
        Process(["no-such"])
    with pytest.raises(ProcessError, match="/etc/passwd: Permission denied"):
        Process(["/etc/passwd"])


def test_its_environment_is_its_own():
    """Of what starts it, nothing is left: not the words, and no library preloaded under it."""
    code = "import os; print(os.environ['LD_PRELOAD'], os.environ['A']); print(os.getppid())"
    with Process(python(code), {"LD_PRELOAD": "/no/such.so", "A": "b c"}) as process:
        assert process.wait(60) == 0
        assert process.stdout.text().splitlines() == ["/no/such.so b c", str(os.getpid())]
        assert process.stderr.text().count("/no/such.so") == 1  # the loader's line, of python


def test_one_that_does_not_listen_is_killed_with_its_children():
    code = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "if child: print(child, flush=True)\n"
        "time.sleep(60)"
    )
    with Process(python(code), stop_deadline_s=0.2) as process:
        child = int(process.wait_line(str.isdigit, 10, "it had a child"))
    assert process.exit_code == -signal.SIGKILL
    wait_for(lambda: gone(child), 60, "the child is gone")


def test_it_dies_with_us_even_when_we_are_killed():
    code = f"""
import time
from convoy.host.process import Process
with Process({python(READY)!r}) as process:
    process.wait_line(lambda line: line == "up", 10, "it was up")
    print(process.pid, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen(python(code), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
    wait_for(lambda: gone(pid), 60, "the process is gone")


def test_a_long_output_does_not_block():
    code = "print('x' * 999 + '\\n' * 1, end='')\n" * 1 + "for _ in range(20000): print('y' * 99)"
    with Process(python(code)) as process:
        assert process.wait(30) == 0
        assert process.stdout.text().splitlines()[-1] == "y" * 99


def test_wait_for_says_what_did_not_happen():
    with pytest.raises(ProcessError, match="the sun rises: not within 0"):
        wait_for(lambda: False, 0.05, "the sun rises")


def test_it_leads_a_session_of_its_own():
    with Process(python(READY)) as process:
        process.wait_line(lambda line: line == "up", 10, "it was up")
        assert os.getsid(process.pid) == process.pid
