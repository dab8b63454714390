# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What a virtual machine is told: libvirt's own schema takes it, QEMU takes it, and it connects."""

import shutil
import socket
import subprocess
import xml.etree.ElementTree as Xml

import pytest
from typer.testing import CliRunner

from convoy.cli.libvirt import guest
from convoy.cli.main import app
from convoy.errors import InputError

PLAN = {
    "ports": [
        {"name": "vm", "kind": "vhost-user", "path": "/run/convoy/a<&'\".sock", "queues": 1},
        {"name": "many", "kind": "vhost-user", "path": "/run/convoy/m.sock", "queues": 4},
        {"name": "back", "kind": "vhost-user", "path": "/run/b.sock", "mode": "client"},
        {"name": "wire", "kind": "memif", "path": "/run/w.sock"},
    ]
}
DOMAIN = """<domain type="qemu"><name>x</name><memory unit="MiB">64</memory>{}
<vcpu>1</vcpu><os><type arch="x86_64">hvm</type></os><devices>{}</devices></domain>"""


@pytest.mark.parametrize("port", ["vm", "many", "back"])
def test_libvirts_schema_takes_it(port, tmp_path):
    if shutil.which("virt-xml-validate") is None:
        pytest.skip("virt-xml-validate: apt-get install libvirt-clients libxml2-utils")
    file = tmp_path / "domain.xml"
    file.write_text(DOMAIN.format(*guest(PLAN, port).libvirt()))
    done = subprocess.run(
        ["virt-xml-validate", file, "domain"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_elements_say():
    memory, interface = map(Xml.fromstring, guest(PLAN, "vm").libvirt())
    assert (memory.find("access").get("mode"), memory.find("source").get("type")) == (
        "shared",
        "memfd",
    )
    source = interface.find("source")
    assert (source.get("path"), source.get("mode")) == ("/run/convoy/a<&'\".sock", "client")
    assert source.find("reconnect").get("enabled") == "yes"
    assert interface.find("driver") is None
    many = Xml.fromstring(guest(PLAN, "many").libvirt()[1])
    assert many.find("driver").get("queues") == "4"
    back = Xml.fromstring(guest(PLAN, "back").libvirt()[1]).find("source")
    assert (back.get("mode"), back.find("reconnect")) == ("server", None)


def test_qemu_connects_with_these_options(tmp_path):
    qemu = shutil.which("qemu-system-x86_64")
    if qemu is None:
        pytest.skip("qemu-system-x86_64: apt-get install qemu-system-x86")
    path = str(tmp_path / "v,m.sock")
    plan = {"ports": [{"name": "vm", "kind": "vhost-user", "path": path}]}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listens:
        listens.bind(path)
        listens.listen()
        listens.settimeout(60)
        options = guest(plan, "vm", "64M").command_line()
        with subprocess.Popen(
            [qemu, "-display", "none", "-nodefaults", "-S", "-m", "64M", *options],
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            try:
                connection, _ = listens.accept()
                with connection:
                    connection.settimeout(60)
                    assert int.from_bytes(connection.recv(4), "little") == 1  # GET_FEATURES
                assert process.poll() is None
            finally:
                process.kill()


@pytest.mark.parametrize(
    ("port", "words"), [("mani", "did you mean 'many'"), ("wire", "is of kind memif")]
)
def test_other_ports_are_refused(port, words):
    with pytest.raises(InputError, match=words):
        guest(PLAN, port)


def test_a_plan_that_is_none_is_refused(tmp_path):
    file = tmp_path / "p.json"
    file.write_text('{"schema": "convoy.plan/1"}')
    ran = CliRunner().invoke(app, ["libvirt", str(file), "vm"])
    assert isinstance(ran.exception, InputError), ran.output
    assert f"{file}: " in str(ran.exception)
    assert "ports" in str(ran.exception)
