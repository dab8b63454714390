// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "chain/path.h"

#include <rte_cycles.h>

#include "chain/trace_hooks.h"

const char *const cv_drop_reason_names[CV_DROP_REASONS] = {
	[CV_DROP_NO_CHAIN] = "no_chain",
	[CV_DROP_SEGMENTED] = "segmented",
	[CV_DROP_TOO_BIG] = "too_big",
	[CV_DROP_TX_FULL] = "tx_full",
	[CV_DROP_RING_FULL] = "ring_full",
	[CV_DROP_BAD_CONVOY] = "bad_convoy",
	[CV_DROP_OTHERS_CONVOY] = "others_convoy",
	[CV_DROP_UNKNOWN_SENDER] = "unknown_sender",
	[CV_DROP_UNKNOWN_NFI] = "unknown_nfi",
	[CV_DROP_LOOKS_LIKE_CONVOY] = "looks_like_convoy",
	[CV_DROP_LOST_FRAGMENT] = "lost_fragment",
	[CV_DROP_NO_BUFFER] = "no_buffer",
};

static void run_from(const struct cv_path *path, unsigned first, struct cv_path_worker *worker,
	struct cv_burst *burst);

// A part of a burst goes ahead of the rest. Returns the TSC ticks that this took: functions behind
// and ports count them, the one whose burst it was does not.
static uint64_t run_ahead(const struct cv_path *path, unsigned first, struct cv_path_worker *worker,
	struct cv_burst *burst)
{
	const uint64_t then = rte_rdtsc();

	run_from(path, first, worker, burst);
	return rte_rdtsc() - then;
}

static CV_INLINE bool is_output(uint8_t verdict)
{
	return verdict >= CV_OUTPUT(0);
}

static void count(struct cv_nf_counters *counters, uint8_t verdict)
{
	if (CV_LIKELY(verdict <= CV_DROP(CV_DROPS_MAX - 1)))
		cv_count(&counters->drops[verdict - CV_DROP(0)], 1);
	else if (verdict == CV_ABSORBED)
		cv_count(&counters->absorbed, 1);
	else if (verdict == CV_HELD)
		cv_count(&counters->held, 1);
	else
		cv_count(&counters->outputs[verdict - CV_OUTPUT(0)], 1);
}

// Did all packets of a buffer go to one output? Then the buffer went with them.
static bool all_to_one_output(const uint8_t *verdicts, unsigned n)
{
	unsigned differ = 0;

	for (unsigned i = 0; i < n; i++)
		differ |= (unsigned)(verdicts[i] ^ verdicts[0]);
	return differ == 0 && is_output(verdicts[0]);
}

// Counts the packets whose verdict is not CV_NEXT, and frees the buffers that nothing is left in;
// the others move up.
static void sort_out(
	struct cv_burst *burst, const uint8_t *verdicts, struct cv_nf_counters *counters)
{
	struct cv_buffers *buffers = &burst->buffers;
	struct rte_mbuf *empty[CV_BUFFERS_MAX];
	unsigned buffers_kept = 0;
	unsigned empties = 0;
	unsigned kept = 0;
	unsigned at = 0;

	for (unsigned b = 0; b < buffers->n; b++) {
		const unsigned n = buffers->views[b];
		const unsigned before = kept;

		for (unsigned end = at + n; at < end; at++) {
			if (CV_LIKELY(verdicts[at] == CV_NEXT)) {
				burst->views[kept++] = burst->views[at];
				continue;
			}
			count(counters, verdicts[at]);
			burst->bytes -= burst->views[at].len;
		}
		if (kept == before) {
			if (!all_to_one_output(&verdicts[at - n], n))
				empty[empties++] = buffers->buffers[b];
			continue;
		}
		if (CV_UNLIKELY(kept - before == 1 && n > 1))
			cv_buffer_set(buffers->buffers[b], cv_view_packet(&burst->views[before]),
				cv_view_packet_len(&burst->views[before]));
		buffers->views[buffers_kept] = (uint8_t)(kept - before);
		buffers->buffers[buffers_kept++] = buffers->buffers[b];
	}
	buffers->n = (uint16_t)buffers_kept;
	burst->n = (uint16_t)kept;
	burst->whole = false;
	rte_pktmbuf_free_bulk(empty, empties);
}

