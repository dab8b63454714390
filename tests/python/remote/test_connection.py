# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What comes from the other machine is not believed; what goes to ssh is no option of it.

In place of ssh there is a program that says what a test tells it to.
"""

import json
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from convoy.chain.nic import Nic
from convoy.errors import ConvoyError, InputError
from convoy.host.process import wait_for
from convoy.results.device_host import DeviceHost
from convoy.run.remote import messages
from convoy.run.remote.connection import Connection, ConnectionLostError, command
from convoy.run.remote.messages import Hello, IsPresent, Present

PRESENT = '{"version":"1.2","missing":"","remark":""}'


def host(**changed):
    given = {"host": "u@h", "tester_ports": ["a", "b"], "device_ports": ["c", "d"]}
    return DeviceHost.model_validate({**given, **changed})


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """Return what makes a program that does this in place of ssh."""

    def make(*does: str, hello: str | None = None) -> DeviceHost:
        reply = Hello().model_dump_json(by_alias=True) if hello is None else hello
        lines = ["import sys, time", f"print({reply!r}, flush=True)", *does]
        program = tmp_path / "ssh"
        program.write_text(f"#!{sys.executable}\n" + "\n".join(lines) + "\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return host()

    return make


def answers(*lines: str) -> str:
    """Return a program's line that answers requests, but not pings, with these."""
    return (
        f"left = {list(lines)!r}\n"
        "for line in sys.stdin:\n"
        "    if line.strip() != 'ping':\n"
        "        print(left.pop(0), flush=True)"
    )


def ask(one: Connection, deadline_s: float = 30.0) -> Present:
    return one.ask(IsPresent(device="convoy"), Present, deadline_s)


def test_a_request_has_an_answer(ssh):
    refused = '{"error":"no\\u001b[31m such device","code":2}'
    failed = '{"error":"ended","code":1}'
    with Connection(ssh(answers(PRESENT, refused, failed, PRESENT))) as one:
        assert ask(one).version == "1.2"
        with pytest.raises(InputError, match=r"^u@h: no\?\[31m such device$"):
            ask(one)
        with pytest.raises(ConvoyError, match=r"^u@h: ended$") as caught:
            ask(one)
        assert caught.value.exit_code == 1
        assert ask(one).version == "1.2"


def test_what_a_login_shell_prints_before_is_passed_over(ssh):
    reply = "welcome\\n" + Hello().model_dump_json(by_alias=True)
    with Connection(ssh(answers(PRESENT), hello=reply.replace("\\n", "\n"))) as one:
        assert ask(one).version == "1.2"


@pytest.mark.parametrize(
    ("hello", "why"),
    [
        ({"convoy": "0.0.9"}, "has convoy 0.0.9, "),
        ({"commit": "000000000000"}, "commit 000000000000, this machine has"),
        ({"schema": "convoy.device-agent/9", "more": 1}, "install the same on both"),
        ({"convoy": "\x1b]0;x\x07"}, r"has convoy \?\]0;x\?"),
        ({"convoy": "x" * 4000}, "convoy: 'xxx"),
        ({"convoy": 3}, "convoy: "),
    ],
)
def test_another_version_is_refused(ssh, hello, why):
    reply = json.loads(Hello().model_dump_json(by_alias=True)) | hello
    with pytest.raises(InputError, match=why) as caught:
        Connection(ssh("sys.stdin.read()", hello=json.dumps(reply, separators=(",", ":"))))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("print('no JSON', flush=True)", "makes no sense"),
        ("print('{}', flush=True)", "makes no sense"),
        ("""print('{"version":"1","missing":"","remark":"","more":1}', flush=True)""",
         "makes no sense"),
        ("""print('{"error":"x","code":7}', flush=True)""", "makes no sense"),
        ("while True: sys.stdout.write('x' * 65536)", "makes no sense"),
        ("while True: print('{}')", "makes no sense|no answer"),
        ("print('broken', file=sys.stderr); sys.exit(255)", "broken"),
        ("", "no answer within 0.5 s"),
    ],
)  # fmt: skip
def test_whatever_comes_ends_in_one_line(ssh, says, why):
    deadline_s = 0.5 if "0.5" in why else 60.0
    with Connection(ssh("sys.stdin.readline()", says, "sys.stdin.read()")) as one:
        with pytest.raises(ConnectionLostError, match=why) as caught:
            ask(one, deadline_s)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1000
        with pytest.raises(ConnectionLostError, match="the connection is lost"):
            ask(one)


def test_a_connection_shows_that_it_is_there(ssh, tmp_path, monkeypatch):
    monkeypatch.setattr(messages, "PING_S", 0.01)
    heard = tmp_path / "heard"
    does = f"line = sys.stdin.readline(); open({str(heard)!r}, 'w').write(line); sys.stdin.read()"
    with Connection(ssh(does)):
        wait_for(lambda: heard.exists() and heard.read_text() != "", 30, "a ping")
    assert heard.read_text() == "ping\n"


def test_a_host_is_no_option_of_ssh():
    words = command(host(host="root@10.0.0.2", command="/opt/convoy"), Path("f"))
    assert words[-3:] == ["--", "root@10.0.0.2", "/opt/convoy bench device-agent"]
    assert "-oBatchMode=yes" in words
    assert words[words.index("-F") + 1] == "f"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("host", text) for text in (
            "", "-oProxyCommand=sh", "-u@h", "u@-h", "u@", "@h", "u@h\n", "u@h x", "a@b@c", "h;x",
        )),
        *(("command", text) for text in ("", "-x", "convoy; sh", "a b", "$(sh)", "convoy\n")),
        *(("tester_ports", ports) for ports in (
            ["a"], ["a", "b", "c"], ["a", "a"], ["a", "-b"], ["a", "b,iface=c"], ["a", "x" * 16],
            ["a", "dpdk:0000:01:00.0"], ["dpdk:a", "dpdk:b"], ["tap:a", "tap:b"], ["a", "b/../c"],
        )),
    ],
)  # fmt: skip
def test_no_name_is_more_than_a_name(field, value):
    with pytest.raises(ValidationError):
        host(**{field: value})


def test_interfaces_are_of_one_kind():
    assert host(device_ports=["af_xdp:c", "af_xdp:d"]).kind == "af_xdp"
    assert host().kind == "af_packet"
    card = ["dpdk:0000:01:00.0", "dpdk:0000:01:00.1"]
    assert host(device_ports=card).kind == "dpdk"
    assert Nic.read(card[1]) == Nic("dpdk", "0000:01:00.1")
