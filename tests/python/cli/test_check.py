# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""convoy check and doctor, as commands: output, exit codes, JSON."""

import json
import re


def test_picture(convoy, stand_in, chain):
    stand_in("good")
    done = convoy("check", chain)
    assert done.returncode == 0
    assert re.search(r"^all: everything$", done.stdout, re.M)
    assert re.search(r"  a \(null\) ──▶ \[core \d+: fw \(firewall\)\] ──▶ b \(null\)", done.stdout)
    assert done.stdout.endswith(f"{chain}: ok\n")
    assert "\x1b" not in done.stdout


def test_plan(convoy, stand_in, chain):
    stand_in("good")
    plan = json.loads(convoy("check", "--plan", chain).stdout)
    assert plan["schema"] == "convoy.plan/1"


def test_json(convoy, stand_in, chain):
    stand_in("good")
    document = json.loads(convoy("check", "--json", chain).stdout)
    assert document["ok"] is True
    assert document["checked_by_convoyd"] is True
    assert document["plan"]["functions"][0]["name"] == "fw"


def test_schema(convoy):
    assert json.loads(convoy("check", "--schema").stdout)["title"] == "Convoy chain descriptor"


def test_bad_descriptor(convoy, chain):
    chain.write_text(chain.read_text().replace("to: b", "to: c"))
    done = convoy("check", "--json", chain)
    assert done.returncode == 2
    message = f"{chain}:3: chains.all.to: 'c': no port is called so; ports: a, b"
    assert json.loads(done.stdout) == {
        "schema": "convoy.error/1",
        "ok": False,
        "exit_code": 2,
        "errors": [message],
    }
    assert done.stderr == f"convoy: {message}\n"


def test_convoyds_words_are_passed_on(convoy, stand_in, chain):
    stand_in("bad plan")
    done = convoy("check", chain)
    assert done.returncode == 2
    assert done.stderr == f"convoy: {chain}:2: functions.fw.config: no\n"


def test_a_plan_changed_by_hand_goes_to_convoyd(convoy, stand_in, chain, tmp_path):
    stand_in("bad plan")
    plan = tmp_path / "plan.json"
    plan.write_text('{"schema": "convoy.plan/1", "ports": "none"}')
    done = convoy("check", plan)
    assert done.returncode == 2
    assert done.stderr == "convoy: convoyd: the plan: functions[0].config: no\n"


def test_a_plan_that_is_no_json(convoy, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text('{"schema": "convoy.plan/1",\n "ports": [}')
    done = convoy("run", plan)
    assert done.returncode == 2
    assert done.stderr == (
        f"convoy: {plan}:2: not JSON: Expecting value; "
        "make it again: convoy check DESCRIPTOR --plan\n"
    )


def test_a_crash_of_convoyd_is_no_bad_input(convoy, stand_in, chain):
    stand_in("crash")
    done = convoy("check", chain)
    assert done.returncode == 1
    assert "convoyd --check" in done.stderr


def test_every_problem_has_its_line(convoy, chain):
    text = chain.read_text().replace("to: b", "to: c").replace("from: a", "from: d")
    chain.write_text(text)
    lines = convoy("check", chain).stderr.splitlines()
    assert [line.split(": ")[2] for line in lines] == ["chains.all.from", "chains.all.to"]
    assert all(line.startswith(f"convoy: {chain}:3: ") for line in lines)


def test_a_file_name_that_is_no_text(convoy, stand_in, chain):
    stand_in("good")
    odd = chain.parent / "\udcff\x1b.yaml"
    chain.rename(odd)
    done = convoy("check", odd)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("/??.yaml: ok\n")


def test_no_file(convoy):
    done = convoy("check", "no.yaml")
    assert done.returncode == 2
    assert done.stderr == (
        "convoy: no.yaml: No such file or directory; give the path of a YAML file\n"
    )
    assert convoy("check").returncode == 2
    assert convoy("check", "--nonsense").returncode == 2
    assert convoy("check", "/").returncode == 2


def test_help_names_the_exit_codes(convoy):
    for command in ("check", "run", "doctor"):
        assert "Exit codes: 0 done" in convoy(command, "--help").stdout


def test_doctor(convoy):
    done = convoy("doctor", "--json")
    document = json.loads(done.stdout)
    assert document["schema"] == "convoy.doctor/2"
    assert done.returncode == (0 if document["ok"] else 1)
    assert {finding["level"] for finding in document["findings"]} <= {"ok", "note", "problem"}
    text = convoy("doctor").stdout
    assert all(finding["state"] in text for finding in document["findings"][:3])
