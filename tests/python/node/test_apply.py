# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy apply on a running node: nothing is lost, and what is wrong changes nothing."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from convoy.chain.load import loads
from convoy.chain.plan import make_plan
from convoy.cli.main import app
from convoy.client import Client, Difference
from convoy.errors import ConvoyError, InputError
from convoy.host.apply import apply
from convoy.host.machine import this_machine
from convoy.host.node import Node
from convoy.host.process import ProcessError, wait_for
from convoy.results.trial_result import TrialResult
from convoy.tester.convoy_gen import ConvoyGen
from cores import CORES
from memory import own_bytes

PORTS = f"""
ports:
  left: {{vhost-user: left.sock}}
  right: {{vhost-user: right.sock}}
memory: {{mb: 2048}}
workers: {{cores: [{CORES[0]}], idle: sleep}}
"""
ROUTER = """
functions:
  rtr:
    router:
      routes-file: routes
      neighbours: {192.0.2.9: "02:00:00:00:00:NN"}
chains: {all: {from: left, to: right, path: [rtr]}}
"""
FIREWALL = """
functions: {fw: {firewall: {default: deny, rules-file: rules}}}
chains: {all: {from: left, to: right, path: [fw]}}
"""
FLOWS = """
functions:
  fw: {firewall: {stateful: true, rules: [{allow: {proto: udp}}, {allow: {src: 192.0.2.77}}]}}
  nat: {nat: {outside: [right], inside: [INSIDE], pool: [203.0.113.0/28]}}
chains: {all: {from: left, to: right, path: [fw, nat], both-ways: true}}
"""
TRAFFIC = {"rate_pps": 100_000, "duration_s": 1, "drain_s": 30, "tolerance": 1}
MILLION = 1_000_000


def plan_of(folder: Path, text: str) -> dict[str, Any]:
    machine = this_machine()
    return make_plan(loads(PORTS + text, machine, folder), machine).data


def changed(function: str, key: str) -> Difference:
    return Difference("function", function, "changed", key)


def until_it_forwards(tester: ConvoyGen) -> None:
    result: TrialResult | None = None

    def forwards() -> bool:
        nonlocal result
        result = tester.trial({"rate_pps": 10_000, "duration_s": 0.02, "tolerance": 1})
        total = result.total
        return total is not None and total.received_pkts == total.offered_pkts > 0

    try:
        wait_for(forwards, 60, "the node to forward")
    except ProcessError as error:
        raise ProcessError(f"{error}; the last trial: {result}") from error


def lose_nothing_while(folder: Path, plan: dict[str, Any], change: Callable[[Node], None]) -> Any:
    """Send packets until a change of the node is done; return its final counts."""
    errors: list[BaseException] = []

    def guarded(node: Node) -> None:
        try:
            change(node)
        except BaseException as error:
            errors.append(error)

    with Node(plan) as node:
        ports = [f"vhost-user:{folder}/convoy/{name}.sock,ring=1024" for name in ("left", "right")]
        with ConvoyGen(ports, core=CORES[-1]) as tester:
            until_it_forwards(tester)
            changing = threading.Thread(target=guarded, args=[node])
            changing.start()
            lost, trials = 0, 0
            while changing.is_alive() or trials == 0:
                total = tester.trial(TRAFFIC).total
                assert total is not None
                # A busy machine may not offer all; what it sends must come.
                assert total.received_pkts > 0
                lost += total.sent_pkts - total.received_pkts
                trials += 1
            changing.join()
        assert not errors, errors
        counts = node.stop()
    # But what found the tester's ring full, when the tester had to wait for its core.
    assert lost == sum(port["drops"]["tx_full"] for port in counts["ports"].values())
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["dropped"] == lost
    return counts


def write_routes(folder: Path, net: int, count: int) -> None:
    with (folder / "routes").open("w") as file:
        file.write("default via 192.0.2.9 dev right\n")
        for i in range(count):
            place = f"{net + (i >> 16)}.{i >> 8 & 255}.{i & 255}.0/24"
            file.write(f"{place} via 192.0.2.9 dev right\n")


