// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What functions may do with their packets (nf_worker.h), against a model that knows nothing of
// buffers: functions prepend, append, cut at both ends, keep, give back, drop, absorb, send to an
// output and make packets at random, of bursts in which some packets share a buffer. Whatever they
// do, each packet that comes out has the model's bytes and they come in their order; the
// packets are conserved; every buffer is back in the pool; no time is counted twice.
#include "tests/support/test_packets.h"

#include "chain/path.h"
#include "chain/rx.h"
#include "convoy/outer.h"
#include "tests/support/test_eal.h"

#define PACKETS 4000
#define STEPS 4
#define ROUNDS 60
#define HEADER 18u // of each packet: Ethernet, and its number
#define HELD_MAX 20
#define IN 2

static struct rte_mempool *pool;
static struct rte_mempool *apart; // whose buffers do not lie behind their mbufs

static unsigned below(unsigned n)
{
	return (unsigned)rand() % n;
}

// What a packet should look like.
struct model {
	uint8_t bytes[2048];
	uint32_t len;
	bool gone; // dropped or absorbed
	bool late; // kept for some time, or sent by another path
	bool there; // came out
};

// A function: how likely each of its acts is, of 100, and what it keeps.
struct actor {
	unsigned resize, drop, absorb, hold, output, originate;
	struct cv_held held[HELD_MAX];
	unsigned held_count;
};

static struct model models[PACKETS];
static unsigned made; // packets there are
static unsigned last_out; // number of the last packet that was not late
static unsigned came_out, absorbed, dropped;

static uint32_t number_of(const uint8_t *data)
{
	uint32_t number;

	memcpy(&number, data + 14, sizeof(number));
	return number;
}

// A new packet's model.
static struct model *add_model(unsigned len)
{
	struct model *model = &models[made];

	assert_true(made < PACKETS);
	*model = (struct model){.len = len};
	for (unsigned i = 0; i < len; i++)
		model->bytes[i] = (uint8_t)(made * 7 + i);
	memcpy(model->bytes + 12, (uint8_t[]){0x88, 0xb5}, 2); // an experiment's EtherType
	memcpy(model->bytes + 14, &made, sizeof(made));
	made++;
	return model;
}

static void fill(uint8_t *at, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		at[i] = (uint8_t)rand();
}

static void grow(struct cv_nf_worker *worker, struct cv_view *view, struct model *model)
{
	uint16_t bytes = (uint16_t)(1 + below(below(8) ? 60 : 700));
	uint8_t news[700];
	uint16_t front;
	uint8_t *at;

	fill(news, bytes);
	if (model->len + bytes > sizeof(model->bytes))
		return;
	front = (uint16_t)(below(3) == 0 ? 0 : below(2) ? bytes : below(bytes));
	at = front == bytes ? cv_nf_prepend(worker, view, bytes)
	     : front == 0   ? cv_nf_append(worker, view, bytes)
			    : cv_nf_enclose(worker, view, front, bytes - front);
	if (at == NULL)
		return;
	assert_ptr_equal(at, front == 0 ? view->data + view->len - bytes : view->data);
	memmove(view->data, view->data + front, HEADER);
	memcpy(view->data + HEADER, news, front);
	memcpy(view->data + view->len - (bytes - front), news + front, bytes - front);
	memmove(model->bytes + HEADER + front, model->bytes + HEADER, model->len - HEADER);
	memcpy(model->bytes + HEADER, news, front);
	model->len += front;
	memcpy(model->bytes + model->len, news + front, bytes - front);
	model->len += bytes - front;
	cv_view_parse(view);
}

static void shrink(struct cv_nf_worker *worker, struct cv_view *view, struct model *model)
{
	uint16_t bytes = (uint16_t)(1 + below(30));

	if (model->len < HEADER + bytes) {
		assert_false(cv_nf_trim(worker, view, (uint16_t)(model->len - CV_ETHER_LEN + 1)));
		assert_false(cv_nf_adj(worker, view, (uint16_t)(model->len - CV_ETHER_LEN + 1)));
		return;
	}
	if (below(2)) {
		memmove(view->data + bytes, view->data, HEADER);
		assert_true(cv_nf_adj(worker, view, bytes));
		memmove(model->bytes + HEADER, model->bytes + HEADER + bytes,
			model->len - HEADER - bytes);
	} else {
		assert_true(cv_nf_trim(worker, view, bytes));
	}
	model->len -= bytes;
}

