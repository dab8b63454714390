# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Who runs what: stages, workers, cores."""

import json
from pathlib import Path

import pytest

from convoy.chain.load import loads
from convoy.chain.machine import Machine, ranges
from convoy.chain.place import choose_cores
from convoy.chain.plan import make_plan
from convoy.errors import InputError

PATHS = {
    "wire": "ports: {a: {null: }, b: {null: }}\nchains: {w: {from: a, to: b}}",
    "queues": "ports: {a: {af_packet: x, queues: 3}, b: {null: }}\nchains: {w: {from: a, to: b}}",
    "pipeline": """
ports: {a: {null: }, b: {null: }}
functions: {f: {l2fwd: {mode: swap}}, g: {l2fwd: {}}, h: {firewall: {default: allow}}}
chains: {w: {from: a, to: b, path: [f, g, h], both-ways: true, deployment: pipeline}}
""",
    "stateful": """
ports: {a: {af_packet: x, queues: 2}, b: {null: }, c: {null: }}
functions:
  n: {nat: {outside: [b], inside: [10.0.0.0/8], pool: [192.0.2.1]}}
  f: {l2fwd: {}}
chains:
  w: {from: a, to: b, path: [f, n], both-ways: true}
  v: {from: c, to: b, path: [f]}
""",
    "rewriters": """
ports: {a: {af_packet: x, queues: 2}, b: {null: }, c: {null: }}
functions:
  n: {nat: {outside: [b], inside: [10.0.0.0/8], pool: [192.0.2.1]}}
  v: {balancer: {mode: nat, services: [{address: 203.0.113.1}], backends: [{address: 10.0.0.1}]}}
chains:
  w: {from: a, to: b, path: [n, v], both-ways: true}
  x: {from: c, to: b, path: [n]}
""",
    "translated": """
ports: {a: {af_packet: x, queues: 2}, b: {null: }}
functions:
  t:
    nat64:
      {prefix: "64:ff9b::/96", clients: 100.64.0.0/16, source: 192.0.2.2, source-ipv6: "fc00::1"}
  n: {nat: {outside: [b], inside: [100.64.0.0/16], pool: [192.0.2.1]}}
chains:
  w: {from: a, to: b, path: [t, n], both-ways: true}
""",
    "kept": """
ports: {a: {null: }, b: {null: }, c: {af_packet: x, queues: 2}}
functions:
  n: {nat: {outside: [b], inside: [10.0.0.0/8], pool: [192.0.2.1]}}
  f: {l2fwd: {}}
chains:
  w: {from: a, to: b, path: [n, f], both-ways: true, deployment: pipeline}
  x: {from: c, to: b, path: [n]}
""",
    "one queue": """
ports: {a: {null: }, b: {null: }}
functions: {n: {nat: {outside: [b], inside: [10.0.0.0/8], pool: [192.0.2.1]}}}
chains: {w: {from: a, to: b, path: [n], both-ways: true}}
""",
    "graph": """
ports: {a: {af_packet: x, queues: 2}, b: {null: }}
functions:
  n: {nat: {outside: [b], inside: [10.0.0.0/8], pool: [192.0.2.1]}}
  s: {classifier: {outputs: {nat: translated}, rules: [{match: {src: 10.0.0.0/8}, output: nat}]}}
chains:
  go: {from: a, to: b, path: [s]}
  back: {from: b, to: a, path: [n]}
  translated: {to: b, path: [n]}
""",
    "dealt out": """
ports: {a: {af_packet: x, queues: 2}, b: {null: }}
functions: {f: {l2fwd: {}}}
chains:
  w: {from: a, to: b, path: [f], spread: round-robin}
  v: {from: b, to: a, path: [f]}
""",
    "tenants": """
ports: {a: {null: }, b: {null: }}
functions: {f: {l2fwd: {mode: swap}}, g: {l2fwd: {}}}
chains:
  one: {match: {vlan: 1}, from: a, to: b, path: [f, g], deployment: pipeline}
  two: {match: {vlan: 2}, from: a, to: b, path: [g]}
""",
}