@pytest.mark.alone
def test_a_million_routes_are_replaced(tmp_path: Path) -> None:
    write_routes(tmp_path, 20, MILLION)
    plan = plan_of(tmp_path, ROUTER.replace("NN", "09"))

    def change(node: Node) -> None:
        write_routes(tmp_path, 40, MILLION)
        differs = [changed("rtr", "routes_file")]
        assert apply(node.running, plan) == differs

    counts = lose_nothing_while(tmp_path, plan, change)
    assert counts["functions"]["rtr"]["info"]["routes"]["ipv4"] == MILLION + 1


@pytest.mark.alone
def test_routes_then_neighbours_are_replaced(tmp_path: Path) -> None:
    write_routes(tmp_path, 20, 1000)
    plan = plan_of(tmp_path, ROUTER.replace("NN", "09"))

    def change(node: Node) -> None:
        write_routes(tmp_path, 40, 2000)
        differs = [changed("rtr", "routes_file")]
        assert apply(node.running, plan) == differs
        assert apply(node.running, plan) == []
        other = plan_of(tmp_path, ROUTER.replace("NN", "0a"))
        assert apply(node.running, other) == [changed("rtr", "neighbours")]

    counts = lose_nothing_while(tmp_path, plan, change)
    assert counts["functions"]["rtr"]["info"]["routes"]["ipv4"] == 2001


@pytest.mark.alone
def test_a_hundred_thousand_rules_are_replaced(tmp_path: Path) -> None:
    def write(first: int) -> None:
        with (tmp_path / "rules").open("w") as file:
            for i in range(first, first + 100_000):
                place = f"{20 + (i >> 16)}.{i >> 8 & 255}.{i & 255}.0/24"
                file.write(f"@{place}\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x06/0xFF\n")
            file.write("@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x11/0xFF\n")

    write(0)
    plan = plan_of(tmp_path, FIREWALL)

    def change(node: Node) -> None:
        write(50_000)
        assert apply(node.running, plan) == [changed("fw", "rules_file")]

    counts = lose_nothing_while(tmp_path, plan, change)
    # All packets met the last rule, which is the same in both: its counter went on.
    info = counts["functions"]["fw"]["info"]
    hits = [rule["packets"] for rule in info["rules"] if rule["packets"] > 0]
    assert hits == [counts["functions"]["fw"]["packets"]]


@pytest.mark.alone
def test_a_nat_translates_on(tmp_path: Path) -> None:
    """Flows that a NAT and a firewall know go on through changes of both."""
    plan = plan_of(tmp_path, FLOWS.replace("INSIDE", "0.0.0.0/1, 128.0.0.0/2"))

    def change(node: Node) -> None:
        for i in range(8):
            last = f"192.0.2.{i}"
            text = FLOWS.replace("192.0.2.77", last).replace("INSIDE", "0.0.0.0/1, 128.0.0.0/2")
            assert apply(node.running, plan_of(tmp_path, text)) == [changed("fw", "rules")]
            text = text.replace("128.0.0.0/2", "128.0.0.0/2, 192.0.0.0/24")
            assert apply(node.running, plan_of(tmp_path, text)) == [changed("nat", "inside")]
            back = text.replace(", 192.0.0.0/24", "")
            assert apply(node.running, plan_of(tmp_path, back)) == [changed("nat", "inside")]

    lose_nothing_while(tmp_path, plan, change)