// Takes the packets that go to a function's outputs through the paths there. Returns the TSC ticks
// that they took there.
static __rte_noinline uint64_t branch(const struct cv_step *step, struct cv_path_worker *worker,
	const struct cv_burst *burst, const uint8_t *verdicts)
{
	struct cv_burst part;
	uint64_t there = 0;
	unsigned outputs = 0; // a bit each

	for (unsigned i = 0; i < burst->n; i++)
		if (is_output(verdicts[i]))
			outputs |= 1u << (verdicts[i] - CV_OUTPUT(0));
	for (unsigned i = 0; outputs >> i != 0; i++) {
		const struct cv_path *to;

		if ((outputs >> i & 1) == 0)
			continue;
		to = step->outputs[i];
		cv_burst_pick(burst, verdicts, CV_OUTPUT(i), &part, worker->pool,
			&worker->ports_counters[burst->views[0].in]);
		if (cv_trace_is_on())
			cv_trace_picked(burst, verdicts, CV_OUTPUT(i), &part);
		for (unsigned at = 0; at < part.n; at++)
			part.views[at].out = to->out;
		if (part.n > 0)
			there += run_ahead(to, 0, worker, &part);
	}
	return there;
}

// What was decided of a burst happens: what goes nowhere on its path is taken out of it. Returns the
// TSC ticks that packets took on other paths.
static uint64_t carry_out(const struct cv_step *step, struct cv_path_worker *worker,
	struct cv_burst *burst, const uint8_t *verdicts)
{
	uint64_t there = 0;

	if (CV_UNLIKELY(step->outputs != NULL))
		there = branch(step, worker, burst, verdicts);
	sort_out(burst, verdicts, step->counters);
	return there;
}

static void drop_reference(void *data, void *buffer)
{
	(void)data;
	rte_pktmbuf_free(buffer);
}

// As rte_pktmbuf_attach(), which takes for granted that a buffer lies behind its mbuf. That of a pool's
// member does not (shared/member.h): it is an external one, whose count lies in the reference's own.
static void attach(struct rte_mbuf *reference, struct rte_mbuf *buffer)
{
	struct rte_mbuf_ext_shared_info *count = reference->buf_addr;

	if (CV_LIKELY(!RTE_MBUF_DIRECT(buffer) ||
		      rte_mbuf_buf_addr(buffer, buffer->pool) == buffer->buf_addr)) {
		rte_pktmbuf_attach(reference, buffer);
		return;
	}
	count->free_cb = drop_reference;
	count->fcb_opaque = buffer;
	rte_mbuf_ext_refcnt_set(count, 1);
	rte_mbuf_refcnt_update(buffer, 1);
	rte_pktmbuf_attach_extbuf(
		reference, buffer->buf_addr, rte_mbuf_iova_get(buffer), buffer->buf_len, count);
	reference->data_off = buffer->data_off;
	reference->data_len = buffer->data_len;
	reference->pkt_len = buffer->pkt_len;
}

// A second reference to a buffer, for some of its packets. NULL: there is no buffer for it.
static struct rte_mbuf *refer_to(struct rte_mbuf *buffer, struct rte_mempool *pool)
{
	struct rte_mbuf *reference = rte_pktmbuf_alloc(pool);

	if (reference != NULL)
		attach(reference, buffer);
	return reference;
}

// A burst that is composed of parts of another one.
struct regrouped {
	struct cv_burst burst;
	uint8_t verdicts[CV_BURST_VIEWS];
};

static void regroup_add(struct regrouped *to, struct rte_mbuf *buffer, const struct cv_view *views,
	const uint8_t *verdicts, unsigned n)
{
	struct cv_burst *burst = &to->burst;

	memcpy(&burst->views[burst->n], views, n * sizeof(*views));
	memcpy(&to->verdicts[burst->n], verdicts, n);
	if (n == 1)
		cv_buffer_set(buffer, cv_view_packet(views), cv_view_packet_len(views));
	burst->n += (uint16_t)n;
	burst->buffers.views[burst->buffers.n] = (uint8_t)n;
	burst->buffers.buffers[burst->buffers.n++] = buffer;
}

static void regroup_done(struct regrouped *regrouped)
{
	regrouped->burst.whole = false;
	cv_burst_measure(&regrouped->burst);
}

// How many of n packets, the first of which was not copied out of their buffer, follow each other
// there.
static unsigned run_of(struct rte_mbuf *const *moved, unsigned n)
{
	unsigned run = 1;

	while (run < n && moved[run] == NULL)
		run++;
	return run;
}

