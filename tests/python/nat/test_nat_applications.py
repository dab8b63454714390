# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""What applications see of a NAT: coturn's RFC 5780 client, iperf3, curl against nginx.

The network is that of test_nat_network; the external host has two addresses.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from convoy.errors import ConvoyError
from convoy.host.namespace import Namespace
from convoy.host.node import Node
from convoy.host.process import Process, wait_for

from .test_nat_network import HOST, LINKS, POOL, ROUTER, Net, _links, _plan

DEADLINE_S = 30.0
SECOND = "192.0.2.3"
NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log stderr;
events {{}}
http {{ access_log off; server {{ listen 192.0.2.2:80; root {folder}; }} }}
"""


@contextmanager
def _net(**config: str) -> Iterator[Net]:
    """Make the network around a nat with this configuration."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for network namespaces")
    plan = _plan(POOL)
    plan["functions"][1]["config"].update(config)
    with ExitStack() as stack:
        try:
            middle, *both = (stack.enter_context(Namespace()) for _ in range(3))
            hosts = dict(zip(HOST, both, strict=True))
            for namespace in (middle, *both):
                namespace.run(LINKS)
            _links(middle, hosts)
            for side, host in hosts.items():
                host.run(f"ip link set {side} up; ip address add {HOST[side]}/24 dev {side}")
            hosts["outside"].run(f"ip address add {SECOND}/24 dev outside")
            hosts["inside"].run(f"ip route add default via {ROUTER['inside']}")
            hosts["outside"].run(f"ip route add {POOL} via {ROUTER['outside']}")
            middle.run("for side in inside outside; do ip link set $side arp off up; done")
        except ConvoyError as error:
            pytest.skip(f"no such network here: {error}")
        node = stack.enter_context(Node(plan, wrapper=middle.command()))
        yield Net(hosts, POOL)
        counts = node.stop()
        assert counts["accounting"]["conserved"], counts["accounting"]


def _serve(net: Net, port: int, *command: str) -> Process:
    """Start a server outside, and wait until it listens."""
    server = Process(list(net.hosts["outside"].command(*command)))

    def listens() -> bool:
        return f":{port} " in net.run("outside", "ss -Hlntu")

    try:
        wait_for(listens, DEADLINE_S, f"{command[0]} listened")
    except BaseException:
        server.close()
        raise
    return server


@pytest.mark.parametrize(
    ("mapping", "filtering"),
    [
        ("endpoint-independent", "endpoint-independent"),
        ("endpoint-independent", "address-dependent"),
        ("endpoint-independent", "address-and-port-dependent"),
        ("address-and-port-dependent", "address-and-port-dependent"),
    ],
)
def test_discovery(mapping: str, filtering: str) -> None:
    """RFC 5780: what the client finds out is what was configured."""
    if shutil.which("turnutils_natdiscovery") is None or shutil.which("turnserver") is None:
        pytest.skip("not installed: coturn")
    words = ["turnserver", "-n", "-z", "--no-tls", "--no-dtls", "--no-cli", "--log-file=stdout"]
    words += [f"--listening-ip={HOST['outside']}", f"--listening-ip={SECOND}", "--stun-only"]
    with _net(mapping=mapping, filtering=filtering) as net, _serve(net, 3479, *words):
        output = net.run("inside", f"turnutils_natdiscovery -m -f {HOST['outside']}")
    kinds = {line.strip(" !") for line in output.splitlines() if line.startswith("NAT with")}

    def name(mode: str, kind: str) -> str:
        return f"NAT with {mode.replace('-', ' ').title().replace(' And ', ' and ')} {kind}"

    assert kinds == {name(mapping, "Mapping"), name(filtering, "Filtering")}, output


def test_iperf3_both_ways() -> None:
    if shutil.which("iperf3") is None:
        pytest.skip("not installed: iperf3")
    with _net() as net, _serve(net, 5201, "iperf3", "-s"):
        for more in ("", "-R", "-u -b 5M"):
            output = net.run("inside", f"iperf3 -c {HOST['outside']} -n 2M {more}")
            assert "iperf Done." in output, output


def test_curl_from_nginx(tmp_path: Path) -> None:
    if shutil.which("nginx") is None or shutil.which("curl") is None:
        pytest.skip("not installed: nginx, curl")
    tmp_path.chmod(0o755)
    (tmp_path / "file").write_bytes(bytes(i % 251 for i in range(300_000)))
    (tmp_path / "conf").write_text(NGINX.format(folder=tmp_path))
    with _net() as net, _serve(net, 80, "nginx", "-c", str(tmp_path / "conf"), "-g", "user root;"):
        output = net.run(
            "inside", f"curl -sS -o /dev/null -w '%{{http_code}} %{{size_download}}' "
            f"http://{HOST['outside']}/file"
        )  # fmt: skip
        assert output.strip() == "200 300000", output
