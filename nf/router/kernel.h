// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A network namespace of the kernel whose routes are the router's. Each port with addresses has an
// interface there (a tap) of the same name, with the port's MAC address, MTU and addresses: routing
// daemons run on it as they do on any. Packets to the router that it does not answer itself come out
// of that interface, and what the kernel sends by it leaves by the port. Neighbours are the router's
// business: the interface asks for none (NOARP).
//
//   kernel.c          the namespace: interfaces and sockets are made there, before rights are given up
//   kernel_thread.c   what is read and written, in the node's thread for sockets
//   kernel_worker.c   what workers hand over and take over, by rings
#ifndef CV_KERNEL_H
#define CV_KERNEL_H

#include "nf/router/frame_ring.h"
#include "nf/router/network.h"
#include "nf/router/route_mirror.h"
#include "socket/loop.h"

#define CV_KERNEL_FRAMES 256u // that a ring between a worker and the kernel holds
#define CV_KERNEL_WAITING 64u // frames of the kernel's that wait for neighbours
#define CV_KERNEL_READ_BYTES 65536u // the kernel's messages come in no larger pieces

// A port's interface.
struct cv_kernel_tap {
	struct cv_loop_watch watch; // fd -1: the port has none
	struct cv_kernel *kernel;
	uint8_t port;
	int interface; // index
};

struct cv_kernel {
	struct cv_network *network;
	struct cv_route_mirror *mirror;
	const char *name; // of the router, for messages
	char *netns; // as it was given
	struct cv_kernel_tap tap[CV_PORTS_MAX];
	bool attached; // the thread is held

	// Of the thread.
	struct cv_loop_watch changes, dump; // sockets
	struct cv_loop_watch wake; // an eventfd: workers have handed something over
	struct cv_loop_timer change_timer, dump_timer;
	bool dumps, wants_dump, interrupted;
	uint32_t sequence; // of the dump that is read
	uint64_t dump_began_ns, next_dump_ns; // CLOCK_MONOTONIC
	uint64_t refused_said;
	uint8_t *buffer; // CV_KERNEL_READ_BYTES

	// Between it and workers.
	struct cv_frame_ring *up; // of each worker: to the kernel
	struct cv_frame_ring down; // to the worker that sends
	uint32_t asleep; // the thread waits for wake
	uint32_t sender; // which worker sends; UINT32_MAX: none yet
	struct cv_frame_ring waiting; // the sender's: for their neighbours

	// Read by others.
	uint64_t dumps_done, overruns, notices; // of the thread
	uint64_t not_sent; // frames of the kernel's, dropped by thread
};

// Takes over the mirror. Returns NULL: no memory.
struct cv_kernel *cv_kernel_create(struct cv_network *network, struct cv_route_mirror *mirror,
	const char *netns, const struct cv_nf_env *env);
void cv_kernel_destroy(struct cv_kernel *kernel);

// Makes the interfaces and begins to mirror. 0, or a negative errno with error set.
int cv_kernel_attach(struct cv_kernel *kernel, const struct cv_nf_env *env, struct cv_error *error);

// Adds what is known to the function's own info.
void cv_kernel_info(const struct cv_kernel *kernel, json_t *info);

// kernel_thread.c: begins, and ends, in the thread.
void cv_kernel_thread_begin(void *kernel);
void cv_kernel_thread_end(void *kernel);

// kernel_worker.c: hands a packet to the kernel, if it has an interface for its port; else the verdict
// is the other one.
uint8_t cv_kernel_punt(struct cv_router_packet packet, uint8_t otherwise);
// Sends what the kernel has sent. due: what waits for a neighbour is looked at again.
void cv_kernel_send(struct cv_network *network, struct cv_nf_worker *worker, bool due);

#endif