// Some packets of the burst got buffers of their own, while their neighbours stayed: all are put
// into their order again, each part of a shared buffer with a reference to it. What does not fit
// into one burst goes ahead, through the functions behind. Returns the TSC ticks that this took.
static __rte_noinline uint64_t regroup(const struct cv_path *path, unsigned at_step,
	struct cv_path_worker *worker, struct cv_burst *burst, uint8_t *verdicts)
{
	const struct cv_step *step = &path->steps[at_step];
	struct regrouped to = {0};
	struct rte_mbuf *moved[CV_BURST_VIEWS];
	uint64_t ahead = 0;
	unsigned at = 0;

	memcpy(moved, worker->moved, burst->n * sizeof(moved[0])); // functions behind use theirs
	memset(worker->moved, 0, burst->n * sizeof(moved[0]));
	for (unsigned b = 0; b < burst->buffers.n; b++) {
		struct rte_mbuf *shared = burst->buffers.buffers[b];
		unsigned end = at + burst->buffers.views[b];
		bool used = false;

		rte_mbuf_refcnt_update(shared, 1); // it may be needed after its first part is gone
		for (unsigned n; at < end; at += n) {
			struct rte_mbuf *buffer = moved[at];

			n = buffer != NULL ? 1 : run_of(&moved[at], end - at);
			if (buffer == NULL) {
				buffer = used ? refer_to(shared, worker->pool) : shared;
				used = true;
			}
			if (CV_UNLIKELY(buffer == NULL)) {
				cv_count(&worker->ports_counters[burst->views[at].in]
						  .drops[CV_DROP_NO_BUFFER],
					n);
				continue;
			}
			if (to.burst.buffers.n == CV_BUFFERS_MAX) {
				regroup_done(&to);
				ahead += carry_out(step, worker, &to.burst, to.verdicts);
				if (to.burst.n > 0)
					ahead += run_ahead(path, at_step + 1, worker, &to.burst);
				to.burst.n = to.burst.buffers.n = 0;
			}
			regroup_add(&to, buffer, &burst->views[at], &verdicts[at], n);
		}
		rte_pktmbuf_free(shared);
		if (!used)
			rte_pktmbuf_free(shared);
	}
	regroup_done(&to);
	*burst = to.burst;
	memcpy(verdicts, to.verdicts, to.burst.n);
	return ahead;
}

// Some packets are not as long as they were. If some have other buffers than before, the burst and
// its verdicts are not what they were. Returns the TSC ticks that packets took that went ahead.
static __rte_noinline uint64_t after_resizing(const struct cv_path *path, unsigned at_step,
	struct cv_path_worker *worker, struct cv_burst *burst, uint8_t *verdicts)
{
	worker->nf.resized = false;
	if (worker->moved_count > 0) {
		worker->moved_count = 0;
		return regroup(path, at_step, worker, burst, verdicts);
	}
	burst->whole = false;
	cv_burst_measure(burst);
	return 0;
}

static CV_INLINE void run_steps(const struct cv_path *path, unsigned first,
	struct cv_path_worker *worker, struct cv_burst *burst, const bool traced)
{
	uint8_t verdicts[CV_BURST_VIEWS];
	uint64_t then = rte_rdtsc();

	for (unsigned i = first; i < path->length && burst->n > 0; i++) {
		const struct cv_step *step = &path->steps[i];
		const uint64_t came = then;
		const unsigned n = burst->n;
		unsigned others = 0; // that do not go on to the next function
		uint64_t now;

		worker->nf.now = then;
		worker->path = path;
		worker->step = step;
		worker->burst = burst;
		worker->nf.first = burst->views;
		worker->nf.count = burst->n;
		worker->nf.alone = burst->buffers.n == burst->n ? burst->buffers.buffers : NULL;
		cv_count(&step->counters->packets, burst->n);
		cv_count(&step->counters->bytes, burst->bytes);
		if (traced) {
			cv_trace_before(path, i, &worker->nf, burst);
			now = rte_rdtsc();
		}
		for (unsigned at = 0; at < burst->n; at += CV_BURST_MAX)
			others += step->process(step->instance, &worker->nf, burst->views + at,
				verdicts + at, RTE_MIN(burst->n - at, (unsigned)CV_BURST_MAX));
		if (traced)
			cv_trace_after(burst, verdicts, rte_rdtsc() - now);
		if (CV_UNLIKELY(worker->nf.resized)) {
			others += worker->moved_count;
			then += after_resizing(path, i, worker, burst, verdicts);
		}
		if (others > 0)
			then += carry_out(step, worker, burst, verdicts);
		now = rte_rdtsc();
		cv_count(&step->counters->busy_cycles, now - then);
		if (CV_UNLIKELY(worker->draw.on))
			cv_latency_add(&step->counters->latency, now - came, n);
		then = now;
	}
}