def plan(text: str, cores: int, more: str = ""):
    machine = Machine(nodes=dict.fromkeys(range(cores), 0), runtime_dir=Path("/run/convoy"))
    return make_plan(loads(f"{text}\n{more}", machine, Path("/nowhere")), machine)


def short(stage) -> str:
    def end(value):
        for other in ("handoff", "outputs"):
            if other in value:
                return other
        return value.get("ring") or f"{value['port']}{value.get('queue', '')}"

    path = "+".join(stage["path"])
    return f"{stage['worker']} {end(stage['source'])}>{path}>{end(stage['sink'])}"


# description, descriptor, cores of the machine, stages, cores of the workers
ROWS = [
    ("a wire", "wire", 2, ["0 a0>>b"], [1]),
    ("one core has to do", "wire", 1, ["0 a0>>b"], [0]),
    (
        "answers meet their flow",
        "stateful",
        4,
        [
            "0 a0>f+n>b",
            "1 a1>f+n>b",
            "2 b0>n+f>a",
            "0 c0>f>b",
            *(f"{worker} handoff>f+n>b" for worker in range(3)),
            *(f"{worker} handoff>n+f>a" for worker in range(3)),
        ],
        [1, 2, 3],
    ),
    (
        "one worker hands nothing over",
        "stateful",
        1,
        ["0 a0>f+n>b", "0 a1>f+n>b", "0 b0>n+f>a", "0 c0>f>b"],
        [0],
    ),
    ("without queues to share one worker is enough", "one queue", 4, ["0 a0>n>b", "0 b0>n>a"], [1]),
    (
        "two that rewrite are on one worker, with all who pass one of them",
        "rewriters",
        8,
        ["0 a0>n+v>b", "0 a1>n+v>b", "0 b0>v+n>a", "0 c0>n>b"],
        [1],
    ),
    (
        "flows whose answers are of another IP version are on one worker",
        "translated",
        8,
        ["0 a0>t+n>b", "0 a1>t+n>b", "0 b0>n+t>a"],
        [1],
    ),
    (
        "a stateful function of a pipeline is on one worker",
        "kept",
        8,
        ["0 a0>n>w.1", "1 w.1>f>b", "1 b0>f>w.back.1", "0 w.back.1>n>a", "0 c0>n>b", "0 c1>n>b"],
        [1, 2],
    ),
    (
        "what outputs lead to is shared, too",
        "graph",
        4,
        [
            "0 a0>s>b",
            "1 a1>s>b",
            "2 b0>n>a",
            *(f"{worker} handoff>s>b" for worker in range(3)),
            *(f"{worker} handoff>n>a" for worker in range(3)),
            *(f"{worker} outputs>n>b" for worker in range(3)),
        ],
        [1, 2, 3],
    ),
    ("a queue each", "queues", 4, ["0 a0>>b", "1 a1>>b", "2 a2>>b"], [1, 2, 3]),
    ("more queues than cores", "queues", 3, ["0 a0>>b", "1 a1>>b", "0 a2>>b"], [1, 2]),
    (
        "a function each, both ways on the same workers",
        "pipeline",
        5,
        [
            "0 a0>f>w.1",
            "1 w.1>g>w.2",
            "2 w.2>h>b",
            "2 b0>h>w.back.1",
            "1 w.back.1>g>w.back.2",
            "0 w.back.2>f>a",
        ],
        [1, 2, 3],
    ),
    (
        "one chain is dealt out to all, the other stays where it comes in",
        "dealt out",
        4,
        ["0 a0>f>b", "1 a1>f>b", "2 b0>f>a", *(f"{worker} handoff>f>b" for worker in range(3))],
        [1, 2, 3],
    ),
    (
        "chains that begin at one queue share its worker",
        "tenants",
        4,
        ["0 a0>f>one.1", "1 one.1>g>b", "0 a0>g>b"],
        [1, 2],
    ),
]


