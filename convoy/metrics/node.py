# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""A node's counts as metrics. Labels are names of its configuration: traffic adds none."""

from collections.abc import Mapping
from typing import Any

from convoy.metrics.exposition import Buckets, Kind, Metric, Page, label
from convoy.metrics.functions import add_functions

Counts = Mapping[str, Any]

# Most packets of a frame that a bucket counts; convoys have at most 255.
FILL = Buckets(1, 2, 4, 8, 16, 32, 64, 128)
# Most frames of a reception; the node counts by these.
BURST = Buckets(1, 2, 4, 8, 16, 32, 64, 128, 256)

UP = Metric(Kind.GAUGE, "convoy_up", "Whether the node answered this scrape.")
BUILD = Metric(Kind.INFO, "convoy_build", "Version of the node.", ("version",))
TSC = Metric(Kind.GAUGE, "convoy_tsc_hertz", "Cycles of a second, of all that is in cycles.")

# Of counts' key.
ACCOUNTING = {
    "received": Metric(Kind.COUNTER, "convoy_received_packets", "Received by all ports."),
    "originated": Metric(Kind.COUNTER, "convoy_originated_packets", "Made by functions."),
    "sent": Metric(Kind.COUNTER, "convoy_sent_packets", "Sent by all ports."),
    "dropped": Metric(Kind.COUNTER, "convoy_dropped_packets", "Dropped, for whatever reason."),
    "absorbed": Metric(Kind.COUNTER, "convoy_absorbed_packets", "Consumed by functions."),
    "held": Metric(Kind.GAUGE, "convoy_held_packets", "In functions and rings now."),
}
BUFFERS = {
    "total": Metric(Kind.GAUGE, "convoy_max_buffers", "Packet buffers of the node."),
    "in_use": Metric(Kind.GAUGE, "convoy_used_buffers", "Packet buffers that are not free."),
}
PORT_INFO = Metric(Kind.INFO, "convoy_port", "A port and its kind.", ("port", "kind"))
PORT = {
    f"{way}_{what}": Metric(Kind.COUNTER, f"convoy_port_{way}_{what}", words, ("port",))
    for way, past in (("rx", "received"), ("tx", "sent"))
    for what, words in (
        ("packets", f"Packets that the port {past}, those of convoys counted singly."),
        ("frames", f"Frames that the port {past}; a convoy is one."),
        ("bytes", f"Bytes of packets that the port {past}."),
    )
}
PORT_DROPPED = Metric(
    Kind.COUNTER,
    "convoy_port_dropped_packets",
    "Packets dropped between ports and functions.",
    ("port", "reason"),
)
PORT_LINK = Metric(
    Kind.GAUGE, "convoy_port_link_up", "Whether a peer is there, or the link is up.", ("port",)
)
DEVICE = {
    key: Metric(Kind.COUNTER, f"convoy_port_device_{name}", words, ("port",))
    for key, name, words in (
        ("rx_missed_pkts", "rx_missed_packets", "Packets that the device had no descriptor for."),
        ("rx_errors", "rx_errors", "Packets that the device received broken."),
        ("tx_errors", "tx_errors", "Packets that the device could not send."),
        ("rx_no_buffer", "rx_no_buffer", "Receptions put off because no buffer was free."),
        ("kicks", "kicks", "Notifications that guests were sent."),
        ("refused_messages", "refused_messages", "Messages of peers that were refused."),
        ("peers", "peers", "Peers that connected."),
    )
}
DEVICE_BROKEN = Metric(
    Kind.GAUGE,
    "convoy_port_device_broken_queues",
    "Queues that their peer broke; they rest until it connects again.",
    ("port",),
)
RX_BURST = Metric(
    Kind.HISTOGRAM,
    "convoy_port_rx_burst_frames",
    "Frames that the port gave at a time.",
    ("port", "le"),
)
LATENCY = {
    key: Metric(Kind.HISTOGRAM, f"convoy_port_{key}_seconds", words, ("port", "le"))
    for key, words in (
        ("rx_wait", "Since the port was asked before: packets waited so long at most; drawn ones."),
        ("rx_latency", "From when the port was asked until its packets came to their chain."),
        ("tx_latency", "From the end of their chain until packets were sent, with all others."),
    )
}
RX_FILL = Metric(
    Kind.HISTOGRAM,
    "convoy_port_rx_frame_packets",
    "Packets of a received frame, of ports that carry convoys.",
    ("port", "le"),
)
REFUSED = Metric(
    Kind.COUNTER,
    "convoy_port_refused_convoys",
    "Frames that should be convoys and are none.",
    ("port", "reason"),
)
BY_NFI = Metric(
    Kind.COUNTER,
    "convoy_port_nfi_convoys",
    "Received convoys to a network-function instance (NFI-ID) that a chain matches.",
    ("port", "nfi"),
)
NEXT_HOP_INFO = Metric(
    Kind.INFO, "convoy_next_hop", "A next hop and its port.", ("next_hop", "port")
)
NEXT_HOP_WEIGHT = Metric(
    Kind.GAUGE,
    "convoy_next_hop_weight",
    "The share of a next hop among those for the same service-chain id.",
    ("next_hop",),
)
NEXT_HOP_COMPRESSED = {
    key: Metric(Kind.COUNTER, f"convoy_next_hop_{name}", words, ("next_hop",))
    for key, name, words in (
        ("frames", "compressed_frames", "Convoys that were compressed."),
        ("not_smaller", "not_smaller_frames", "Convoys that compression did not make smaller."),
        ("bytes_before", "before_compression_bytes", "Bytes of both before compression."),
        ("bytes_after", "after_compression_bytes", "Bytes of both as they were sent."),
    )
}
NEXT_HOP_FILL = Metric(
    Kind.HISTOGRAM,
    "convoy_next_hop_frame_packets",
    "Packets of a frame that was sent to a next hop.",
    ("next_hop", "le"),
)
OPENFLOW = {
    "entries": Metric(Kind.GAUGE, "convoy_openflow_entries", "Flow entries of controllers."),
    "controllers": Metric(
        Kind.GAUGE, "convoy_openflow_controllers", "Controllers that are connected."
    ),
    "connections": Metric(
        Kind.COUNTER, "convoy_openflow_connections", "Connections with controllers since the start."
    ),
    "changes": Metric(Kind.COUNTER, "convoy_openflow_changes", "FLOW_MODs that were carried out."),
    "refused": Metric(
        Kind.COUNTER, "convoy_openflow_refused_messages", "Messages that were answered by an error."
    ),
    "frames": Metric(
        Kind.COUNTER, "convoy_openflow_frames", "Frames with FLOW_MODs that were carried out."
    ),
    "frames_refused": Metric(
        Kind.COUNTER, "convoy_openflow_refused_frames", "Frames that were not authentic."
    ),
}
STANDBY = {
    "flows": Metric(Kind.GAUGE, "convoy_standby_flows", "Flows that were copied to the standby."),
    "lag_ms": Metric(
        Kind.GAUGE,
        "convoy_standby_lag_seconds",
        "Age of what the standby has; absent: not connected.",
    ),
    "bytes": Metric(Kind.COUNTER, "convoy_standby_bytes", "Bytes that were sent to the standby."),
    "connections": Metric(
        Kind.COUNTER, "convoy_standby_connections", "Connections with the standby since the start."
    ),
}

