// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The contract of a network function: it sees a burst of packet views and gives each a verdict. What
// more it may do, to resize packets, to make some and to keep some, is in chain/nf_worker.h.
// Receiving, sending, freeing and counting packets is the path's work (path.h), so a function is the
// same whether its packets have buffers of their own or lie in a convoy.
#ifndef CV_NF_H
#define CV_NF_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "chain/nf_worker.h"
#include "config/params.h"
#include "packet/error.h"
#include "packet/prefix.h"
#include "packet/view.h"

#define CV_BURST_MAX 64 // packets that one process() call sees at most
#define CV_WORKERS_MAX 64
#define CV_PORTS_MAX 64
#define CV_DROPS_MAX 23 // drop reasons that one function may name
#define CV_OUTPUTS_MAX 8 // outputs that one function may have beside the next function

// A verdict.
#define CV_NEXT 0 // on, to the next function
#define CV_DROP(reason) ((uint8_t)(1 + (reason))) // by its index in the function's list
#define CV_ABSORBED ((uint8_t)0x20) // the function was who it was sent to; ends here
#define CV_HELD ((uint8_t)0x21) // cv_nf_hold() has it
#define CV_OUTPUT(output) ((uint8_t)(0x40 + (output))) // to the chain at this output

// What a function may ask about the node. Owned by the node, valid during the call only.
struct cv_nf_env {
	const char *name; // of this instance, for error texts
	unsigned workers; // of the node, by index; process() may be called by any of them
	uint64_t runners; // those that have it in a path, a bit each; 0: all
	int socket; // NUMA node to allocate on, -1: any
	const char *const *ports; // names by index
	unsigned ports_count;
	const uint8_t (*macs)[6]; // of the ports, by index; start() only
	const uint16_t *mtus; // of the ports, bytes of layer 3; start() only
	const char *const *outputs; // names by index: CV_OUTPUT(index) goes there
	unsigned outputs_count; // at most CV_OUTPUTS_MAX
	// The instance that this one is to take the place of, of the same type; NULL: none. Workers
	// run it meanwhile, and go on with it if this one is refused.
	void *running;
};

// The index of the port called name, or -1.
int cv_nf_env_port(const struct cv_nf_env *env, const char *name);

// The workers that run the function, a bit each.
static inline uint64_t cv_nf_env_runners(const struct cv_nf_env *env)
{
	return env->runners != 0 ? env->runners : UINT64_MAX >> (CV_WORKERS_MAX - env->workers);
}

// The index of the output called name, or -1.
int cv_nf_env_output(const struct cv_nf_env *env, const char *name);

struct cv_nf_flow;

// An address of a network that a function takes for its own.
struct cv_nf_claim {
	struct cv_address address;
	bool shared; // with another function, as its user said
};

// What of a function's configuration or state decided on a packet, for a trace: for the function to say
// and to read. row 0: nothing in particular.
struct cv_nf_because {
	uint32_t row;
	uint8_t more[20];
};

struct cv_nf {
	const char *name; // the type, as descriptors write it
	const char *summary; // one line for people
	const char *const *drops; // names of the drop reasons, NULL at the end
	bool branches; // it may have outputs, which lead to other chains
	// Both directions of an exchange must come to one worker, though it keeps no flows. Of functions
	// that do, `flow` says it.
	bool answers_meet;

	// The parameters, and the size of the struct that they are read into. Python's model of the
	// function and its reference are made from this table (make generated).
	const struct cv_param *params;
	size_t config_size;

	// Makes an instance of what was read: config is that struct, valid during the call only.
	// Returns NULL, with error set unless it is for want of memory. Called before any port
	// is opened, from one thread, after the EAL has started. NULL: the instance is the struct itself.
	void *(*create)(const void *config, const struct cv_nf_env *env, struct cv_error *error);
	// Writes the addresses that it takes for its own: room for max of them. Returns how many
	// there are. NULL: none. Of two functions with the same one the node makes neither.
	size_t (*claims)(const void *instance, struct cv_nf_claim *claims, size_t max);
	// Once, after all ports are open and before the first process(): what create() could not
	// know. May be NULL: call cv_nf_start().
	void (*start)(void *instance, const struct cv_nf_env *env);
	// Once, behind start(), while the node still has all its rights: what the instance needs of the
	// machine beside packets. 0, or a negative errno with error set. May be NULL.
	int (*attach)(void *instance, const struct cv_nf_env *env, struct cv_error *error);
	void (*destroy)(void *instance); // NULL where create is

