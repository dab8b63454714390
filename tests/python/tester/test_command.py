# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""Bad input: one clear message, exit code 2, nothing sent."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from convoy.errors import InputError
from convoy.host.process import ProcessError
from convoy.host.programs import need
from convoy.results.trial_result import TrialResult, read_result
from convoy.tester.convoy_gen import ConvoyGen
from convoy.tester.model import TrialSpec, read_spec


def run(*options: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [need("convoy-gen"), *options], input=text, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("options", "names", "fix"),
    [
        ([], "no --port", "--help"),
        (["--port", "pipe:/x"], "--port pipe:/x", "vhost-user:"),
        (["--port", "vhost-user:"], "needs a socket", "vhost-user:/PATH"),
        (["--port", "vhost-user:/" + "x" * 107], "108 bytes", "shorter"),
        (["--port", "vhost-user:/x,ring=1000"], "ring=1000", "power of two"),
        (["--port", "vhost-user:/x,queues=0"], "queues=0", "from 1 to 16"),
        (["--port", "vhost-user:/x,speed=9"], "speed=9", "known are"),
        (["--port", "vhost-user:/x", "--port", "vhost-user:/x"], "given twice", "vhost-user:/x"),
        (["--port", "dev:net_nonsense0"], "net_nonsense0", "could not be attached"),
        (["--port", "vhost-user:/dev/null,server"], "/dev/null", "no socket"),
        (["--port", "memif:/no/such/folder/s,server"], "/no/such/folder", "mkdir -p"),
        (["--port", "memif:/tmp/s,size=9"], "size=9", "known are: server id=N"),
        (["--port", "memif:/tmp/s,id=-1"], "id=-1", "known are"),
        (["--port", "virtio-user:/" + "x" * 107], "108 bytes", "at most 107"),
        (["--port", "af_packet:nosuch0"], "nosuch0", "ip link"),
        (["--self-test=tcp"], "--self-test=tcp", "vhost-user virtio-user memif af_packet ring"),
        (["--self-test", "--port", "dev:0000:00:00.1"], "0000:00:00.1", "--self-test=KIND"),
        (["--self-test", "--port", "dev:net_ring0", "--port", "memif:/m"], "memif:/m", "another"),
        (["--self-test", "--core", "4096"], "--core 4096", "not a core"),
        (
            ["--self-test", "--core", "0", "--device-core", "0"],
            "--device-core 0",
            "the tester's own",
        ),
        (["--port", "vhost-user:/x", "--attach-timeout", "soon"], "soon", "seconds"),
        (["--spec", "x.json"], "--spec", "--port"),
        (["--port", "dev:net_ring0", "--spec", "/no/such.json"], "/no/such.json", "No such file"),
        (["--colour"], "--colour", "--help"),
        (["stray"], "stray", "--help"),
    ],
)
def test_bad_options(options: list[str], names: str, fix: str):
    done = run(*options)
    assert done.returncode == 2
    assert names in done.stderr and fix in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("{", "not JSON"),
        ('{"rate_pps": 1, "rate_pps": 2}', "not JSON"),
        ('{"rat_pps": 1}', "rat_pps: unknown"),
        ('{"size": 64, "flows": {"ip": 6}}', "80"),
        ('{"size": 9000}', "9000"),
        ('{"size": {"file": "/no/such.csv"}}', "/no/such.csv"),
        ('{"paths": ["0>1"]}', "ports 0 to 0"),
        ('{"flows": {"count": 9000000, "src_ip": "10.0.0.0/8"}}', "mem"),
    ],
)
def test_a_bad_line_is_answered_and_the_next_one_works(line: str, names: str):
    good = '{"rate_pps": 1000, "duration_s": 0.01, "tolerance": 1}'
    done = run("--port", "dev:net_ring0", text=f"{line}\n\n{good}\n")
    assert done.returncode == 2
    assert names in done.stderr
    ready, bad, result = map(json.loads, done.stdout.splitlines())
    assert ready["event"] == "ready"
    assert (bad["ok"], bad["reason_code"]) == (False, "bad_spec")
    assert names in bad["reason"]
    assert result["ok"] and result["total"]["received_pkts"] == 10