FLOWS = Metric(
    Kind.GAUGE, "convoy_flow_table_flows", "Flows that the table has now.", ("table", "family")
)
FLOWS_DENIED = Metric(
    Kind.GAUGE, "convoy_flow_table_denied_flows", "Of these, denied ones.", ("table",)
)
FLOWS_MAX = Metric(
    Kind.GAUGE,
    "convoy_flow_table_max_flows",
    "Flows that the table has room for.",
    ("table", "family"),
)
FLOWS_BYTES = Metric(
    Kind.GAUGE, "convoy_flow_table_memory_bytes", "Memory of the table.", ("table",)
)
FLOWS_SINCE_START = {
    key: Metric(Kind.COUNTER, f"convoy_flow_table_{key}{what}", words, ("table",))
    for key, what, words in (
        ("created", "_flows", "Flows that began."),
        ("timed_out", "_flows", "Flows that ended because nothing came."),
        ("invalidated", "_flows", "Flows that ended because they are decided otherwise now."),
        ("originated", "_packets", "Packets that the table made, such as resets."),
        ("busy_cycles", "", "Cycles that packets of flows took."),
    )
}
FLOWS_DROPPED = Metric(
    Kind.COUNTER,
    "convoy_flow_table_dropped_packets",
    "Packets that the table dropped, and no function.",
    ("table", "reason"),
)

_WORKER = ("worker", "core")
WORKER = {
    key: Metric(Kind.COUNTER, f"convoy_worker_{name}", words, _WORKER)
    for key, name, words in (
        ("poll_iterations", "poll_iterations", "Poll iterations."),
        ("busy_cycles", "busy_cycles", "Cycles of iterations that had packets."),
        ("total_cycles", "cycles", "All cycles; those that were not busy were idle."),
    )
}
WORKER_LONGEST = Metric(
    Kind.GAUGE,
    "convoy_worker_longest_iteration_seconds",
    "The longest poll iteration since the start.",
    _WORKER,
)

