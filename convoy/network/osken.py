# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""An os-ken application that does what lines on standard input say, and says what comes back.

A program of its own: run by a Python that has os-ken (Debian's python3-os-ken), of which it needs
nothing else. osken.py PORT [ADDRESS]. A line is a JSON object: `do`, the datapath (`node`, its id;
default: the one that connected last), and values. What it says has the datapath as `node`.
"""

import json
import sys
from typing import Any

from eventlet.greenio import GreenPipe
from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import (
    CONFIG_DISPATCHER,
    DEAD_DISPATCHER,
    MAIN_DISPATCHER,
    set_ev_cls,
)
from os_ken.lib import hub
from os_ken.ofproto import ofproto_v1_3

LIVE = [CONFIG_DISPATCHER, MAIN_DISPATCHER]


def say(event: str, node: Any, **values: Any) -> None:
    """Print an event of a datapath, or of none."""
    number = None if node is None else node.id
    print(json.dumps({"event": event, "node": number, **values}), flush=True)


class Steering(app_manager.OSKenApp):
    """Passes on what it is told, and what it hears."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def start(self) -> None:
        """Begin to read standard input."""
        super().start()
        self.nodes: dict[Any, Any] = {}
        self.last: Any = None
        hub.spawn(self._read)

    def _read(self) -> None:
        say("ready", None)  # the handler of connections was started before
        for line in GreenPipe(sys.stdin.fileno(), "r"):
            order = json.loads(line)
            node = self.nodes.get(order.pop("node")) if "node" in order else self.last
            if node is not None:  # one that has just gone is told nothing
                getattr(self, "_" + order.pop("do"))(node, **order)

    def _flow(self, node: Any, command: str, **values: Any) -> None:
        parser, protocol = node.ofproto_parser, node.ofproto
        actions = []
        if "output" in values:
            actions.append(parser.OFPActionOutput(values.pop("output")))
        if "group" in values:
            actions.append(parser.OFPActionGroup(values.pop("group")))
        if "nfi" in values:
            actions.append(parser.OFPActionSetField(tunnel_id=values.pop("nfi")))
        match = values.pop("match", {})
        if "vlan_vid" in match:
            match["vlan_vid"] |= protocol.OFPVID_PRESENT
        node.send_msg(
            parser.OFPFlowMod(
                node,
                command=getattr(protocol, "OFPFC_" + command),
                match=parser.OFPMatch(**match),
                out_port=protocol.OFPP_ANY,
                out_group=protocol.OFPG_ANY,
                instructions=[
                    parser.OFPInstructionActions(protocol.OFPIT_APPLY_ACTIONS, actions)
                ] if actions else [],
                **values,
            )
        )  # fmt: skip

    def _group(self, node: Any, command: str, group: int, nfis: Any = ()) -> None:
        """nfis: next hops of a group's buckets, by their NFI-IDs, with weights."""
        parser, protocol = node.ofproto_parser, node.ofproto
        buckets = [
            parser.OFPBucket(weight=weight, watch_port=protocol.OFPP_ANY,
                             watch_group=protocol.OFPG_ANY,
                             actions=[parser.OFPActionSetField(tunnel_id=nfi)])
            for nfi, weight in nfis
        ]  # fmt: skip
        number = getattr(protocol, "OFPGC_" + command)
        node.send_msg(parser.OFPGroupMod(node, number, protocol.OFPGT_SELECT, group, buckets))

    def _groups(self, node: Any) -> None:
        node.send_msg(node.ofproto_parser.OFPGroupDescStatsRequest(node, 0))

    def _barrier(self, node: Any, xid: int = 0) -> None:
        message = node.ofproto_parser.OFPBarrierRequest(node)
        if xid:
            message.set_xid(xid)
        node.send_msg(message)

    def _echo(self, node: Any) -> None:
        node.send_msg(node.ofproto_parser.OFPEchoRequest(node, b"there?"))

    def _flows(self, node: Any) -> None:
        node.send_msg(node.ofproto_parser.OFPFlowStatsRequest(node))

    def _role(self, node: Any, role: str, generation: int) -> None:
        number = getattr(node.ofproto, "OFPCR_ROLE_" + role)
        node.send_msg(node.ofproto_parser.OFPRoleRequest(node, number, generation))

    def _close(self, node: Any) -> None:
        node.close()

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def _features(self, event: Any) -> None:
        node = event.msg.datapath
        self.nodes[node.id] = self.last = node
        say("features", node, tables=event.msg.n_tables)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _state(self, event: Any) -> None:
        node = event.datapath
        if event.state == MAIN_DISPATCHER:
            say("connected", node)
        elif node in self.nodes.values():  # not one that has connected again since
            del self.nodes[node.id]
            say("gone", node)

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, LIVE)
    def _ports(self, event: Any) -> None:
        ports = {port.name.decode(): port.port_no for port in event.msg.body}
        say("ports", event.msg.datapath, ports=ports)

    @set_ev_cls(ofp_event.EventOFPBarrierReply, LIVE)
    def _passed(self, event: Any) -> None:
        say("barrier", event.msg.datapath, xid=event.msg.xid)

    @set_ev_cls(ofp_event.EventOFPEchoReply, LIVE)
    def _is_there(self, event: Any) -> None:
        say("echo", event.msg.datapath)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, LIVE)
    def _error(self, event: Any) -> None:
        say("error", event.msg.datapath, type=event.msg.type, code=event.msg.code)

    @set_ev_cls(ofp_event.EventOFPRoleReply, LIVE)
    def _role_is(self, event: Any) -> None:
        message = event.msg
        say("role", message.datapath, role=message.role, generation=message.generation_id)

    @set_ev_cls(ofp_event.EventOFPPortStatus, LIVE)
    def _port(self, event: Any) -> None:
        message = event.msg
        say("port", message.datapath, reason=message.reason, name=message.desc.name.decode())

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, LIVE)
    def _removed(self, event: Any) -> None:
        message = event.msg
        say("removed", message.datapath, reason=message.reason, match=dict(message.match.items()),
            cookie=message.cookie, priority=message.priority)  # fmt: skip

    @set_ev_cls(ofp_event.EventOFPGroupDescStatsReply, LIVE)
    def _group_desc(self, event: Any) -> None:
        groups = [group.group_id for group in event.msg.body]
        say("groups", event.msg.datapath, groups=groups)

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, LIVE)
    def _flow_stats(self, event: Any) -> None:
        message = event.msg
        flows = [
            {
                "table": flow.table_id,
                "match": dict(flow.match.items()),
                "priority": flow.priority,
                "cookie": flow.cookie,
                "packets": flow.packet_count,
                "output": [
                    getattr(action, "port", None)
                    for one in flow.instructions
                    for action in one.actions
                ],
            }
            for flow in message.body
        ]
        more = bool(message.flags & message.datapath.ofproto.OFPMPF_REPLY_MORE)
        say("flows", message.datapath, flows=flows, more=more)


if __name__ == "__main__":
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    cfg.CONF(args=["--ofp-tcp-listen-port", sys.argv[1], "--ofp-listen-host", address])
    app_manager.AppManager.run_apps(["os_ken.controller.ofp_handler", __file__])