# Chains, functions and next hops that come and go around what stays: a firewall that counts, and a
# NAT with a stateful firewall, whose flows go on.
AROUND = """
functions:
  count: {firewall: {default: deny, rules: [{allow: {src: 0.0.0.0/0}}]}}
  fw: {firewall: {stateful: true, rules: [{allow: {proto: udp}}]}}
  nat: {nat: {outside: [right], inside: [0.0.0.0/1, 128.0.0.0/2], pool: [203.0.113.0/28]}}
  FUNCTION
chains:
  all: {from: left, to: right, path: [PATH], both-ways: true}
  CHAIN
"""
CHANGES = [
    ("", "count, fw, nat", ""),
    ("ttl: {ttl-limit: {}}", "ttl, count, fw, nat", ""),
    ("ttl: {ttl-limit: {}}", "count, fw, nat, ttl", ""),
    (
        "ttl: {ttl-limit: {min: 2}}",
        "count, ttl, fw, nat",
        "v: {from: left, to: right, match: {vlan: 5}}",
    ),
    ("mtr: {policer: {cir-pps: 100000000}}", "mtr, count, fw, nat", ""),
    ("", "count, fw, nat", "v: {from: left, to: right, match: {vlan: 5}, path: [count]}"),
    ("", "count, fw, nat", "w: {from: left, to: right, match: {vlan: 6}}"),
]


@pytest.mark.alone
def test_functions_and_chains_come_and_go(tmp_path: Path) -> None:
    """A hundred changes while packets with numbers flow: each comes, and what stays counts on."""

    def text(step: int) -> str:
        function, path, chain = CHANGES[step % len(CHANGES)]
        made = AROUND.replace("FUNCTION", function).replace("PATH", path)
        return PORTS + made.replace("CHAIN", chain)

    def change(node: Node) -> None:
        machine = this_machine()
        with Client(node.running.control, 60) as client:
            before = client.counts()["functions"]["count"]["packets"]
            for step in range(1, 101):
                loaded = loads(text(step), machine, tmp_path)
                plan = make_plan(loaded, machine, client.plan()).data
                assert client.apply(plan)
                assert client.plan()["stages"] == plan["stages"]
                counted = client.counts()["functions"]["count"]["packets"]
                assert counted >= before
                before = counted
            assert client.apply(plan) == []

    machine = this_machine()
    first = make_plan(loads(text(0), machine, tmp_path), machine).data
    counts = lose_nothing_while(tmp_path, first, change)
    assert counts["functions"]["count"]["packets"] == counts["accounting"]["received"]
    assert counts["functions"].keys() == {"count", "fw", "nat"} | {
        name for name in [CHANGES[100 % len(CHANGES)][0].partition(":")[0]] if name
    }


GRAPH = """
ports:
  in: {null: 60}
  out: {null:, convoys: {ip: 192.0.2.1}}
functions:
  FUNCTIONS
next-hops:
  b: {port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2}
  NEXT
chains:
  all: {from: in, to: out, path: [PATH]}
  CHAINS
workers: {idle: sleep}
memory: {hugepages: never}
"""
SPLIT = "  cls: {classifier: {rules: [{match: {src: 10.0.0.1}, output: x}], outputs: {x: side}}}"


def graph(functions: str, path: str, chains: str = "", following: str = "") -> str:
    made = GRAPH.replace("FUNCTIONS", functions).replace("PATH", path)
    return made.replace("CHAINS", chains).replace("NEXT", following)


