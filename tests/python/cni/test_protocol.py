# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""CNI's protocol, where only folders are laid out."""

import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from .plugin import ANOTHER, CONTAINER, ROOT, SHORT, Plugin

VHOST = {"iftype": "vhostuser"}
MEMIF = {"iftype": "memif"}


@pytest.fixture
def plugin(tmp_path, short_path):
    return Plugin(tmp_path, {"sharedDir": str(short_path / "shared"), "host": VHOST})


def container_data(plugin, folder=SHORT, short=SHORT):
    path = plugin.shared / folder / f"configData-{short}-net1.json"
    return json.loads(path.read_text("utf-8"))


def test_it_needs_the_standard_library_only():
    """It starts for each interface of each container, and a host may have nothing else."""
    done = subprocess.run(
        [sys.executable, "-IS", "-c",
         f"import sys; sys.path.insert(0, {str(ROOT)!r}); import convoy.cni.main; "
         "print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(done.stdout.split()) == {"__main__", "convoy"}


def test_version(plugin):
    code, reply = plugin.run("VERSION", text='{"cniVersion": "1.0.0"}')
    assert code == 0
    assert reply["cniVersion"] == "1.0.0"
    assert reply["supportedVersions"] == ["0.3.1", "0.4.0", "1.0.0", "1.1.0"]
    assert plugin.run("VERSION", text="")[1]["cniVersion"] == "1.1.0"


def test_names_are_those_of_userspace_cni(plugin):
    reply = plugin.add()
    path = f"{plugin.shared}/{SHORT}/{SHORT}-net1"
    assert reply == {
        "cniVersion": "1.1.0",
        "interfaces": [{"name": "net1", "sandbox": "/run/netns/blue", "socketPath": path}],
    }
    assert container_data(plugin) == {
        "containerId": CONTAINER,
        "ifName": "net1",
        "name": "edge",
        "config": {
            "netType": "interface",
            "iftype": "vhostuser",
            "vhost": {"mode": "client", "socketfile": f"{SHORT}-net1"},
        },
        "ipResult": reply,
    }


def test_memif(plugin):
    reply = plugin.add(host={"iftype": "memif", "memif": {"role": "slave"}})
    assert reply["interfaces"][0]["socketPath"].endswith(f"/{SHORT}/memif-{SHORT}-net1.sock")
    assert container_data(plugin)["config"]["memif"] == {
        "role": "master", "mode": "ethernet", "socketfile": f"memif-{SHORT}-net1.sock",
    }  # fmt: skip


@pytest.mark.parametrize("version", ["0.3.1", "0.4.0", "1.0.0"])
def test_older_versions_have_no_socket_path(plugin, version):
    reply = plugin.add(cniVersion=version)
    assert reply == {
        "cniVersion": version, "interfaces": [{"name": "net1", "sandbox": "/run/netns/blue"}],
    }  # fmt: skip


def test_everything_can_be_said_twice(plugin):
    assert plugin.add() == plugin.add()
    assert plugin.records() == [f"{SHORT}-net1"]
    plugin.fine("CHECK")
    plugin.fine("DEL")
    plugin.fine("DEL")
    assert plugin.files() == [] and plugin.records() == []
    plugin.fine("DEL", of=ANOTHER)
    assert plugin.refused("CHECK")["code"] == 101


def test_interfaces_of_a_container_share_its_folder(plugin):
    plugin.add(interface="net1")
    plugin.add(interface="net2", host=MEMIF)
    plugin.fine("DEL", interface="net1")
    assert plugin.files() == [SHORT, f"{SHORT}/configData-{SHORT}-net2.json"]
    plugin.fine("DEL", interface="net2", host=MEMIF)
    assert plugin.files() == []


def test_two_sockets_of_one_name_are_refused(plugin):
    host = {"iftype": "vhostuser", "vhost": {"socketfile": "edge.sock"}}
    reply = plugin.add(host=host)
    assert reply["interfaces"][0]["socketPath"] == f"{plugin.shared}/{SHORT}/edge.sock"
    other = plugin.refused("ADD", interface="net2", host=host)
    assert other["code"] == 100 and "edge.sock: is another interface's" in other["msg"]
    plugin.fine("CHECK", host=host)
    assert plugin.records() == [f"{SHORT}-net1"]


def test_many_at_a_time(plugin):
    """A runtime starts plugins for different containers beside each other."""
    ids = [f"{i:02x}" * 32 for i in range(12)]
    with ThreadPoolExecutor(len(ids)) as pool:
        paths = {one["interfaces"][0]["socketPath"] for one in pool.map(plugin.add, ids)}
        assert len(paths) == len(plugin.records()) == len(ids)
        list(pool.map(lambda one: plugin.fine("DEL", one), ids))
    assert plugin.files() == [] and plugin.records() == []


def test_a_record_that_is_none_is_named(plugin):
    plugin.add()
    path = plugin.shared / f".attachments/{SHORT}-net1.json"
    path.write_text("")
    assert plugin.refused("GC")["msg"] == f"{path}: no record; remove it"


def test_an_interface_that_is_another_networks_is_refused(plugin):
    plugin.add()
    reply = plugin.refused("ADD", name="dmz")
    assert reply["code"] == 100 and "net1: is in network edge" in reply["msg"]
    plugin.fine("DEL", name="dmz")
    plugin.fine("CHECK")


def test_what_is_not_in_the_list_is_collected(plugin):
    plugin.add()
    plugin.add(interface="net2")
    plugin.add(ANOTHER)
    plugin.add(ANOTHER, "net7", name="dmz")
    valid = [{"containerID": CONTAINER, "ifname": "net2"}]
    plugin.fine("GC", **{"cni.dev/valid-attachments": valid})
    assert plugin.records() == [f"{SHORT}-net2", f"{ANOTHER[:12]}-net7"]
    plugin.fine("GC")
    assert plugin.records() == [f"{ANOTHER[:12]}-net7"]


def test_an_interrupted_add_is_done_again(plugin):
    reply = plugin.add()
    path = plugin.shared / f".attachments/{SHORT}-net1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "result": {}}))
    (plugin.shared / SHORT / f"configData-{SHORT}-net1.json").unlink()
    assert plugin.add() == reply
    plugin.fine("CHECK")


def test_check_says_what_is_missing(plugin):
    plugin.add()
    (plugin.shared / SHORT / f"configData-{SHORT}-net1.json").unlink()
    assert "configData" in plugin.refused("CHECK")["msg"]
    wrong = {"cniVersion": "1.1.0", "interfaces": [{"name": "eth0"}]}
    plugin.fine("DEL")
    plugin.add()
    assert "has no interface net1" in plugin.refused("CHECK", prevResult=wrong)["msg"]


def test_a_container_that_is_no_hash_has_one(plugin):
    """The first characters of what cnitool calls a container are the same for most."""
    ids = [f"cnitool-{i:020x}" for i in range(2)]
    paths = {plugin.add(one)["interfaces"][0]["socketPath"] for one in ids}
    assert len(paths) == 2
    assert not any("cnitool" in path for path in paths)


def test_ids_that_begin_alike_are_told_apart(plugin):
    plugin.add()
    other = CONTAINER[:-1] + "1"
    assert plugin.refused("ADD", other)["code"] == 100
    plugin.fine("DEL", other)
    plugin.fine("CHECK")


def test_a_long_path_gets_short_names(tmp_path):
    """107 bytes are what a socket's path may have."""
    base = tmp_path / "s"
    base /= "x" * (80 - len(str(base)))
    plugin = Plugin(tmp_path, {"sharedDir": str(base), "host": VHOST})
    path = plugin.add()["interfaces"][0]["socketPath"]
    assert len(path) <= 107 and path.count("/") == str(base).count("/") + 2
    name = path.rpartition("/")[2]
    folder = path.split("/")[-2]
    assert container_data(plugin, folder)["config"]["vhost"]["socketfile"] == name
    plugin.fine("CHECK")
    plugin.fine("DEL")
    assert plugin.files() == []
    longer = plugin.refused("ADD", sharedDir=str(base) + "y" * 15)
    assert longer["code"] == 7 and "7 bytes less" in longer["details"]


def test_rights_follow_from_who_makes_the_socket(plugin):
    def rights(container):
        match = (plugin.shared / container[:12]).stat()
        return stat.S_IMODE(match.st_mode), match.st_gid

    plugin.add()
    assert rights(CONTAINER) == (0o755, os.getgid())
    plugin.add(ANOTHER, host={"iftype": "vhostuser", "vhost": {"mode": "client"}})
    assert rights(ANOTHER) == (0o1777, os.getgid())
    plugin.fine("DEL")
    plugin.add(host={"iftype": "vhostuser", "vhost": {"group": "root"}})
    assert rights(CONTAINER) == (0o750, 0)
    assert "no such group" in plugin.refused(
        "ADD", "aa" * 32, host={"iftype": "vhostuser", "vhost": {"group": "nobody-here"}}
    )["msg"]  # fmt: skip
    assert "aa" * 6 not in plugin.files()


def test_a_pod_finds_its_folder_by_its_uid(plugin):
    uid = "8f3c2f5e-4c55-4b8e-9d7b-0123456789ab"
    arguments = {"CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAME=a;K8S_POD_UID={uid}"}
    plugin.add(environment=arguments)
    plugin.add(interface="net2", environment=arguments)
    assert (plugin.shared / uid).readlink().name == SHORT
    plugin.fine("DEL", environment=arguments)
    assert (plugin.shared / uid).is_symlink()
    plugin.fine("DEL", interface="net2")
    assert plugin.files() == []
    plugin.add(environment={"CNI_ARGS": "K8S_POD_UID=../../x"})
    plugin.fine("DEL")


def test_kubernetes_is_told_the_device(plugin, tmp_path):
    file = tmp_path / "devinfo/edge.json"
    reply = plugin.add(runtimeConfig={"CNIDeviceInfoFile": str(file)})
    assert json.loads(file.read_text("utf-8")) == {
        "type": "vhost-user",
        "version": "1.1.0",
        "vhost-user": {"mode": "client", "path": reply["interfaces"][0]["socketPath"]},
    }


def ipam(folder, body):
    path = folder / "addresses"
    path.write_text(f"#!/bin/sh\necho $CNI_COMMAND >>{folder}/called\n{body}\n")
    path.chmod(0o755)


def test_addresses_come_from_the_plugin_for_them(plugin, tmp_path):
    ipam(tmp_path, """[ $CNI_COMMAND != ADD ] || echo '{"ips": [{"address": "10.1.0.5/16"}]}'""")
    section = {"type": "addresses"}
    before = {"cniVersion": "1.1.0", "interfaces": [{"name": "eth0"}], "dns": {"domain": "a"}}
    reply = plugin.add(ipam=section, prevResult=before)
    assert reply["ips"] == [{"address": "10.1.0.5/16", "interface": 1}]
    assert [one["name"] for one in reply["interfaces"]] == ["eth0", "net1"]
    assert reply["dns"] == {"domain": "a"}
    for command in ("CHECK", "STATUS", "GC", "DEL"):
        plugin.fine(command, ipam=section)
    assert (tmp_path / "called").read_text().split() == ["ADD", "CHECK", "STATUS", "GC", "DEL"]


def test_without_an_address_nothing_stays(plugin, tmp_path):
    ipam(tmp_path, """echo '{"code": 11, "msg": "none left"}'; exit 1""")
    reply = plugin.refused("ADD", ipam={"type": "addresses"})
    assert reply["code"] == 11 and reply["msg"] == "ipam: addresses: none left"
    assert (tmp_path / "called").read_text().split() == ["ADD", "DEL"]
    assert plugin.files() == [] and plugin.records() == []
    assert plugin.refused("ADD", ipam={"type": "nowhere"})["code"] == 7


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"cniVersion": "9.0.0"}, 1, "cniVersion: '9.0.0'"),
        ({"cniVersion": None}, 1, "cniVersion: None"),
        ({"logFile": "/var/log/x"}, 2, "logFile: '/var/log/x'"),
        ({"host": {**VHOST, "bridge": {"bridgeName": "br0"}}}, 2, "host.bridge: {'bridgeName'"),
        ({"host": {**VHOST, "vhost": {"moed": "client"}}}, 2, "host.vhost.moed: 'client'"),
        ({"host": {}}, 7, "host.iftype: None: must be 'vhostuser' or 'memif'"),
        ({"host": []}, 7, "host: []: must be an object"),
        ({"host": {**VHOST, "engine": "vpp"}}, 7, "host.engine: 'vpp'"),
        ({"host": {**VHOST, "vhost": {"mode": "both"}}}, 7, "host.vhost.mode: 'both'"),
        ({"host": {**MEMIF, "memif": {"role": "server"}}}, 7, "host.memif.role: 'server'"),
        ({"host": {**MEMIF, "memif": {"mode": "ip"}}}, 7, "host.memif.mode: 'ip'"),
        ({"container": {"vhost": {"mode": "server"}}}, 7, "container.vhost.mode: 'server'"),
        ({"container": {"iftype": "memif"}}, 7, "container.iftype: 'memif'"),
        ({"name": "../edge"}, 7, "name: '../edge'"),
        ({"name": None}, 7, "name: None"),
        ({"sharedDir": "shared"}, 7, "sharedDir: 'shared': must be an absolute path"),
        ({"sharedDir": "/run/../etc"}, 7, "sharedDir: '/run/../etc': must not have .."),
        ({"host": {**VHOST, "vhost": {"socketfile": "../x"}}}, 7, "host.vhost.socketfile: '../x'"),
        ({"ipam": {"type": "../../bin/sh"}}, 7, "ipam.type: '../../bin/sh'"),
        ({"prevResult": {"interfaces": 7}}, 7, "prevResult.interfaces: must be a list"),
        ({"of": CONTAINER[:8] + "/../.."}, 4, "CNI_CONTAINERID: '0958c887/../..'"),
        ({"of": ""}, 4, "CNI_CONTAINERID: missing"),
        ({"interface": "../../x"}, 4, "CNI_IFNAME: '../../x'"),
        ({"interface": ".."}, 4, "CNI_IFNAME: '..'"),
        ({"interface": "sixteen-letters-"}, 4, "CNI_IFNAME: 'sixteen-letters-'"),
        ({"environment": {"CNI_NETNS": ""}}, 4, "CNI_NETNS: missing"),
        ({"environment": {"CNI_COMMAND": "HELLO"}}, 4, "CNI_COMMAND: 'HELLO'"),
        ({"text": "[1"}, 6, "the configuration is no JSON"),
        ({"text": "[]"}, 6, "the configuration is no JSON object"),
        ({"text": "[" * 100_000}, 6, "the configuration is no JSON"),
        ({"text": '"' + "x" * (1 << 20) + '"'}, 6, "longer than 1048576 bytes"),
        ({"node": "/nowhere"}, 11, "node: /nowhere: no node runs there"),
    ],
)  # fmt: skip
def test_bad_input_is_named_and_nothing_stays(plugin, changes, code, words):
    reply = plugin.refused("ADD", **changes)
    assert (reply["code"], words in reply["msg"]) == (code, True), reply
    assert not plugin.shared.exists() or (plugin.files() == [] and plugin.records() == [])


def test_what_a_container_left_is_removed_and_no_link_is_followed(plugin, tmp_path):
    """It may write into its folder where it makes the socket."""
    host = {"iftype": "vhostuser", "vhost": {"mode": "client"}}
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "gold").write_text("")
    plugin.add(host=host)
    folder = plugin.shared / SHORT
    (folder / f"configData-{SHORT}-net1.json").unlink()
    (folder / f"configData-{SHORT}-net1.json").symlink_to(treasure / "gold")
    (folder / f"{SHORT}-net1").symlink_to(treasure)
    (folder / "deep/deeper").mkdir(parents=True)
    (folder / "deep/out").symlink_to(treasure)
    assert plugin.refused("CHECK", host=host)["code"] == 101
    plugin.fine("DEL", host=host)
    assert plugin.files() == []
    assert (treasure / "gold").read_text() == ""


def test_a_folder_that_is_a_link_is_not_entered(plugin, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    plugin.shared.mkdir()
    (plugin.shared / SHORT).symlink_to(outside)
    assert plugin.refused("ADD")["code"] == 5
    assert list(outside.iterdir()) == [] and plugin.records() == []
