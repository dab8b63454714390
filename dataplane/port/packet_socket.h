// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What DPDK's driver does not ask for its packet sockets (packet(7)), the queues of an af_packet
// port. A program that is linked with this has a setsockopt() of its own, in front of the C
// library's, which does.
//
// Groups (PACKET_FANOUT), over which the kernel spreads the packets of an interface: the driver
// makes up a group's number of its process's id and the interface's index. In a network namespace
// that need not be the only one of that number: on another interface it is refused ("could not set
// PACKET_FANOUT"), and on the same one (process 1 of two containers) each program would get a part
// of the packets. So the first socket of a group gets a number from the kernel that nobody has
// (Linux 4.12), and those that ask for the same number after it, in the same thread, follow it.
//
// Send buffers: a frame counts towards its socket's until who gets it has read it, on a veth. By
// default (net.core.wmem_default) that is 90 to 250 frames, and further ones wait, however long the
// ring. A ring to send from (PACKET_TX_RING) gets a buffer for all of its slots, or, without
// CAP_NET_ADMIN, as large a one as anybody may have (net.core.wmem_max).
#ifndef CV_PACKET_SOCKET_H
#define CV_PACKET_SOCKET_H

// The next packet socket of this thread begins a group: called before a port's are opened.
void cv_packet_socket_begin(void);

#endif
