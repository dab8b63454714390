# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""An os-ken application that does what lines on standard input say, and says what comes back.

Run by Debian's Python, which has os-ken: osken_controller.py PORT. A line is a JSON object: `flow`
(a FLOW_MOD: command, table, match, output or nfi, ...), `barrier`, `flows`, `role`.
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


def say(event: str, **values: Any) -> None:
    """Print an event."""
    print(json.dumps({"event": event, **values}), flush=True)


class Steering(app_manager.OSKenApp):
    """Passes on what it is told, and what it hears."""

    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    def start(self) -> None:
        """Begin to read standard input."""
        super().start()
        self.node: Any = None
        hub.spawn(self._read)

    def _read(self) -> None:
        for line in GreenPipe(sys.stdin.fileno(), "r"):
            order = json.loads(line)
            getattr(self, "_" + order.pop("do"))(**order)

    def _flow(self, command: str, **values: Any) -> None:
        parser, protocol = self.node.ofproto_parser, self.node.ofproto
        actions = []
        if "output" in values:
            actions.append(parser.OFPActionOutput(values.pop("output")))
        if "nfi" in values:
            actions.append(parser.OFPActionSetField(tunnel_id=values.pop("nfi")))
        match = values.pop("match", {})
        if "vlan_vid" in match:
            match["vlan_vid"] |= protocol.OFPVID_PRESENT
        self.node.send_msg(
            parser.OFPFlowMod(
                self.node,
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

    def _barrier(self) -> None:
        self.node.send_msg(self.node.ofproto_parser.OFPBarrierRequest(self.node))

    def _flows(self) -> None:
        self.node.send_msg(self.node.ofproto_parser.OFPFlowStatsRequest(self.node))

    def _role(self, role: str, generation: int) -> None:
        parser, protocol = self.node.ofproto_parser, self.node.ofproto
        number = getattr(protocol, "OFPCR_ROLE_" + role)
        self.node.send_msg(parser.OFPRoleRequest(self.node, number, generation))

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def _features(self, event: Any) -> None:
        self.node = event.msg.datapath
        say("features", datapath=event.msg.datapath_id, tables=event.msg.n_tables)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _state(self, event: Any) -> None:
        say("connected" if event.state == MAIN_DISPATCHER else "gone")

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, LIVE)
    def _ports(self, event: Any) -> None:
        say("ports", ports={port.name.decode(): port.port_no for port in event.msg.body})

    @set_ev_cls(ofp_event.EventOFPBarrierReply, LIVE)
    def _passed(self, event: Any) -> None:
        say("barrier")

    @set_ev_cls(ofp_event.EventOFPErrorMsg, LIVE)
    def _error(self, event: Any) -> None:
        say("error", type=event.msg.type, code=event.msg.code)

    @set_ev_cls(ofp_event.EventOFPRoleReply, LIVE)
    def _role_is(self, event: Any) -> None:
        say("role", role=event.msg.role, generation=event.msg.generation_id)

    @set_ev_cls(ofp_event.EventOFPPortStatus, LIVE)
    def _port(self, event: Any) -> None:
        say("port", reason=event.msg.reason, name=event.msg.desc.name.decode())

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, LIVE)
    def _removed(self, event: Any) -> None:
        message = event.msg
        say("removed", reason=message.reason, match=dict(message.match.items()),
            cookie=message.cookie, priority=message.priority)  # fmt: skip

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, LIVE)
    def _flow_stats(self, event: Any) -> None:
        flows = [
            {
                "table": flow.table_id,
                "match": dict(flow.match.items()),
                "priority": flow.priority,
                "cookie": flow.cookie,
                "packets": flow.packet_count,
                "output": [action.port for one in flow.instructions for action in one.actions],
            }
            for flow in event.msg.body
        ]
        say("flows", flows=flows)


if __name__ == "__main__":
    cfg.CONF(args=["--ofp-tcp-listen-port", sys.argv[1], "--ofp-listen-host", "127.0.0.1"])
    app_manager.AppManager.run_apps(["os_ken.controller.ofp_handler", __file__])