@pytest.mark.parametrize(
    ("text", "cores", "stages", "workers"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_stages(text, cores, stages, workers):
    data = plan(PATHS[text], cores).data
    assert [short(stage) for stage in data["stages"]] == stages
    assert [worker["core"] for worker in data["workers"]] == workers


@pytest.mark.parametrize("text", PATHS)
@pytest.mark.parametrize("cores", [1, 2, 3, 4, 8])
def test_what_convoyd_needs(text, cores):
    data = plan(PATHS[text], cores).data
    sources: dict[str, set[int]] = {}
    rings: dict[str, list[str]] = {}
    for stage in data["stages"]:
        if "ring" in stage["source"] or "port" in stage["source"]:
            sources.setdefault(json.dumps(stage["source"]), set()).add(stage["worker"])
        for end in ("source", "sink"):
            if "ring" in stage[end]:
                rings.setdefault(stage[end]["ring"], []).append(end)
    assert all(len(workers) == 1 for workers in sources.values())
    assert all(sorted(ends) == ["sink", "source"] for ends in rings.values())
    used = {stage["worker"] for stage in data["stages"]}
    assert used == set(range(len(data["workers"])))


def test_sharing_is_said():
    assert "3 queues share 2 workers" in plan(PATHS["queues"], 3).notes


DEALT = "ports: {a: {null: }, b: {null: }}\nchains: {w: {from: a, to: b, spread: round-robin}}"


def test_bursts_are_dealt_out_to_every_worker_that_was_given():
    made = plan(DEALT, 4, "workers: {cores: [3, 1, 2]}")
    assert [short(stage) for stage in made.data["stages"]] == [
        "0 a0>>b", *(f"{worker} handoff>>b" for worker in range(3))
    ]  # fmt: skip
    assert [worker["core"] for worker in made.data["workers"]] == [3, 1, 2]
    assert [chain["spread"] for chain in made.data["chains"]] == ["round-robin"]
    # By default nothing of it is in a plan.
    assert not any("spread" in chain for chain in plan(PATHS["wire"], 4).data["chains"])


def test_what_is_dealt_out_needs_more_than_one_worker():
    made = plan(DEALT, 4)
    assert [short(stage) for stage in made.data["stages"]] == ["0 a0>>b"]
    notes = [note for note in made.notes if "spread" in note]
    assert notes == [
        "spread: round-robin has nothing to do: there is one worker; give workers: cores"
    ]


SCALED = "workers: {scale: auto}"


def test_queues_move_that_pass_nothing_that_remembers():
    made = plan(PATHS["queues"], 3, SCALED)
    assert [stage["moves"] for stage in made.data["stages"]] == [True] * 3
    assert not any("scale" in note for note in made.notes)
    alone = plan(PATHS["queues"], 1, SCALED)
    assert "scale: auto has nothing to do: there is one worker" in alone.notes


def test_outputs_of_queues_that_move_lead_on_from_every_worker():
    text = """
ports: {a: {af_packet: x, queues: 2}, b: {null: }, c: {null: }}
functions:
  s: {classifier: {outputs: {ten: more}, rules: [{match: {src: 10.0.0.0/8}, output: ten}]}}
  f: {l2fwd: {}}
chains:
  go: {from: a, to: b, path: [s]}
  back: {from: c, to: a, path: [f]}
  more: {to: b, path: [f]}
"""
    stages = [short(one) for one in plan(text, 4, SCALED).data["stages"] if "moves" not in one]
    assert stages == ["0 outputs>f>b", "1 outputs>f>b", "2 outputs>f>b"]


def test_what_stays_is_said():
    text = """
ports: {a: {null: }, b: {null: }, c: {null: }}
functions:
  p: {policer: {cir-bps: 8000}}
  s: {classifier: {outputs: {ten: more}, rules: [{match: {src: 10.0.0.0/8}, output: ten}]}}
  f: {l2fwd: {}}
  g: {l2fwd: {}}
  h: {l2fwd: {}}
chains:
  x: {from: a, to: b, path: [s], match: {vlan: 1}}
  y: {from: a, to: b, path: [f], match: {vlan: 2}}
  z: {from: b, to: c, path: [f]}
  w: {from: c, to: b, path: [g, h], deployment: pipeline}
  more: {to: b, path: [p]}
"""
    made = plan(text, 8, SCALED)
    assert [one["chain"] for one in made.data["stages"] if "moves" in one] == ["z"]
    notes = [note for note in made.notes if "scale" in note]
    assert notes == [
        "scale: auto: packets are remembered, dealt out or in a pipeline, queues stay: a "
        "(worker 0), "
        "c (worker 2)"
    ]


def test_where_nothing_can_move_it_is_refused():
    with pytest.raises(InputError, match=r"workers.scale: 'auto': no queue can move: .*remove it"):
        plan(PATHS["pipeline"], 4, SCALED)


def test_given_cores_are_taken_in_their_order():
    data = plan(PATHS["queues"], 8, "workers: {cores: [7, 2, 5], idle: yield}").data
    assert data["workers"] == [{"core": core, "idle": "yield"} for core in (7, 2, 5)]


NUMA = Machine(
    nodes={0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 7: 1},
    runtime_dir=Path("/run"),
    siblings={core: (core // 2 * 2, core // 2 * 2 + 1) for core in range(8)},
)


@pytest.mark.parametrize(
    ("wanted", "given", "cores", "notes"),
    [
        (1, None, [1], 0),
        (2, None, [1, 2], 0),
        (4, None, [4, 6, 5, 7], 0),
        (5, None, [1, 2, 4, 6, 3], 1),
        (2, [3, 4], [3, 4], 1),
        (1, [3, 4], [3], 0),
    ],
)
def test_choice_of_cores(wanted, given, cores, notes):
    chosen, output = choose_cores(wanted, given, NUMA)
    assert chosen == cores
    assert len(output) == notes


@pytest.mark.parametrize(
    ("free_mb", "memory", "eal"),
    [
        (0, "", {"hugepages": False, "memory_mb": 1024}),
        (511, "", {"hugepages": False, "memory_mb": 1024}),
        (512, "", {"hugepages": True, "memory_mb": 512}),
        (512, "memory: {mb: 600}", {"hugepages": False, "memory_mb": 600}),
        (512, "memory: {hugepages: never}", {"hugepages": False, "memory_mb": 1024}),
        (0, "memory: {hugepages: always}", {"hugepages": True, "memory_mb": 512}),
    ],
)
def test_memory(free_mb, memory, eal):
    machine = Machine({0: 0}, Path("/run"), hugepages_free_mb=free_mb)
    text = f"{PATHS['wire']}\n{memory}"
    assert make_plan(loads(text, machine, Path("/nowhere")), machine).data["eal"] == eal


def test_paths_and_names_reach_the_plan(tmp_path):
    (tmp_path / "r.txt").write_text("default dev a\n")
    (tmp_path / "in.pcap").write_text("")
    text = """
ports:
  a: {vhost-user: a.sock, mac: "02:AA:00:00:00:01"}
  b: {vhost-user: ./b.sock, mode: client}
  c: {pcap: {read: in.pcap}}
  d: {memif: /run/d.sock, id: 3}
functions:
  r: {router: {routes-file: r.txt}}
  l: {bridge: {}}
chains:
  w: {from: a, to: b, path: [l]}
"""
    machine = Machine({0: 0}, Path("/run/convoy"))
    plan = make_plan(loads(text, machine, tmp_path), machine)
    assert plan.data["ports"] == [
        {
            "name": "a",
            "kind": "vhost-user",
            "path": "/run/convoy/a.sock",
            "mode": "server",
            "queues": 1,
            "mac": "02:aa:00:00:00:01",
        },
        {
            "name": "b",
            "kind": "vhost-user",
            "path": f"{tmp_path}/b.sock",
            "mode": "client",
            "queues": 1,
        },
        {"name": "c", "kind": "pcap", "read": f"{tmp_path}/in.pcap"},
        {"name": "d", "kind": "memif", "path": "/run/d.sock", "role": "server", "id": 3},
    ]
    configs = {function["name"]: function["config"] for function in plan.data["functions"]}
    assert configs["r"]["routes_file"] == f"{tmp_path}/r.txt"
    assert configs["l"] == {"sides": ["a", "b"], "entries": 4096, "age_s": 300}
    assert "in no chain, only checked: r" in plan.notes


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([1, 0, 2], "0-2"), ([0, 2, 3, 9], "0,2-3,9")]
)
def test_ranges(numbers, text):
    assert ranges(numbers) == text