def test_everything_that_may_differ_and_back(tmp_path: Path) -> None:
    """Functions, branches, chains, next hops, statefulness: applied, and taken back, many times."""
    machine = this_machine()
    mac = 'mac: {l2fwd: {dst: "02:00:00:00:00:01"}}\n'
    fw = "  fw: {firewall: {default: allow}}\n"
    texts = [
        graph(mac, "mac"),
        graph(mac + fw, "fw, mac"),
        graph(mac + fw.replace("default", "stateful: true, default"), "mac, fw"),
        graph(mac + fw + SPLIT, "cls, mac", "side: {to: out, path: [fw]}"),
        graph(mac, "mac", following='c: {port: out, mac: "02:00:00:00:00:0c", ip: 192.0.2.3,'
              " for: [{vlan: 5}]}"),
        graph("x: {ttl-limit: {}}", ""),
    ]  # fmt: skip

    with Node(make_plan(loads(texts[0], machine, tmp_path), machine).data) as node:
        with Client(node.running.control, 60) as client:
            for turn in range(20):
                for text in [*texts[1:], texts[0]]:
                    plan = make_plan(loads(text, machine, tmp_path), machine, client.plan()).data
                    dry = client.apply(plan, dry_run=True, forget_flows=True)
                    assert dry == client.apply(plan, forget_flows=True) != []
                    counts = client.counts()
                    assert counts["functions"].keys() == {one["name"] for one in plan["functions"]}
                    assert counts["next_hops"].keys() == {one["name"] for one in plan["next_hops"]}
                if turn == 4:
                    before = own_bytes(node.process.pid)
            assert own_bytes(node.process.pid) < before + (4 << 20), "memory grows"
        counts = node.stop()
    assert counts["accounting"]["conserved"]
    assert counts["accounting"]["received"] > 0


def test_flows_are_forgotten_only_if_that_is_wanted(tmp_path: Path) -> None:
    machine = this_machine()
    fw = "fw: {firewall: {stateful: true, default: allow}}\n"
    nat = "  nat: {nat: {outside: [out], inside: [10.0.0.0/8], pool: [203.0.113.1]}}"
    both = graph(fw + nat, "fw, nat")
    with Node(make_plan(loads(both, machine, tmp_path), machine).data) as node:
        with Client(node.running.control, 60) as client:

            def plan(text: str) -> dict[str, Any]:
                return make_plan(loads(text, machine, tmp_path), machine, client.plan()).data

            alone = plan(graph(fw, "fw"))
            with pytest.raises(InputError, match="fw: would share its flows"):
                client.apply(alone)
            assert client.apply(plan(both)) == []
            assert client.apply(alone, forget_flows=True)
            assert client.counts()["flows"].keys() == {"fw"}
        assert node.stop()["accounting"]["conserved"]


def test_next_hops_that_were_put_are_in_the_plan(tmp_path: Path) -> None:
    machine = this_machine()
    text = graph("x: {ttl-limit: {}}", "")
    first = make_plan(loads(text, machine, tmp_path), machine).data
    next_hop = {"name": "n", "port": "out", "mac": "02:00:00:00:00:0d", "ip": "192.0.2.4"}
    with Node(first) as node:
        with Client(node.running.control, 60) as client:
            client.put_next_hop({**next_hop, "match": [{"vlan": 9}]})
            assert [one["name"] for one in client.plan()["next_hops"]] == ["b", "n"]
            assert client.apply(first) == [Difference("next hop", "n", "removed")]
            assert client.next_hops().keys() == {"b"}
            client.remove_next_hop("b")
            assert client.apply(first) == [Difference("next hop", "b", "added")]
        assert node.stop()["accounting"]["conserved"]


HOP = """
  NAME: {port: out, mac: "02:00:00:00:00:0b", ip: 192.0.2.2, nfi: NFI, encapsulate: true}
"""
BESIDE = f"""
ports: {{in: {{null: 60}}, idle: {{null: }}, out: {{null: , convoys: {{ip: 192.0.2.1}}}}}}
functions: {{}}
chains:
  all: {{from: in, to: out, path: []}}
  other: {{from: idle, to: idle, path: []}}
workers: {{cores: [{CORES[0]}, {CORES[-1]}], idle: sleep}}
memory: {{hugepages: never}}
next-hops:
"""


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_a_next_hop_that_is_added_counts_from_its_first_packet(tmp_path: Path) -> None:
    """A worker may send to it while another one, which sleeps, does not know of it yet."""
    machine = this_machine()

    def plan(*hops: str) -> dict[str, Any]:
        text = BESIDE + "".join(hops)
        return make_plan(loads(text, machine, tmp_path), machine).data

    one = HOP.replace("NAME", "b").replace("NFI", "1")
    other = HOP.replace("NAME", "c").replace("NFI", "2, weight: 100")
    with Node(plan(one)) as node:
        with Client(node.running.control, 60) as client:
            client.apply(plan(one, other))
        counts = node.stop()
    packets = {name: hop["packets"] for name, hop in counts["next_hops"].items()}
    assert set(packets) == {"b", "c"}
    assert sum(packets.values()) == counts["ports"]["out"]["tx_packets"]


