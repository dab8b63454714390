# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
"""The addresses of benchmark traffic, and of the ports that it goes through."""

from ipaddress import IPv4Network

LEFT_MAC = "02:00:00:00:0c:01"
RIGHT_MAC = "02:00:00:00:0c:02"
TESTER_MAC = "02:00:00:00:00:01"
# Addresses that RFC 2544 sets aside for benchmarks. Destinations: the first 1,024 of them are
# what a router of up to 1,024 routes knows; a larger one knows all.
SOURCES = IPv4Network("198.18.0.0/16")
DESTINATIONS = IPv4Network("198.19.0.0/16")
FEW = IPv4Network("198.19.0.0/22")
SERVICE = FEW[1]  # of a balancer
# Behind stateful functions there are more hosts, and addresses that these get outside.
INSIDE = IPv4Network("100.64.0.0/10")
OUTSIDE = IPv4Network("203.0.113.0/24")
DPORT = 4096  # what the last, allowing rule of a firewall asks for