static void originate(struct cv_nf_worker *worker)
{
	uint16_t len = (uint16_t)(HEADER + below(100));
	uint8_t *data =
		cv_nf_originate(worker, len, IN, 1, below(2) ? CV_NF_BEHIND : CV_NF_BY_PORT);
	struct model *model;

	if (data == NULL)
		return;
	for (unsigned i = 0; i < len; i++)
		assert_int_equal(data[i], 0);
	model = add_model(len);
	model->late = true;
	memcpy(data, model->bytes, len);
}

static void give_back(struct cv_nf_worker *worker, struct actor *actor)
{
	const struct cv_held *held = &actor->held[below(actor->held_count)];
	struct cv_view view = cv_nf_held_view(held);
	struct model *model = &models[number_of(view.data)];

	assert_int_equal(view.len, model->len);
	if (below(3) == 0) {
		cv_nf_drop_held(worker, held, 1);
		model->gone = true;
		dropped++;
	} else if (!cv_nf_release(worker, held, below(2) ? CV_NF_BEHIND : CV_NF_BY_PORT)) {
		return;
	}
	*(struct cv_held *)held = actor->held[--actor->held_count];
}

static uint8_t verdict_of(
	struct actor *actor, struct cv_nf_worker *worker, struct cv_view *view, struct model *model)
{
	if (below(100) < actor->resize)
		for (unsigned times = 1 + below(2); times > 0; times--)
			below(3) > 0 ? grow(worker, view, model) : shrink(worker, view, model);
	if (below(100) < actor->drop) {
		model->gone = true;
		dropped++;
		return CV_DROP(below(2));
	}
	if (below(100) < actor->absorb) {
		model->gone = true;
		absorbed++;
		return CV_ABSORBED;
	}
	if (below(100) < actor->hold && actor->held_count < HELD_MAX &&
		cv_nf_hold(worker, view, &actor->held[actor->held_count])) {
		actor->held_count++;
		model->late = true;
		return CV_HELD;
	}
	if (below(100) < actor->output) {
		model->late = true;
		return CV_OUTPUT(below(2));
	}
	return CV_NEXT;
}

static uint16_t act(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
{
	struct actor *actor = instance;
	uint16_t others = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct model *model = &models[number_of(views[i].data)];

		assert_int_equal(views[i].len, model->len);
		assert_memory_equal(views[i].data, model->bytes, model->len);
		verdicts[i] = verdict_of(actor, worker, &views[i], model);
		others += verdicts[i] != CV_NEXT;
		if (below(100) < actor->originate)
			originate(worker);
	}
	if (actor->held_count > 0 && below(2))
		give_back(worker, actor);
	return others;
}

static void tick(void *instance, struct cv_nf_worker *worker)
{
	struct actor *actor = instance;

	if (below(4) == 0 && actor->originate > 0)
		originate(worker);
	while (actor->held_count > 0 && below(3))
		give_back(worker, actor);
}

// The end of each path: the packets are compared with their models.
static void leave(struct cv_path_worker *worker, const struct cv_path *path, struct cv_burst *burst)
{
	unsigned at = 0;

	for (unsigned b = 0; b < burst->buffers.n; b++) {
		struct rte_mbuf *buffer = burst->buffers.buffers[b];
		unsigned n = burst->buffers.views[b];

		assert_in_range(n, 1, 255);
		for (unsigned i = 0; i < n; i++, at++, came_out++) {
			const struct cv_view *view = &burst->views[at];
			unsigned number = number_of(view->data);
			struct model *model = &models[number];
			uint16_t prefix = rte_be_to_cpu_16(cv_load_be16(view->data - 2));

			assert_false(model->gone || model->there);
			assert_int_equal(view->len, model->len);
			assert_memory_equal(view->data, model->bytes, model->len);
			assert_in_range(view->len, burst->shortest, burst->longest);
			if (n > 1)
				assert_int_equal(prefix, view->len);
			if (!model->late) {
				assert_true(number >= last_out);
				last_out = number;
			}
			model->there = true;
		}
		if (n == 1) {
			assert_ptr_equal(
				rte_pktmbuf_mtod(buffer, uint8_t *), burst->views[at - 1].data);
			assert_int_equal(buffer->pkt_len, burst->views[at - 1].len);
		}
	}
	assert_int_equal(at, burst->n);
	rte_pktmbuf_free_bulk(burst->buffers.buffers, burst->buffers.n);
}

// A frame of one packet, or a convoy of n.
static struct rte_mbuf *make_frame(unsigned n)
{
	struct cv_outer_config config = {.version = 4, .dst = {192, 0, 2, 1}};
	struct rte_mbuf *frame = rte_pktmbuf_alloc(below(2) == 0 ? pool : apart);
	struct cv_outer outer;
	uint8_t *begin;