def test_a_flow_that_is_denied_ends(tmp_path: Path) -> None:
    """It passes, is denied by another configuration, and passes again by the next."""
    inside = FLOWS.replace("INSIDE", "0.0.0.0/1, 128.0.0.0/2")
    plan = plan_of(tmp_path, inside)
    denies = plan_of(tmp_path, inside.replace("allow: {proto: udp}", "deny: {proto: udp}"))
    traffic = {"rate_pps": 10_000, "duration_s": 0.2, "drain_s": 1, "tolerance": 1}
    with Node(plan) as node:
        ports = [
            f"vhost-user:{tmp_path}/convoy/{name}.sock,ring=1024" for name in ("left", "right")
        ]
        with ConvoyGen(ports, core=CORES[-1]) as tester:
            until_it_forwards(tester)
            flows = node.counts()["flows"]["fw+nat"]["flows_ipv4"]
            assert flows > 0
            for to, passes in ((denies, False), (plan, True)):
                assert apply(node.running, to) == [changed("fw", "rules")]
                total = tester.trial(traffic).total
                assert total is not None
                assert total.sent_pkts > 0
                assert total.received_pkts == (total.sent_pkts if passes else 0)
                counts = node.counts()
                if not passes:
                    assert counts["flows"]["fw+nat"]["invalidated"] == flows
                    assert counts["functions"]["fw"]["drops"]["denied"] == total.sent_pkts
                    assert counts["functions"]["nat"]["info"]["mappings"] == 0
        counts = node.stop()
    assert counts["accounting"]["conserved"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("203.0.113.0/28", "203.0.113.0/29", "nat: pool: stays as it is"),
        ("pool:", "ports: 2048-65535, pool:", "nat: ports: stays as it is"),
        ("pool:", "block-size: 256, pool:", "nat: block_size: stays as it is"),
        ("pool:", "blocks-per-subscriber: 2, pool:", "nat: blocks_per_subscriber: stays as it"),
        ("pool:", "mappings: 100, pool:", "nat: mappings: stays as it is"),
        ("stateful: true", "stateful: true, tcp-window: all", "fw: other windows of TCP would be"),
    ],
)
def test_what_flows_stand_on_stays(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = FLOWS.replace("INSIDE", "10.0.0.0/8")
    assert old in text
    plan = plan_of(tmp_path, text)
    with Node(plan) as node:
        with pytest.raises(ConvoyError, match=words):
            apply(node.running, plan_of(tmp_path, text.replace(old, new)))
        assert apply(node.running, plan) == []


DESCRIPTOR = """
ports:
  in: {null: 60}
  out: {null:}
functions:
  fw: {firewall: {default: deny, rules: [{allow: {src: 10.0.0.0/8}}]}}
  mac: {l2fwd: {dst: "02:00:00:00:00:01"}}
chains: {all: {from: in, to: out, path: [mac, fw]}}
workers: {idle: sleep}
"""


@pytest.fixture
def convoy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    """The command, with a descriptor's text, at a node that runs DESCRIPTOR."""
    machine = this_machine()
    with Node(make_plan(loads(DESCRIPTOR, machine, tmp_path), machine).data) as node:
        monkeypatch.setattr("convoy.cli.running.running_nodes", lambda: [node.running])

        def run(text: str, *words: str) -> Result:
            (tmp_path / "chain.yaml").write_text(text)
            (tmp_path / "bad").write_text("# a rule file\nnonsense\n")
            return CliRunner().invoke(app, ["apply", str(tmp_path / "chain.yaml"), *words])

        yield run
        counts = node.stop()
    assert counts["accounting"]["conserved"]


def test_what_differs_is_shown_and_changed(convoy: Callable[..., Result]) -> None:
    text = DESCRIPTOR.replace("default: deny", "default: allow").replace(":01", ":02")
    dry = convoy(text, "--dry-run").stdout
    assert "~ function fw: default: 'allow'" in dry
    assert "nothing has changed" in dry
    done = json.loads(convoy(text, "--json").stdout)
    change = {"what": "function", "change": "changed"}
    assert sorted(done["differences"], key=lambda one: str(one["name"])) == [
        {**change, "name": "fw", "key": "default"},
        {**change, "name": "mac", "key": "dst"},
    ]
    assert "runs that already" in convoy(text).stdout


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("src: 10.0.0.0/8", "src: 10.0.0.0/33", "chain.yaml:6: functions.fw"),
        ("[{allow: {src: 10.0.0.0/8}}]}}", "[], rules-file: bad}}", "/bad:2: "),
        ("out: {null:}", "out: {null: 61}", "chain.yaml:2: ports: not as the node runs"),
        ("out: {null:}", "out: {null:}\n  more: {null:}", "ports change only by a new process"),
        ("workers: {", "flows: {max: 128}\nworkers: {", "limits of flows change only by a new"),
        ("{idle: sleep}", "{idle: sleep}\ntelemetry: {socket-mode: '0660'}", "rights of sockets"),
        ("path: [mac, fw]", "path: [mac, fw], deployment: pipeline", "with pipelines"),
        ("[{allow: {src: 10.0.0.0/8}}]}}", "[], rules-file: missing}}", "no such file"),
    ],
)
def test_what_is_wrong_changes_nothing(
    convoy: Callable[..., Result], old: str, new: str, words: str
) -> None:
    assert old in DESCRIPTOR
    refused = convoy(DESCRIPTOR.replace(old, new))
    assert isinstance(refused.exception, InputError), refused.output
    assert words in str(refused.exception)
    assert "runs that already" in convoy(DESCRIPTOR).stdout


