// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The contract of a stateful function. It decides once, on the first packet of a flow; the flow path
// applies what it decided to every packet of the flow and of its answers. Consecutive stateful
// functions of a chain share one look-up and one rewrite.
//
// In all of these calls, and in tick(), a function may originate packets (chain/nf_worker.h): they go
// on behind the last of the functions that share the look-up. It may resize packets in wrap() alone,
// and hold none.
//
// A flow has two directions: forward, that of its first packet, and reply. What a function rewrites
// forward is undone in replies: nobody says it twice. TCP's states, ICMP errors about a flow (their
// inner packet is rewritten, too), non-first fragments, checksums and time-outs are the flow path's.
#ifndef CV_FLOW_H
#define CV_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_byteorder.h>

#include "chain/nf.h"
#include "packet/view.h"

#define CV_FLOW_SLOT_MAX 16 // bytes that a function may keep for each flow
#define CV_FLOW_SLOTS_MAX 32 // bytes of all functions that share a look-up, each rounded up to 8

struct cv_flow_zone;

union cv_flow_address {
	rte_be32_t ipv4;
	uint8_t ipv6[16];
};

// What a flow is known by. Protocols without ports have 0 for them, with two exceptions. ICMP's
// echo, timestamp and information messages have their identifier as sport in requests and as dport
// in answers; the other port is 0. Any other ICMP message has its type and code as both. Only ports
// and identifiers may be changed.
struct cv_flow_tuple {
	uint8_t family; // 4 or 6
	uint8_t proto; // behind IPv6's extension headers
	rte_be16_t sport, dport;
	union cv_flow_address src, dst;
};

enum cv_flow_direction { CV_FLOW_FORWARD, CV_FLOW_REPLY };

// Why a function is asked.
enum cv_flow_why {
	CV_FLOW_NEW, // the flow's first packet: the slot is zero
	// The function's generation is another than when it decided. The slot is as it left it. A
	// flow that is still allowed should get what it had.
	CV_FLOW_CHANGED,
	// Another function of the same flow changed: repeat what was decided, from the slot, and
	// count nothing. Only a tuple that is not what it was is a reason to decide anew.
	CV_FLOW_REPEAT,
};

// The packet that decide() is asked about.
struct cv_flow_packet {
	const struct cv_view *view; // its bytes as it came to the first of the functions
	uint16_t l4; // offset of what follows the IP headers, of view->data
	uint8_t tcp_flags; // of TCP, else 0
	uint8_t direction; // enum cv_flow_direction
	uint8_t why; // enum cv_flow_why
	bool looks; // for cv_flow_is_free()
	struct cv_flow_zone *zone; // for cv_flow_is_free()
};

// A packet that follow() is shown.
struct cv_flow_followed {
	const struct cv_view *view; // as above
	void *slot;
	uint16_t l4; // as above
	uint16_t bytes; // of the IP packet
	uint8_t tcp_flags; // as above
	uint8_t direction; // as above
};

// What is changed beside the tuple, in the packets of one direction.
#define CV_FLOW_SET_DST_MAC 1
#define CV_FLOW_SET_SRC_MAC 2
#define CV_FLOW_SET_DSCP 4
#define CV_FLOW_SET_VLAN 8 // of the outermost tag; a packet without one stays so
#define CV_FLOW_SET_OUT 16
#define CV_FLOW_SET_WRAP 32 // wrap() is called with each packet

struct cv_flow_way {
	uint8_t set; // CV_FLOW_SET_*, or 0
	uint8_t dscp; // 0 to 63
	uint8_t out; // the port that packets leave by, its index
	uint8_t wrapper; // for the flow path: whose wrap() is called, 1 + its index
	uint16_t vlan; // 0 to 4095
	uint16_t wrap; // what wrap() is told
	uint8_t dst_mac[6];
	uint8_t src_mac[6];
};

// What becomes of a flow. decide() is shown what the functions before it made of this, and changes
// it further: where two set the same, the later one's holds.
struct cv_flow_actions {
	struct cv_flow_tuple tuple; // of forward packets; family and proto stay as they are
	struct cv_flow_way way[2]; // by direction
	// Call follow() for each packet of the flow. Each function sets it for itself: it is false
	// when decide() is called.
	bool follow;
	// A drop is not remembered: decide() is asked again for the flow's next packet.
	bool once;
};

// A flow that decide_all() is asked about: what decide() gets of it.
struct cv_flow_opening {
	const struct cv_flow_packet *packet;
	struct cv_flow_actions *actions;
	void *slot;
};

// Why a packet is of no flow.
enum cv_flow_other {
	CV_FLOW_NON_IP, // ARP, LLDP ...
	CV_FLOW_BAD_HEADER, // lengths do not add up, ports are cut off, tags nobody looks behind
	CV_FLOW_UNRELATED, // an ICMP error about no flow that is known
};