	assert_non_null(frame);
	assert_int_equal(cv_outer_set(&outer, &config, NULL), 0);
	if (n > 1)
		assert_non_null(rte_pktmbuf_append(frame, outer.len));
	begin = rte_pktmbuf_mtod(frame, uint8_t *);
	for (unsigned i = 0; i < n; i++) {
		const struct model *model = add_model(HEADER + below(n > 20 ? 30 : 150));
		rte_be16_t prefix = rte_cpu_to_be_16((uint16_t)model->len);

		if (n > 1)
			memcpy(rte_pktmbuf_append(frame, 2), &prefix, 2);
		memcpy(rte_pktmbuf_append(frame, (uint16_t)model->len), model->bytes, model->len);
	}
	if (n > 1)
		cv_outer_write(&outer, begin, (uint8_t)n, frame->pkt_len - outer.len, 0);
	return frame;
}

struct rig {
	struct actor actors[STEPS + IN];
	struct cv_nf_counters counters[STEPS + IN];
	struct cv_step steps[STEPS + IN]; // the last ones: of the outputs' paths
	struct cv_path paths[1 + IN];
	const struct cv_path *outputs[IN];
	struct cv_port_counters ports[IN + 1];
	struct cv_frame_counters frames;
	struct cv_path_worker worker;
};

static void rig_init(struct rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	memset(models, 0, sizeof(models));
	made = last_out = came_out = absorbed = dropped = 0;
	for (unsigned i = 0; i < STEPS + IN; i++) {
		bool wild = below(2);

		rig->actors[i] = (struct actor){
			.resize = wild ? below(100) : below(4),
			.drop = wild ? below(20) : 0,
			.absorb = below(3),
			.hold = wild ? below(10) : 0,
			.output = i < STEPS && wild ? below(40) : 0,
			.originate = wild ? below(5) : 0,
		};
		rig->steps[i] = (struct cv_step){
			.process = act,
			.instance = &rig->actors[i],
			.counters = &rig->counters[i],
			.outputs = i < STEPS ? rig->outputs : NULL,
		};
	}
	for (unsigned i = 0; i < IN; i++) {
		rig->paths[1 + i] = (struct cv_path){
			.length = 1, .steps = &rig->steps[STEPS + i], .out = (uint8_t)i};
		rig->outputs[i] = &rig->paths[1 + i];
	}
	rig->paths[0] = (struct cv_path){.length = STEPS, .steps = rig->steps};
	rig->worker =
		(struct cv_path_worker){.pool = pool, .ports_counters = rig->ports, .leave = leave};
}

// received + originated = sent + dropped + absorbed + held.
static void assert_conserved(const struct rig *rig, unsigned received)
{
	uint64_t originated = 0, held = 0, drops = 0, absorptions = 0;

	for (unsigned i = 0; i < STEPS + IN; i++) {
		const struct cv_nf_counters *counters = &rig->counters[i];

		originated += counters->originated;
		absorptions += counters->absorbed;
		held += counters->held - counters->released;
		for (unsigned why = 0; why < CV_DROPS_MAX; why++)
			drops += counters->drops[why];
		assert_int_equal(counters->held - counters->released, rig->actors[i].held_count);
	}
	assert_int_equal(drops, dropped);
	assert_int_equal(absorptions, absorbed);
	for (unsigned i = 0; i <= IN; i++)
		drops += rig->ports[i].drops[CV_DROP_NO_BUFFER];
	assert_int_equal(received + originated, came_out + drops + absorptions + held);
	assert_int_equal(received + originated, made);
}

static void functions_change_what_they_like(void **state)
{
	static struct rig rig;
	const struct cv_convoy_rx rx = {
		.udp_port = rte_cpu_to_be_16(CV_CONVOY_PORT), .counters = &rig.frames};
	uint64_t copied_out = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t took = 0, busy = 0;
		unsigned received = 0;

		srand(round);
		rig_init(&rig);
		while (made < PACKETS - 2000) {
			struct rte_mbuf *frames[40];
			uint16_t n = (uint16_t)(1 + below(RTE_DIM(frames)));
			unsigned before = made;
			struct cv_burst burst;

			for (unsigned i = 0; i < n; i++)
				frames[i] = make_frame(below(4) ? 1 : 1 + below(40));
			received += made - before;
			for (uint16_t done = 0; done < n;) {
				uint64_t then = rte_rdtsc();

				done += cv_burst_load_convoys(&burst, frames + done, n - done, IN,
					1, &rx, &rig.ports[IN]);
				cv_path_run(&rig.paths[0], &rig.worker, &burst);
				took += rte_rdtsc() - then;
				assert_int_equal(rig.worker.waiting_count, 0);
			}
			for (unsigned i = 0; i < STEPS; i++) {
				uint64_t then = rte_rdtsc();

				cv_path_tick(&rig.paths[0], &rig.steps[i], tick, &rig.worker);
				took += rte_rdtsc() - then;
			}
		}
		assert_conserved(&rig, received);
		for (unsigned i = 0; i < STEPS + IN; i++) {
			copied_out += rig.counters[i].copied_out;
			busy += rig.counters[i].busy_cycles;
			for (unsigned h = 0; h < rig.actors[i].held_count; h++)
				cv_nf_free_held(&rig.actors[i].held[h]);
		}
		assert_in_range(busy, 1, took);
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
		assert_int_equal(rte_mempool_in_use_count(apart), 0);
	}
	assert_true(copied_out > 0);
}