	// Reconfiguring: packets flow while another instance is made of other parameters; between two
	// poll iterations each worker goes over to it, and the one before is destroyed. A function
	// that keeps nothing of packets needs nothing more. What others keep goes over in one of
	// these ways:
	// - create() shares it with env->running (what both own counts its owners, for either may be
	//   destroyed first), or refuses what cannot change;
	// - start(), which comes just before, copies it, if workers may change it meanwhile;
	// - inherit() takes it, once no worker uses the instance before any more. NULL: nothing.
	// A stateful function's flows are decided again, with their slots as they are (CV_FLOW_CHANGED).
	void (*inherit)(void *instance, void *before);

	// Gives n <= CV_BURST_MAX packets (0 is allowed) a verdict each: verdict[i] for view[i].
	// Returns how many verdicts are not CV_NEXT. May rewrite the packets' bytes in place and
	// their view's out; nothing else of the view but by the calls of nf_worker.h. Called by
	// several workers at once.
	uint16_t (*process)(void *instance, struct cv_nf_worker *worker, struct cv_view *view,
		uint8_t *verdict, uint16_t n);

	// What makes it stateful (flow/flow.h); NULL: it is not, and has a process(). Both may be
	// there: then the instance says which it is.
	const struct cv_nf_flow *flow;

	// Says what process() will owe its verdict of a packet to. By the worker, just before, and of
	// packets alone that are traced (chain/trace.h): it changes and counts nothing. *because is
	// zero. May be NULL.
	void (*explain)(const void *instance, const struct cv_nf_worker *worker,
		const struct cv_view *view, struct cv_nf_because *because);
	// The same in words, which are cut at room bytes: "rule 3 (web)". By any thread; because is
	// one of this instance. There where explain() is, or where flow.h's cv_flow_because() is called.
	void (*in_words)(const void *instance, const struct cv_nf_env *env,
		const struct cv_nf_because *because, char *words, size_t room);

	// Whether packets that came by a port become longer: they come in a buffer each then, which has
	// room, and are not copied out of one that several share. NULL: none do, or few.
	bool (*grows)(const void *instance, unsigned in);

	// Once in each poll iteration of each worker that runs the function: timers, in bounded steps.
	// May be NULL.
	void (*tick)(void *instance, struct cv_nf_worker *worker);

	// What it keeps of packets beside flows, in words for people ("learned stations"), and a node does
	// not hand over to another process: that begins without. NULL: nothing that anybody misses.
	const char *keeps;
	bool keeps_unique; // no process may begin without it while peers know the one before
	bool keeps_owners; // it says whose addresses are: without it flows of the node would be others'
	bool (*keeps_any)(const void *instance); // whether this instance keeps it; NULL: each does

	// What only this function knows (rule hits, table sizes), as a new JSON object; may be NULL.
	// Called while packets flow: reads counters with relaxed atomics.
	json_t *(*info)(const void *instance);
};

// Every function, NULL at the end. nf/ defines it: one line there registers a function.
extern const struct cv_nf *const cv_nfs[];

// The function type called name, or NULL.
const struct cv_nf *cv_nf_find(const char *name);

// The Debian package without which a type called name was left out when this was built, or NULL.
const char *cv_nf_left_out(const char *name);

// What an instance keeps that does not go to another process, or NULL.
static inline const char *cv_nf_keeps(const struct cv_nf *nf, const void *instance)
{
	return nf->keeps_any == NULL || nf->keeps_any(instance) ? nf->keeps : NULL;
}

static inline void cv_nf_start(const struct cv_nf *nf, void *instance, const struct cv_nf_env *env)
{
	if (nf->start != NULL)
		nf->start(instance, env);
}

// For a function that makes all packets longer.
static inline bool cv_nf_always_grows(const void *instance, unsigned in)
{
	(void)instance;
	(void)in;
	return true;
}

// Reads a configuration, an object, and makes an instance. Returns NULL with error set. The
// environment is the create() call's.
void *cv_nf_create(const struct cv_nf *nf, const json_t *config, const struct cv_nf_env *env,
	struct cv_error *error);
void cv_nf_destroy(const struct cv_nf *nf, void *instance);

// All types with their parameters and drop reasons, as a new JSON array.
json_t *cv_nf_describe(void);

#endif