// What becomes of answers, where several workers share the flows of a chain.
enum cv_flow_answers {
	CV_FLOW_ANSWERS_APART, // each direction may be a flow of its own, on any worker
	CV_FLOW_ANSWERS_MEET, // answers must come to the worker of their flow
	// They must, and home() says to which one: the function rewrites addresses or ports.
	CV_FLOW_ANSWERS_REWRITTEN,
};

// Which TCP packets the flow path drops for their sequence numbers (flow/window.h).
enum cv_flow_windows {
	CV_FLOW_WINDOWS_NONE,
	CV_FLOW_WINDOWS_RESETS, // resets that their receiver would not believe
	CV_FLOW_WINDOWS_ALL, // and all that it would not accept
};

// Workers that share flows (flow/home.h).
struct cv_flow_homes;

// Not one worker, but what says which one.
enum cv_flow_home_by {
	CV_FLOW_HOME_BY_SOURCE = UINT8_MAX - 2, // a hash of its address
	CV_FLOW_HOME_BY_DESTINATION,
	CV_FLOW_HOME_BY_TUPLE, // a hash of both ends: nothing is rewritten
};

// Whether flows of a process that was killed may come back while the worker runs.
enum cv_flow_later {
	CV_FLOW_AT_ONCE, // no: before
	CV_FLOW_LATER_ALONE, // yes; until all have, no new flow is decided on
	CV_FLOW_LATER, // yes: decide() needs to know of no flow that is still to come
};

// What an instance knows of flows beside their slots, in a file of memory that goes along to an instance
// of another process (docs/handover.md): one file for all workers that have some.
struct cv_flow_kept {
	// What both must have in common for the same bytes to mean the same: a digest.
	uint64_t (*layout)(const void *instance);

	// The file, which stays the instance's. Packets flow. -1: it does not go along.
	int (*give)(void *instance);

	// What is known beside the file goes into it. The worker stands still.
	void (*freeze)(void *instance);

	// The other process, in this order, before the instance sees a packet.

	// A file of the same layout, which still changes, becomes the instance's own, also after an error.
	// 0; or a negative errno with error set: the instance is to be destroyed.
	int (*take)(void *instance, int fd, struct cv_error *error);

	// Whether a flow's slot leads to nothing outside of what was taken. NULL: it leads nowhere.
	bool (*leads_inside)(const void *instance, const void *slot);

	// Whether what came is whole, once it was frozen: the instance goes on with it. As take(). Nothing
	// is written to the file: the process before may go on.
	int (*taken)(void *instance, struct cv_error *error);

	// Of a process that is killed nothing can be asked. All of these are there, or none (docs/handover.md).

	// The file, which stays the instance's, and from now on says at any time what restore() needs.
	// -1: there is none.
	int (*store)(void *instance);

	// Another process, before the instance sees a packet: its flows are made anew, one by one, from
	// those of one that was killed. A file of the same layout, which stays the caller's, and in which
	// anything may be. 0, or a negative errno with error set: no flow is restored.
	int (*restore_begin)(void *instance, int fd, struct cv_error *error);

	// A flow that decide() let pass there, as it was shown the tuple, which becomes what decide() made
	// of it; the slot, as it was there, becomes this instance's. False: these do not fit each other,
	// or there is no room; nothing is kept of the flow.
	bool (*restore)(void *instance, struct cv_nf_worker *worker, struct cv_flow_tuple *tuple,
		void *slot);

	// There are no more. Workers do not run, or stand still.
	void (*restore_end)(void *instance, struct cv_nf_worker *worker);

	// Whether restore() may also be called while packets flow, by the worker whose flow it is.
	enum cv_flow_later later;
};

struct cv_nf_flow {
	// Bytes of each flow's slot, 0 to CV_FLOW_SLOT_MAX. They are aligned to 8. Slots of functions
	// with follow() are in the line that a packet reads anyway, as far as they fit.
	unsigned slot_bytes;

	// An instance of another process goes on with the slots of this one's flows (CV_FLOW_CHANGED). It
	// needs to know nothing else of them, or gets it. Neither: its flows stay. any_slot: whatever a
	// slot holds means something, so flows of a process that was killed come back without restore().
	bool in_slots, any_slot;
	const struct cv_flow_kept *kept;

	// Whether this instance is stateful: process() is never called then. NULL: always.
	bool (*is_stateful)(const void *instance);

	// Decides on a flow: CV_NEXT, CV_DROP(reason), or CV_OUTPUT(output); with actions->once also
	// CV_ABSORBED, for a packet that was for the function itself. Anything but CV_NEXT
	// holds for forward packets and ends the functions' turn: those behind are not asked. A
	// function that drops keeps nothing of the flow, unless it was asked with another reason
	// than CV_FLOW_NEW: then ended() follows. Replies to a flow that leaves by an output are of
	// this flow only if it is rewritten.
	uint8_t (*decide)(void *instance, struct cv_nf_worker *worker,
		const struct cv_flow_packet *packet, struct cv_flow_actions *actions, void *slot);