static uint16_t grow_all(void *instance, struct cv_nf_worker *worker, struct cv_view *views,
	uint8_t *verdicts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		uint8_t *at = cv_nf_prepend(worker, &views[i], 4);

		assert_non_null(at);
		memmove(at, at + 4, 12);
		memcpy(at + 12, (uint8_t[]){0x81, 0, 0, 7}, 4);
		cv_view_parse(&views[i]);
		assert_int_equal(views[i].l3, 18);
		verdicts[i] = CV_NEXT;
	}
	return 0;
}

static struct packet expected;
static unsigned compared;

static void compare(
	struct cv_path_worker *worker, const struct cv_path *path, struct cv_burst *burst)
{
	for (unsigned i = 0; i < burst->n; i++, compared++) {
		assert_int_equal(cv_view_packet_len(&burst->views[i]), expected.len);
		assert_memory_equal(cv_view_packet(&burst->views[i]), expected.bytes, expected.len);
	}
	rte_pktmbuf_free_bulk(burst->buffers.buffers, burst->buffers.n);
}

// A tag for the packet inside of a tunnel: the outer lengths and checksum are as they must be.
static void a_tunnel_grows_with_its_packet(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"ip4 src=192.0.2.1 dst=192.0.2.2 ttl=64 udp sport=1 dport=4789 "
		 "hex=0800000000000700 hex=020000000002020000000001 hex=0806 hex=00010800",
			"ip4 src=192.0.2.1 dst=192.0.2.2 ttl=64 udp sport=1 dport=4789 "
			"hex=0800000000000700 hex=020000000002020000000001 hex=81000007 "
			"hex=0806 hex=00010800"},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct packet in = packet_make(rows[i].in);
		struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
		struct cv_nf_counters counters = {0};
		struct cv_port_counters port = {0};
		struct cv_step step = {.process = grow_all, .counters = &counters};
		const struct cv_path path = {.length = 1, .steps = &step};
		static struct cv_path_worker worker;
		struct cv_burst burst;

		expected = packet_make(rows[i].out);
		memset(expected.bytes + 14 + 20 + 6, 0, 2); // as the classifier leaves it
		worker = (struct cv_path_worker){
			.pool = pool, .ports_counters = &port, .leave = compare};
		memcpy(rte_pktmbuf_append(frame, in.len), in.bytes, in.len);
		memset(rte_pktmbuf_mtod_offset(frame, uint8_t *, 14 + 20 + 6), 0, 2);
		cv_burst_load(&burst, &frame, 1, 0, 0, &port);
		cv_view_set(&burst.views[0], burst.views[0].data + 50,
			(uint16_t)(burst.views[0].len - 50));
		burst.views[0].before = 50;
		compared = 0;
		cv_path_run(&path, &worker, &burst);
		assert_int_equal(compared, 1);
	}
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void move_apart(struct rte_mempool *from, void *unused, void *object, unsigned number)
{
	struct rte_mbuf *mbuf = object;

	(void)from;
	(void)unused;
	(void)number;
	mbuf->buf_addr = (uint8_t *)mbuf->buf_addr + 64;
	mbuf->buf_len -= 64;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_change_what_they_like),
		cmocka_unit_test(a_tunnel_grows_with_its_packet),
	};
	int rc;

	test_eal_begin(argv[0]);
	pool = rte_pktmbuf_pool_create("test", 4095, 0, 0, 4096, SOCKET_ID_ANY);
	apart = rte_pktmbuf_pool_create("apart", 4095, 0, 0, 4096, SOCKET_ID_ANY);
	if (apart != NULL)
		rte_mempool_obj_iter(apart, move_apart, NULL);
	rc = pool == NULL || apart == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
	rte_mempool_free(apart);
	rte_mempool_free(pool);
	test_eal_end();
	return rc;
}