@pytest.mark.parametrize(
    ("text", "line", "names"),
    [
        ("64,1\n63,1\n", 2, "63,1"),
        ("64 1\n", 1, "64 1"),
        ("# sizes\nbytes,weight\n64,-1\n", 3, "64,-1"),
        ("64,nan\n", 1, "64,nan"),
        ("64,1,2\n", 1, "64,1,2"),
    ],
)
def test_a_bad_size_file_is_named_with_its_line(tmp_path: Path, text: str, line: int, names: str):
    path = tmp_path / "sizes.csv"
    path.write_text(text)
    specification = json.dumps({"size": {"file": str(path)}})
    done = run("--port", "dev:net_ring0", text=specification + "\n")
    assert done.returncode == 2
    assert f"{path}:{line}: {names}" in done.stderr


def test_one_trial_from_a_file(tmp_path: Path):
    path = tmp_path / "trial.json"
    path.write_text('{\n "rate_pps": 1000,\n "duration_s": 0.01,\n "tolerance": 1\n}\n')
    done = run("--port", "dev:net_ring0", "--spec", str(path))
    assert done.returncode == 0
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["total"]["received_pkts"] == 10
    assert result["spec"] == json.loads(path.read_text())
    assert result["command_line"][1:] == ["--port", "dev:net_ring0", "--spec", str(path)]


def test_a_priority_that_is_none(monkeypatch):
    monkeypatch.setenv("CONVOY_PRIORITY", "idle")
    done = run("--self-test")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "convoy-gen: CONVOY_PRIORITY: 'idle' is neither high nor normal\n"


def test_nobody_at_the_other_end(tmp_path: Path):
    done = run("--port", f"vhost-user:{tmp_path / 'v'}", "--attach-timeout", "0.1")
    assert done.returncode == 1
    assert "cannot connect" in done.stderr