TWO_WAYS = """
ports:
  in: {{null: }}
  out: {{null: }}
functions: {{x: {{ttl-limit: {{}}}}}}
chains: {{all: {{from: in, to: out, path: [x], both-ways: true}}}}
workers: {{cores: {cores}, idle: {idle}}}
memory: {{{memory}}}
"""


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_other_workers_and_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = this_machine()
    core, other = CORES[0], CORES[-1]
    first = TWO_WAYS.format(cores=[core], idle="sleep", memory="hugepages: never, mb: 128")
    file = tmp_path / "chain.yaml"
    with Node(make_plan(loads(first, machine, tmp_path), machine).data) as node:
        monkeypatch.setattr("convoy.cli.running.running_nodes", lambda: [node.running])

        def apply(text: str, *words: str) -> Result:
            file.write_text(text)
            return CliRunner().invoke(app, ["apply", str(file), *words])

        for old, new, words in (
            (f"cores: [{core}]", f"cores: [{other}]", f"7: workers.cores: [{other}]: the node"),
            (f"cores: [{core}]", f"cores: [{other}, {core}]", f"the node runs with [{core}]; "),
            ("idle: sleep", "idle: poll", "7: workers.idle: 'poll': the node runs with sleep"),
            ("mb: 128", "mb: 256", "8: memory.mb: 256: the node runs with 128 MiB"),
            ("never", "always", "8: memory.hugepages: 'always': the node runs with none"),
        ):
            for options in ((), ("--dry-run",)):
                refused = apply(first.replace(old, new), *options)
                assert isinstance(refused.exception, InputError), refused.output
                assert f"{file}:" in str(refused.exception)
                assert words in str(refused.exception)
                assert "`convoy apply --handover`, or a restart" in str(refused.exception)
        # What is left open is as it runs; cores that were not needed may be there.
        for text in (first, first.partition("workers:")[0]):
            assert "runs that already" in apply(text).output
        more = apply(first.replace(f"[{core}]", f"[{core}, {other}]"))
        assert more.exit_code == 0, more.output
        assert "the node keeps its 1 of 2 workers.cores" in more.output
        assert node.stop()["accounting"]["conserved"]


