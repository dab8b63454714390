// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Groups of packet sockets (PACKET_FANOUT, packet(7)): the queues of an af_packet port, over which
// the kernel spreads the packets of an interface. DPDK's driver makes up a group's number of its
// process's id and the interface's index. In a network namespace that need not be the only one of
// that number: on another interface it is refused ("could not set PACKET_FANOUT"), and on the same
// one (process 1 of two containers) each program would get a part of the packets.
//
// So a program that is linked with this has a setsockopt() of its own, in front of the C library's:
// the first socket of a group gets a number from the kernel that nobody has (Linux 4.12), and those
// that ask for the same number after it, in the same thread, follow it.
#ifndef CV_FANOUT_H
#define CV_FANOUT_H

// The next packet socket of this thread begins a group: called before a port's are opened.
void cv_fanout_begin(void);

#endif