WORKER_QUEUES = Metric(
    Kind.GAUGE,
    "convoy_worker_queues",
    "Queues of ports that it polls now (with `scale: auto`).",
    _WORKER,
)
WORKER_TAKEN = Metric(
    Kind.COUNTER,
    "convoy_worker_queues_taken",
    "Queues that came to it from other workers (with `scale: auto`).",
    _WORKER,
)


def down() -> Page:
    """Return what is said of a node that does not answer."""
    page = Page()
    page.add(UP, 0)
    return page


def page_of(counts: Counts, version: str) -> Page:
    """Return a node's metrics; counts: as of schema convoy.counts/3."""
    page = Page()
    page.add(UP, 1)
    page.add(BUILD, 1, label("version", version))
    page.add(TSC, counts["tsc_hz"])
    for key, metric in ACCOUNTING.items():
        page.add(metric, counts["accounting"][key])
    for key, metric in BUFFERS.items():
        if "buffers" in counts:  # an older node says nothing of them
            page.add(metric, counts["buffers"][key])
    for name, port in counts["ports"].items():
        _add_port(page, label("port", name), port)
    for name, next_hop in counts["next_hops"].items():
        labels = label("next_hop", name)
        page.add(NEXT_HOP_INFO, 1, f"{labels},{label('port', next_hop['port'])}")
        page.add(NEXT_HOP_WEIGHT, next_hop.get("weight", 1), labels)
        page.add_histogram(NEXT_HOP_FILL, _sizes(next_hop["sizes"]), FILL, labels)
        for key, value in next_hop.get("compressed", {}).items():
            page.add(NEXT_HOP_COMPRESSED[key], value, labels)
    for key, metric in OPENFLOW.items():
        if "openflow" in counts:  # the node has controllers
            page.add(metric, counts["openflow"][key])
    for key, metric in STANDBY.items():
        value = counts.get("standby", {}).get(key)
        if value is not None:  # the node has a standby, and it is connected
            page.add(metric, value / 1000 if key == "lag_ms" else value)
    add_functions(page, counts["functions"])
    for name, table in counts["flows"].items():
        _add_flows(page, label("table", name), table)
    for i, worker in enumerate(counts["workers"]):
        labels = f"{label('worker', str(i))},{label('core', str(worker['core']))}"
        for key, metric in WORKER.items():
            page.add(metric, worker[key], labels)
        page.add(WORKER_LONGEST, worker["longest_iteration_ns"] / 1e9, labels)
        if "queues" in worker:
            page.add(WORKER_QUEUES, len(worker["queues"]), labels)
            page.add(WORKER_TAKEN, worker["taken"], labels)
    return page


def _sizes(sizes: Mapping[str, int]) -> dict[int, int]:
    return {int(size): frames for size, frames in sizes.items()}


def _add_port(page: Page, labels: str, port: Counts) -> None:
    page.add(PORT_INFO, 1, f"{labels},{label('kind', port['kind'])}")
    for key, metric in PORT.items():
        page.add(metric, port[key], labels)
    for reason, packets in port["drops"].items():
        page.add(PORT_DROPPED, packets, f"{labels},{label('reason', reason)}")
    if "rx_bursts" in port:  # an older node has none
        bursts = _sizes(port["rx_bursts"])
        page.add_histogram(RX_BURST, bursts, BURST, labels, port["rx_frames"])
    for key, metric in LATENCY.items():
        if key in port:
            page.add_latency(metric, port[key], labels)
    device = port.get("device", {})
    if "link" in device:
        page.add(PORT_LINK, int(device["link"] == "up"), labels)
    for key, metric in DEVICE.items():
        if key in device:
            page.add(metric, device[key], labels)
    if "broken_queues" in device:
        page.add(DEVICE_BROKEN, device["broken_queues"], labels)
    if "convoy_sizes" in port:
        page.add_histogram(RX_FILL, _sizes(port["convoy_sizes"]), FILL, labels)
        for reason, frames in port["convoys_refused"].items():
            page.add(REFUSED, frames, f"{labels},{label('reason', reason)}")
        for nfi, convoys in port.get("convoys_by_nfi", {}).items():  # an older node has none
            page.add(BY_NFI, convoys, f"{labels},{label('nfi', nfi)}")


def _add_flows(page: Page, labels: str, table: Counts) -> None:
    for family, most in (("ipv4", table["max"]), ("ipv6", table["max_ipv6"])):
        own = f"{labels},{label('family', family)}"
        page.add(FLOWS, table[f"flows_{family}"], own)
        page.add(FLOWS_MAX, most, own)
    page.add(FLOWS_DENIED, table["denied"], labels)
    page.add(FLOWS_BYTES, table["bytes"], labels)
    for key, metric in FLOWS_SINCE_START.items():
        page.add(metric, table[key], labels)
    for reason, packets in table["drops"].items():
        page.add(FLOWS_DROPPED, packets, f"{labels},{label('reason', reason)}")