static CV_HOT void run_functions_from(const struct cv_path *path, unsigned first,
	struct cv_path_worker *worker, struct cv_burst *burst)
{
	run_steps(path, first, worker, burst, false);
}

static __rte_noinline void run_traced_from(const struct cv_path *path, unsigned first,
	struct cv_path_worker *worker, struct cv_burst *burst)
{
	if (path != NULL && cv_trace_follows())
		run_steps(path, first, worker, burst, true);
	else if (path != NULL)
		run_functions_from(path, first, worker, burst);
	if (burst->n > 0) {
		cv_trace_leave(path, burst);
		worker->leave(worker, path, burst);
	}
}

static void run_from(const struct cv_path *path, unsigned first, struct cv_path_worker *worker,
	struct cv_burst *burst)
{
	if (cv_trace_is_on()) {
		run_traced_from(path, first, worker, burst);
		return;
	}
	if (path != NULL)
		run_functions_from(path, first, worker, burst);
	if (burst->n > 0)
		worker->leave(worker, path, burst);
}

// A burst begins its way, which may lead through other paths.
static CV_INLINE void begin(const struct cv_path *path, unsigned first,
	struct cv_path_worker *worker, struct cv_burst *burst, enum cv_trace_origin origin)
{
	if (cv_trace_is_on()) {
		cv_trace_begin(path, first, burst, origin);
		run_traced_from(path, first, worker, burst);
		cv_trace_end();
		return;
	}
	run_from(path, first, worker, burst);
}

// Those of the waiting packets that go on at the same place as the first one, as a burst.
static void take_waiting(struct cv_path_worker *worker, struct cv_burst *burst)
{
	const struct cv_waiting *waiting = worker->waiting + worker->waiting_first;
	const struct cv_waiting first = waiting[0];
	const unsigned count = worker->waiting_count - worker->waiting_first;
	unsigned n = 0;

	while (n < count && n < CV_BUFFERS_MAX && waiting[n].packet.path == first.packet.path &&
		waiting[n].step == first.step) {
		burst->views[n] = cv_nf_held_view(&waiting[n].packet);
		burst->buffers.buffers[n] = waiting[n].packet.buffer;
		burst->buffers.views[n] = 1;
		n++;
	}
	burst->n = burst->buffers.n = (uint16_t)n;
	burst->whole = true;
	cv_burst_measure(burst);
	worker->waiting_first += (uint16_t)n;
	// Seldom, so that each packet is moved twice at most.
	if (n == count || worker->waiting_first >= CV_WAITING_MAX / 2) {
		memmove(worker->waiting, waiting + n, (count - n) * sizeof(waiting[0]));
		worker->waiting_first = 0;
		worker->waiting_count = (uint16_t)(count - n);
	}
}

// What functions made or released goes on its way. Functions behind may make more, those behind
// them again: each time there are fewer left.
static __rte_noinline void run_waiting(struct cv_path_worker *worker)
{
	struct cv_burst burst;

	while (worker->waiting_count > 0) {
		const struct cv_waiting *first = &worker->waiting[worker->waiting_first];
		const struct cv_path *path = first->packet.path;
		const unsigned step = first->step;

		take_waiting(worker, &burst);
		begin(path, step, worker, &burst, CV_TRACE_FUNCTION);
	}
}

void cv_path_run_functions(
	const struct cv_path *path, struct cv_path_worker *worker, struct cv_burst *burst)
{
	run_functions_from(path, 0, worker, burst);
}

void cv_path_run(const struct cv_path *path, struct cv_path_worker *worker, struct cv_burst *burst)
{
	if (CV_UNLIKELY(worker->draw.on))
		cv_latency_received(&worker->draw, worker->ports_counters, burst);
	begin(path, 0, worker, burst, CV_TRACE_RECEIVED);
	if (CV_UNLIKELY(worker->waiting_count > 0))
		run_waiting(worker);
}

void cv_path_tick(const struct cv_path *path, const struct cv_step *step,
	void (*tick)(void *instance, struct cv_nf_worker *worker), struct cv_path_worker *worker)
{
	worker->nf.now = rte_rdtsc();
	worker->path = path;
	worker->step = step;
	worker->burst = NULL;
	worker->nf.alone = NULL;
	tick(step->instance, &worker->nf);
	if (worker->waiting_count > 0)
		run_waiting(worker);
}