	// The same of first packets of n flows at once, at least one, all of them CV_FLOW_NEW: to read
	// memory for all of them together. NULL: decide() is called for each.
	void (*decide_all)(void *instance, struct cv_nf_worker *worker,
		const struct cv_flow_opening *openings, uint8_t *verdicts, unsigned n);

	// Tuples of packets that came with this one, of no flow that is known: n <= CV_BURST_MAX, at
	// least one, as they come to the first of the functions. Asks for memory that decide() will
	// read, and changes nothing. NULL: decide() reads little.
	void (*expect)(void *instance, struct cv_nf_worker *worker,
		const struct cv_flow_tuple *tuples, unsigned n);

	// Sees packets of flows that it asked to follow, in their order, before they are rewritten: n <=
	// CV_BURST_MAX, at least one. verdicts[i] is CV_NEXT, and becomes what is to be of packets[i]
	// alone, as above. Returns how many are not CV_NEXT. One that leaves by an output here leaves as
	// it came. NULL: it never asks.
	unsigned (*follow)(void *instance, struct cv_nf_worker *worker,
		const struct cv_flow_followed *packets, uint8_t *verdicts, unsigned n);

	// Puts a packet, rewritten as its flow is, into what its way says; the view is that of the outer
	// packet afterwards. MAC addresses, VLAN and port out are still those that it came with, and are
	// set then. A verdict: CV_NEXT or CV_DROP(reason). NULL: it never asks.
	uint8_t (*wrap)(
		void *instance, struct cv_nf_worker *worker, struct cv_view *view, uint16_t wrap);

	// Once for each flow that decide() let pass or gave an output: it timed out, another function denied it,
	// there was no room for it, or it was invalidated. NULL: nothing is given back.
	void (*ended)(void *instance, struct cv_nf_worker *worker, const void *slot);

	// Slots of n <= CV_BURST_MAX flows that end now; those that the function was not asked about are
	// zero. Asks for memory that ended() will read, and changes nothing. NULL: it reads little.
	void (*expect_ended)(
		void *instance, struct cv_nf_worker *worker, const void *const *slots, unsigned n);

	// The verdict of a packet that is of no flow, CV_ABSORBED among them. NULL: CV_NEXT.
	uint8_t (*other)(void *instance, struct cv_nf_worker *worker, const struct cv_view *view,
		enum cv_flow_other why);

	// Where the instance's generation stands, for as long as it lives. Written with release
	// order, after what decide() reads was changed; any other value than before invalidates what
	// this instance decided, and nothing else. NULL: it never changes.
	const uint32_t *(*generation)(const void *instance);

	// Of connections whose SYN was seen; what one function asks for holds for all that share the
	// look-up. Another instance asks for the same. NULL: CV_FLOW_WINDOWS_NONE.
	enum cv_flow_windows (*windows)(const void *instance);

	// NULL: CV_FLOW_ANSWERS_APART.
	enum cv_flow_answers (*answers)(const void *instance);

	// Which worker keeps the flow of a packet that came in by a port, or what says it, an enum
	// cv_flow_home_by: the same for forward packets as they come in and for answers as they come
	// in. Called for each packet, by any worker, of instances with CV_FLOW_ANSWERS_REWRITTEN;
	// else NULL.
	uint8_t (*home)(const void *instance, const struct cv_flow_homes *homes,
		const struct cv_flow_tuple *tuple, uint8_t in);
};

// The worker that keeps what belongs to an address: CV_FLOW_HOME_BY_SOURCE says that of the source's.
uint8_t cv_flow_home_of_address(
	const struct cv_flow_homes *homes, uint8_t family, const union cv_flow_address *address);

// The workers that share the flows of a packet; NULL: there is but one. For decide() only.
const struct cv_flow_homes *cv_flow_homes_of(const struct cv_flow_packet *packet);

// Whether this worker's packets are traced (chain/trace.h), and what an instance owes a decision to, for
// the trace: struct cv_nf's in_words() says it. For decide() only, with its packet.
bool cv_flow_is_traced(void);
void cv_flow_because(const struct cv_flow_packet *packet, const void *instance,
	const struct cv_nf_because *because);

// Whether no flow of this worker is answered as one would be whose forward packets leave with this
// tuple: what a NAT asks before it takes a port. For decide() only, with its worker and packet. As
// nearly always it is so, nobody waits for the memory that says it: the first answer is yes. If that
// was wrong, ended() is called, and decide() once more with a slot of zeros.
bool cv_flow_is_free(const struct cv_flow_packet *packet, const struct cv_flow_tuple *tuple);

#endif
