# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Speaks to a device agent on another machine, over ssh.

What comes from there is another machine's word: it is bounded, and read by strict models.
"""

import threading
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from convoy.base.problem import printable
from convoy.errors import ConvoyError, InputError, first_problem
from convoy.host.process import Process, ProcessError
from convoy.host.scope import Scope
from convoy.results.device_host import DeviceHost
from convoy.run.remote import messages

CONNECT_S = 15
HELLO_S = 60.0  # Python starts there, on a machine that may be busy
ANSWER_S = 60.0
START_S = 240.0  # of a device, with all its tables
END_S = 40.0  # until nothing is left there
LINES_KEPT = 32  # a login shell may print some before the first
WORDS_MAX = 400

A = TypeVar("A", bound=messages.Message)


class ConnectionLostError(ConvoyError):
    """The other machine is not reached any more: no device can be measured."""


def command(host: DeviceHost, ssh_config: Path | None) -> list[str]:
    """Return the command that starts the agent. A host is never an option: it follows --."""
    file = ["-F", str(ssh_config)] if ssh_config is not None else []
    options = {
        "BatchMode": "yes",  # nobody is there to type a password
        "ConnectTimeout": CONNECT_S,
        "ServerAliveInterval": messages.PING_S,
        "ServerAliveCountMax": 5,
        "ControlMaster": "no",
        "ControlPath": "none",
        "ClearAllForwardings": "yes",
        "LogLevel": "ERROR",
    }
    words = [f"-o{name}={value:g}" if isinstance(value, float) else f"-o{name}={value}"
             for name, value in options.items()]  # fmt: skip
    there = f"{host.command} bench device-agent"
    return ["ssh", "-T", *file, *words, "--", host.host, there]


class Connection(Scope):
    """An agent that waits for requests. Use it with `with`: at the end it has ended."""

    def __init__(self, host: DeviceHost, ssh_config: Path | None = None) -> None:
        """Connect, and compare versions.

        Raises InputError where they differ, or where the machine is not reached.
        """
        self.host = host
        self.lost = False
        self._speaking = threading.Lock()
        self._end = threading.Event()
        try:
            self._ssh = Process(command(host, ssh_config), takes_input=True, lines_kept=LINES_KEPT)
        except ProcessError as error:
            raise InputError(f"{error}; install OpenSSH's client (openssh-client)") from None
        try:
            self._greet()
            self._pings = threading.Thread(target=self._ping, name="pings", daemon=True)
            self._pings.start()
        except BaseException:
            self._ssh.close()
            raise

    def _greet(self) -> None:
        begins = f'{{"schema":"{messages.SCHEMA.partition("/")[0]}/'
        line = self._ssh.stdout.wait(lambda text: text.startswith(begins), HELLO_S)
        if line is None:
            raise InputError(f"{self.host.host}: no device agent there: {self._words()}")
        self._answers = self._ssh.stdout.count()
        try:
            hello = messages.Hello.model_validate_json(line)
        except ValidationError as error:
            why = printable(first_problem(error))[:WORDS_MAX]
            raise InputError(f"{self.host.host}: {why}") from None
        mine = messages.Hello()
        if hello != mine:
            raise InputError(
                f"{self.host.host}: has convoy {_version(hello)}, this machine has "
                f"{_version(mine)}: install the same on both, or name another command there: "
                "--device-command"
            )

    def _words(self) -> str:
        """Return why ssh, or the agent, has ended, in one line."""
        words = self._why(HELLO_S)
        if self._ssh.exit_code == 127:
            return (
                f"{words}; install Convoy there, or say where its command is: --device-command PATH"
            )
        return words

    def ask(self, request: messages.Request, answer: type[A], deadline_s: float = ANSWER_S) -> A:
        """Return the answer to a request.

        Raises InputError or ConvoyError where it is refused, ConnectionLostError without an answer.
        """
        if self.lost:
            raise ConnectionLostError(f"{self.host.host}: the connection is lost")
        try:
            self._say(request.line())
        except ProcessError as error:
            raise self._no_answer(printable(str(error))) from None
        try:
            line = self._ssh.stdout.line(self._answers, deadline_s)
        except BaseException:
            self.lost = True  # interrupted: what comes next is the answer to this
            raise
        self._answers += 1
        if line is None:
            raise self._no_answer(self._why(deadline_s))
        if line.startswith('{"error":'):
            refused = self._read(line, messages.Refused)
            kind = InputError if refused.code == 2 else ConvoyError
            raise kind(f"{self.host.host}: {printable(refused.error)}")
        return self._read(line, answer)

    def _read(self, line: str, model: type[A]) -> A:
        try:
            return model.model_validate_json(line)
        except ValidationError as error:
            why = printable(first_problem(error))[:WORDS_MAX]
            raise self._no_answer(f"an answer that makes no sense: {why}") from None

    def _why(self, deadline_s: float) -> str:
        """Return why no line came, in one line."""
        if self._ssh.stdout.alive():
            return f"no answer within {deadline_s:g} s"
        with suppress(ProcessError):
            self._ssh.wait(1.0)  # its output may end a moment before it does
        return printable(self._ssh.last_words())[:WORDS_MAX]

    def _no_answer(self, why: str) -> ConnectionLostError:
        self.lost = True
        self._end.set()
        self._ssh.close()  # nothing that still comes is the answer to anything
        return ConnectionLostError(f"{self.host.host}: the connection is lost: {why}")

    def _say(self, line: str) -> None:
        with self._speaking:
            self._ssh.say(line)

    def _ping(self) -> None:
        while not self._end.wait(messages.PING_S):
            try:
                self._say(messages.PING)
            except (ProcessError, ValueError):
                return  # who asks next sees why

    def _leave(self) -> None:
        self._end.set()
        self._pings.join()
        try:
            self._ssh.end_input()
            with suppress(ProcessError):
                self._ssh.wait(END_S)  # it ends when all that it started has ended
        finally:
            self._ssh.close()


def _version(hello: messages.Hello) -> str:
    at = f", commit {printable(hello.commit)}" if hello.commit else ""
    return f"{printable(hello.convoy)}{at}"