def test_history_rollback_and_confirmation(tmp_path: Path) -> None:
    """What was in files comes back, too; and the node goes back by itself."""
    machine = this_machine()
    (tmp_path / "rules").write_text("@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x11/0xFF\n")
    text = graph("fw: {firewall: {rules-file: rules}}", "fw")
    first = make_plan(loads(text, machine, tmp_path), machine).data
    with Node(first) as node:
        with Client(node.running.control, 60) as client:

            def rules() -> int:
                return len(client.counts()["functions"]["fw"]["info"]["rules"])

            def number() -> int:
                return client.history()[-1].number

            assert rules() == 1
            with (tmp_path / "rules").open("a") as file:
                file.write("@11.0.0.0/8\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x11/0xFF\n")
            with pytest.raises(InputError, match="nothing ran before"):
                client.rollback()
            assert apply(node.running, first) == [changed("fw", "rules_file")]
            assert (rules(), number()) == (2, 2)
            (tmp_path / "rules").unlink()
            plan = make_plan(
                loads(graph("x: {ttl-limit: {}}", "x"), machine, tmp_path), machine, client.plan()
            ).data
            client.apply(plan, confirm_s=3600)
            assert client.history()[-1].confirm_s > 3500
            with pytest.raises(InputError, match="change 3 waits to be confirmed"):
                client.apply(first)
            client.confirm()
            with pytest.raises(InputError, match="no change waits"):
                client.confirm()
            with pytest.raises(InputError, match="rules: has changed since"):
                client.rollback(1)
            assert client.rollback(2)
            assert (rules(), number(), client.history()[-1].back_to) == (2, 4, 2)
            with pytest.raises(InputError, match="99: no plan of that number"):
                client.rollback(99)
            assert client.apply(plan, confirm_s=1)
            assert client.counts()["functions"].keys() == {"x"}
            wait_for(lambda: number() == 6, 30, "the node to go back")
            assert (rules(), client.history()[-1].back_to) == (2, 4)
            for turn in range(20):
                assert client.rollback(), turn
            assert len(client.history()) == 16
        assert node.stop()["accounting"]["conserved"]


NEXT_HOPS = """
ports:
  in: {null: }
  wire: {null: , convoys: {ip: 192.0.2.1}}
functions: {x: {ttl-limit: {min: 2}}}
next-hops: {b: {port: wire, mac: "02:00:00:00:00:0b", ip: 192.0.2.2}}
chains: {all: {from: in, to: wire, path: [x]}}
workers: {idle: sleep}
memory: {mb: 128}
"""


def test_going_back_goes_back_to_the_next_hops_that_there_were(tmp_path: Path) -> None:
    machine = this_machine()
    first = make_plan(loads(NEXT_HOPS, machine, tmp_path), machine).data
    with Node(first) as node, Client(node.running.control, 60) as client:

        def put(last: int) -> None:
            client.put_next_hop({**first["next_hops"][0], "ip": f"192.0.2.{last}"})

        def runs() -> tuple[str, int]:
            plan = client.plan()
            return plan["next_hops"][0]["ip"], plan["functions"][0]["config"]["min"]

        def other(least: int) -> dict[str, Any]:
            plan = client.plan()
            plan["functions"][0]["config"]["min"] = least
            return plan

        put(3)
        assert client.apply(other(5), confirm_s=1)
        wait_for(lambda: runs() == ("192.0.2.3", 2), 30, "the node to go back")
        assert client.apply(other(6))
        put(4)
        assert client.rollback()
        assert runs() == ("192.0.2.3", 2)
        put(5)
        assert client.rollback(client.history()[-2].number)
        assert runs() == ("192.0.2.4", 6)
        assert client.rollback()
        assert runs() == ("192.0.2.5", 2)
        # A plan that was gone back to stays as it was.
        number = client.history()[-1].number
        assert client.apply(other(7))
        assert client.rollback(number)
        put(6)
        assert client.rollback(number)
        assert runs() == ("192.0.2.5", 2)