def test_help_and_version():
    assert "vhost-user:/PATH" in run("--help").stdout
    assert run("--version").stdout.startswith("convoy-gen ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KEYS = sorted([*TrialSpec.model_fields, "x"])


@pytest.fixture(scope="module")
def tester():
    with ConvoyGen(["dev:net_ring0"]) as running:
        yield running


@settings(max_examples=100, deadline=None)
@given(specification=st.dictionaries(st.sampled_from(KEYS), JSON, min_size=1, max_size=4))
def test_any_specification_is_answered(tester: ConvoyGen, specification: dict):
    """Whatever comes, the answer is one line, and it is a trial's or says what is wrong."""
    specification |= {"warmup_s": 0, "drain_s": 0}
    duration = specification.get("duration_s", 1)
    if not isinstance(duration, int | float) or duration > 0.001:
        specification["duration_s"] = 0.001
    result = answer(tester, json.dumps(specification))
    assert result.ok or result.reason
    if result.ok:  # what the tester takes, Python takes as well
        read_spec(specification)


def keys(model, at=""):
    """Return the keys that a model does not know, and its fields that it was not given."""
    unknown = {f"{at}{key}" for key in model.model_extra or ()}
    missing = {f"{at}{key}" for key in type(model).model_fields.keys() - model.model_fields_set}
    for name, value in model:
        if isinstance(value, BaseModel):
            more = keys(value, f"{at}{name}.")
            unknown, missing = unknown | more[0], missing | more[1]
    return unknown, missing


def test_a_results_keys_are_those_of_its_model(tester):
    result = tester.trial({"duration_s": 0.05, "convoys": 2})
    unknown, missing = keys(result)
    assert unknown == {"spec", "versions", "command_line", "finished_unix_s"}
    assert not missing
    unknown, missing = keys(result.paths[0])
    assert not unknown and not missing


# Specifications that both readers decide alike, and whether they take them.
AGREED = [
    *(({"duration_s": value}, False) for value in (0, -1, 86401, True, "1")),
    *(({"warmup_s": value}, False) for value in (-0.1, 3601)),
    *(({"drain_s": value}, False) for value in (-1, 60.5)),
    *(({"rate_pps": value}, True) for value in (0.01, 1e9, "max")),
    *(({"rate_pps": value}, False) for value in (0, -1, 1.1e9, "1000", "most", [])),
    *(({"tolerance": value}, 0 <= value <= 1) for value in (-0.1, 0, 1, 1.1)),
    *(({"seed": value}, True) for value in (0, (1 << 63) - 1)),
    *(({"seed": value}, False) for value in (-1, 1 << 63, 1.5)),
    *(({"on_full": value}, value != "lose") for value in ("wait", "drop", "lose")),
    *(({"size": value}, True) for value in (64, 1518, "imix")),
    *(({"size": value}, False) for value in (63, 65536, 64.5, "jumbo", {"file": 1})),
    *(({"pacing": {"burst_pkts": n}}, 1 <= n <= 65536) for n in (0, 1, 65536, 65537)),
    *(({"pacing": {"on_us": on, "off_us": 0}}, 1 <= on <= 1e7) for on in (0.5, 1, 1e7, 1.1e7)),
    ({"pacing": {"on_us": 10}}, True),
    ({"pacing": {"off_us": 10}}, False),
    ({"pacing": {"on_us": 10, "off_us": -1}}, False),
    *(({"flows": {"count": n}}, n == 1) for n in (0, 1, (1 << 24) + 1)),
    *(({"flows": {"order": order}}, order == "shuffle") for order in ("shuffle", "random")),
    ({"flows": {"ip": 5}}, False),
    ({"flows": {"protocol": "icmp"}}, False),
    ({"flows": []}, False),
    *(({"convoys": n}, 1 <= n <= 255) for n in (0, 1, 255, 256)),
    *(({"convoys": {"packets": 1, "mtu": mtu}}, mtu == 128) for mtu in (127, 128, 65501)),
    *(({"convoys": {"packets": 1, "port": port}}, port == 1) for port in (0, 1, 65536)),
    *(({"convoys": {"packets": 1, "nfi": nfi}}, nfi == 65535) for nfi in (65535, 65536)),
    ({"convoys": {}}, False),
    ({"paths": ["0>0"]}, True),
    *(({"paths": paths}, False) for paths in ([], ["x"], ["0>"], "0>0", ["0>0"] * 17)),
    ({"capture": {}}, False),
    ({"capture": {"file": "x", "timing": "none"}}, False),
    ({"capture": {"file": "x", "speed": 0}}, False),
    ({"id": "x"}, True),
    ({"id": ""}, False),
    ({"id": 1}, False),
    ({"x": 1}, False),
    *(({part: {"x": 1}}, False) for part in ("pacing", "flows", "convoys", "size", "capture")),
]
# What only the tester knows: its ports, its files, and how an address is written.
LAST_WORD = [
    ({"size": 9000}, "size: 9000"),
    ({"flows": {"vlan": 4095}}, "flows: vlan: 4095"),
    ({"flows": {"src_port": 65536}}, "flows: src_port: 65536"),
    ({"flows": {"dst_ip": "x"}}, 'flows: dst_ip: "x"'),
    ({"flows": {"src_mac": "x"}}, 'flows: src_mac: "x"'),
    ({"convoys": {"packets": 2, "mtu": 65500}}, "convoys: mtu: 65500"),
    ({"paths": ["0>9"]}, 'paths[0]: "0>9"'),
    ({"capture": {"file": "/nosuchfile"}}, "capture: file: /nosuchfile"),
]


def answer(tester: ConvoyGen, line: str) -> TrialResult:
    tester.wait_ready()
    tester._process.say(line)
    return read_result(tester._read(20, "an answer"))


@pytest.mark.parametrize(("part", "taken"), AGREED, ids=lambda value: repr(value)[:60])
def test_python_and_the_tester_agree(tester, part: dict, taken: bool):
    specification = {"duration_s": 0.001, "drain_s": 0, **part}
    try:
        line = read_spec(specification).to_json()
    except InputError as error:
        line = json.dumps(specification)
        assert str(error).startswith("trial: ")
        assert not taken, error
    else:
        assert taken
    result = answer(tester, line)
    assert (result.reason_code != "bad_spec") == taken, result.reason


@pytest.mark.parametrize(("part", "words"), LAST_WORD, ids=lambda value: repr(value)[:60])
def test_the_tester_has_the_last_word(tester, part: dict, words: str):
    result = answer(tester, read_spec(part).to_json())
    assert result.reason_code == "bad_spec"
    assert words in result.reason


def test_a_tester_that_died_says_so():
    with ConvoyGen(["dev:net_ring0"]) as tester:
        tester.wait_ready()
        tester._process.signal(9)
        tester._process.wait(60)
        with pytest.raises(ProcessError):
            tester.trial({})
