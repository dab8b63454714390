# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The agent does one thing at a time, refuses what makes no sense, and ends with its input."""

import json
import subprocess
import sys

import pytest

from convoy.host.process import Process
from convoy.run.remote import messages

COMMAND = [sys.executable, "-c", "from convoy.cli.main import main; main()", "bench",
           "device-agent"]  # fmt: skip
START = '{"do":"start","device":"convoy","setup":{},"cores":[0],"hugepages":false}'


@pytest.fixture(scope="module")
def agent():
    with Process(COMMAND, takes_input=True) as process:
        assert process.stdout.line(0, 60) == messages.Hello().model_dump_json(by_alias=True)
        yield process


def ask(agent: Process, line: str):
    before = agent.stdout.count()
    agent.say(line)
    reply = agent.stdout.line(before, 60)
    assert reply is not None, agent.last_words()
    return json.loads(reply)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "no request"),
        ("{}", "no request"),
        ('{"do":"format"}', "no request"),
        ('{"do":"stop","more":1}', "no request: stop.more"),
        ('{"do":"look","core":-1}', "no request: look.core"),
        ('{"do":"look","core":"1"}', "no request: look.core"),
        ('{"do":"begin","ports":["left","-right"]}', "no request: begin.ports.1"),
        ('{"do":"begin","ports":["left"]}', "no request: begin.ports"),
        ('{"do":"cannot","device":"convoy","setup":{"colour":1}}', "no request: cannot.setup"),
        ('{"do":"presence","device":"none"}', "none: no such device"),
        ('{"do":"cannot","device":"convoy","setup":{}}', "no interfaces are prepared yet"),
        (START, "no interfaces are prepared yet"),
        (START.replace("[0]", "[]"), "cores"),
        (START.replace("[0]", "[4095]"), "cores"),
        ('{"do":"ready","deadline_s":1.0}', "no device runs"),
        ('{"do":"look","core":0}', "no device runs"),
        ('{"do":"counters"}', "no device runs"),
        ('{"do":"cost"}', "no device runs"),
        ('{"do":"stop"}', "no device runs"),
        ('{"do":"begin","ports":["none-a","none-b"]}', "none-a: no such interface here"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(agent, line, why):
    reply = ask(agent, line)
    assert reply["code"] == 2
    assert reply["error"].startswith(why)
    assert "\n" not in reply["error"]


def test_a_ping_has_no_answer(agent):
    agent.say(messages.PING)
    reply = ask(agent, '{"do":"presence","device":"dummy"}')
    assert set(reply) == {"version", "missing", "remark"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the connection has ended"),
        ("x" * (messages.REQUEST_MAX + 2), "a line of more than"),
        ('{"do":"stop"}\n' * 1000, "a request came before the answer"),
    ],
)
def test_it_ends_with_its_input(text, why):
    done = subprocess.run(
        COMMAND, input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert why in done.stderr