def test_a_plan_that_waits_is_not_what_is_gone_back_to(tmp_path: Path) -> None:
    machine = this_machine()
    first = make_plan(loads(NEXT_HOPS, machine, tmp_path), machine).data
    state = tmp_path / "state"
    state.mkdir()
    with (
        Node(first, options=["--state", str(state)]) as node,
        Client(node.running.control, 60) as client,
    ):
        second = client.plan()
        second["next_hops"][0]["ip"] = "192.0.2.3"
        client.apply(second, confirm_s=3600)
        with pytest.raises(InputError, match="2: runs, and waits to be confirmed"):
            client.rollback(2)
        assert client.history()[-1].confirm_s > 3500
        # What it would go back to runs already: that ends the wait, and is kept.
        client.put_next_hop(first["next_hops"][0])
        written = client.state()["written"]
        assert client.rollback() == []
        assert client.history()[-1].confirm_s == 0
        assert client.state()["written"] == written + 1


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = this_machine()
    file = tmp_path / "chain.yaml"
    file.write_text(graph("fw: {firewall: {default: allow}}\n  x: {ttl-limit: {}}", "fw, x"))
    first = make_plan(loads(graph("x: {ttl-limit: {}}", "x"), machine, tmp_path), machine).data
    with Node(first) as node:
        monkeypatch.setattr("convoy.cli.running.running_nodes", lambda: [node.running])

        def convoy(*words: str) -> Result:
            return CliRunner().invoke(app, list(words))

        def document(*words: str) -> Any:
            return json.loads(convoy(*words, "--json").stdout)

        done = convoy("apply", str(file), "--confirm", "5m").stdout
        assert "+ function fw" in done
        assert "~ chain all: path: fw, x" in done
        assert "it goes back in 300 s: convoy confirm" in done
        assert "goes back in" in convoy("history").stdout
        assert "keeps what it runs" in convoy("confirm").stdout
        assert document("rollback")["differences"][0]["change"] == "removed"
        assert [one["back_to"] for one in document("history")["history"]] == [0, 0, 1]
        assert document("show")["functions"] == first["functions"]
        shown = tmp_path / "plan.json"
        shown.write_text(convoy("show").stdout)
        assert "runs that already" in convoy("apply", str(shown)).stdout
        written = tmp_path / "node.yaml"
        assert "node.yaml: written" in convoy("show", "--descriptor", str(written)).stdout
        assert "runs that already" in convoy("apply", str(written)).stdout
        assert convoy("show", "--descriptor", "-").stdout == written.read_text()
        assert document("show", "--descriptor", "-")["descriptor"] == written.read_text()
        for words, output in (
            (("confirm",), "no change waits"),
            (("rollback", "77"), "77: no plan"),
            (("apply", str(file), "--confirm", "x"), "--confirm: 'x': write a time"),
            (("apply", str(file), "--pid", "1"), "PID: 1: no convoyd of yours"),
            (("show", "--descriptor", str(tmp_path)), f"--descriptor: '{tmp_path}': is a folder"),
            (("show", "--descriptor", "."), "--descriptor: '.': is a folder"),
        ):
            refused = convoy(*words)
            assert isinstance(refused.exception, InputError), refused.output
            assert output in str(refused.exception)
        assert node.stop()["accounting"]["conserved"]
        gone = convoy("history")
        assert isinstance(gone.exception, ConvoyError)
        assert "No such file" in str(gone.exception)
