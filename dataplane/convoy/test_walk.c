// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// What holds of the walk for any bytes: it never looks outside of them and never shows a packet
// outside of them, also while another side changes them.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cmocka.h>

#include "convoy/frame.h"

#define PORT RTE_BE16(CV_CONVOY_PORT)

// A frame of n packets of these lengths, in memory of its own size; the caller frees frame->data.
static void make_frame(struct cv_view *frame, uint8_t version, const uint16_t *lens, uint16_t n)
{
	const struct cv_outer_config config = {.version = version,
		.src = {192, 0, 2, 1},
		.dst = {192, 0, 2, 2},
		.nfi = 7,
		.mtu = 9000};
	static uint8_t bytes[2048], buffer[9100];
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
	struct cv_outer outer;
	struct cv_frame built;
	uint16_t len;

	memset(bytes, 0x5a, sizeof(bytes));
	for (uint16_t i = 0; i < n; i++)
		cv_view_set(&views[i], bytes, lens[i]);
	assert_int_equal(cv_outer_set(&outer, &config, NULL), 0);
	cv_frame_begin(&built, &outer, buffer, sizeof(buffer));
	assert_int_equal(cv_frame_add(&built, views, n), n);
	assert_ptr_equal(cv_frame_close(&built, &len), buffer);
	cv_view_set(frame, malloc(len), 0);
	memcpy(frame->data, buffer, len);
	cv_view_set(frame, frame->data, len);
}

// Packets lie one behind the other with two bytes between, the last one up to the frame's end.
// Whether a length in the frame still says so is no matter: it may have changed by now.
static void packets_fill_the_frame(
	const struct cv_convoy *convoy, const struct cv_view *views, const struct cv_view *frame)
{
	const uint8_t *at = frame->data + convoy->packets_at;

	if (convoy->count == 0)
		fail_msg("no packets");
	for (unsigned i = 0; i < convoy->count; i++) {
		if (views[i].data != at + CV_CONVOY_PREFIX_LEN ||
			views[i].len < CV_CONVOY_PACKET_MIN || views[i].l3 > views[i].len)
			fail_msg("packet %u is not where it should be", i);
		if (convoy->each > 0 && views[i].len != convoy->each)
			fail_msg("packet %u is not as long as each", i);
		at = views[i].data + views[i].len;
	}
	if (at != frame->data + frame->len)
		fail_msg("the packets do not fill the frame");
}

// Each view says of its packet what cv_view_set() does, and has the frame's ports.
static void views_are_as_set(
	const struct cv_convoy *convoy, const struct cv_view *views, const struct cv_view *frame)
{
	for (unsigned i = 0; i < convoy->count; i++) {
		struct cv_view view = {.in = frame->in, .out = frame->out};

		cv_view_set(&view, views[i].data, views[i].len);
		if (memcmp(&view, &views[i], sizeof(view)) != 0)
			fail_msg("view %u of %u is another", i, convoy->count);
	}
}

static enum cv_convoy_reason walk(struct cv_convoy *convoy, const struct cv_view *frame)
{
	struct cv_view views[CV_CONVOY_PACKETS_MAX];
	enum cv_convoy_reason reason = cv_convoy_walk(convoy, views, frame, PORT);

	assert_in_range(reason, CV_CONVOY_OK, CV_CONVOY_REASONS - 1);
	if (reason == CV_CONVOY_OK)
		packets_fill_the_frame(convoy, views, frame);
	return reason;
}

static void mutate(uint8_t version, const uint16_t *lens, uint16_t n)
{
	unsigned seen[CV_CONVOY_REASONS] = {0};
	struct cv_convoy convoy;
	struct cv_view frame;
	bool alike = true;

	make_frame(&frame, version, lens, n);
	assert_int_equal(walk(&convoy, &frame), CV_CONVOY_OK);
	for (uint16_t i = 1; i < n; i++)
		alike &= lens[i] == lens[0];
	assert_int_equal(convoy.each, alike ? lens[0] : 0);
	for (unsigned at = 0; at < frame.len; at++) {
		uint8_t was = frame.data[at];

		for (unsigned value = 0; value < 256; value++) {
			struct cv_view changed = {0};

			frame.data[at] = (uint8_t)value;
			cv_view_set(&changed, frame.data, frame.len);
			seen[walk(&convoy, &changed)]++;
		}
		frame.data[at] = was;
	}
	assert_true(seen[CV_CONVOY_BAD_VERSION] == 15 * 16);
	assert_true(seen[CV_CONVOY_BAD_TYPE] == 15);
	assert_true(seen[CV_CONVOY_OK] > frame.len && seen[CV_CONVOY_NOT_A_CONVOY] > 255);
	assert_true(seen[CV_CONVOY_BAD_LENGTH] > 0 && seen[CV_CONVOY_BAD_COUNT] > 0);
	free(frame.data);
}

static void every_change_of_one_byte_is_survived(void **state)
{
	mutate(4, (uint16_t[]){60, 60, 60}, 3);
	mutate(4, (uint16_t[]){14, 300, 15, 61}, 4);
	mutate(6, (uint16_t[]){60, 60}, 2);
	mutate(6, (uint16_t[]){16, 14}, 2);
}

// Packets of one length are validated together, with what follows their Ethernet headers: each must
// be seen for what it is, wherever it is among the others.
static void every_packet_is_seen_for_what_it_is(void **state)
{
	static const uint8_t types[][2] = {
		{0x08, 0x00}, {0x86, 0xdd}, {0x81, 0x00}, {0x88, 0xa8}, {0x08, 0x06}, {0, 0}};
	const unsigned kinds = sizeof(types) / sizeof(types[0]);
	const uint16_t lens[] = {14, 17, 18, 22, 60};

	for (unsigned l = 0; l < sizeof(lens) / sizeof(lens[0]); l++) {
		const uint16_t all[5] = {lens[l], lens[l], lens[l], lens[l], lens[l]};

		for (uint16_t n = 2; n <= 5; n++) {
			unsigned ways = 1;
			struct cv_view frame;

			for (unsigned k = 0; k < n; k++)
				ways *= kinds;
			make_frame(&frame, 4, all, n);
			frame.in = 3;
			frame.out = 0xfe;
			for (unsigned way = 0; way < ways; way++) {
				struct cv_view views[CV_CONVOY_PACKETS_MAX];
				struct cv_convoy convoy;

				for (unsigned k = 0, w = way; k < n; k++, w /= kinds)
					memcpy(frame.data + 46 + k * (2u + lens[l]) + 14,
						types[w % kinds], 2);
				if (cv_convoy_walk(&convoy, views, &frame, PORT) != CV_CONVOY_OK)
					fail_msg("refused");
				packets_fill_the_frame(&convoy, views, &frame);
				views_are_as_set(&convoy, views, &frame);
			}
			free(frame.data);
		}
	}
}

static void a_frame_cut_anywhere_is_refused(void **state)
{
	struct cv_convoy convoy;
	struct cv_view frame;

	make_frame(&frame, 4, (uint16_t[]){60, 60, 60}, 3);
	for (uint16_t len = 0; len < frame.len; len++) {
		struct cv_view cut = {0};
		uint8_t *bytes = malloc(len + !len);

		memcpy(bytes, frame.data, len);
		cv_view_set(&cut, bytes, len);
		assert_int_equal(walk(&convoy, &cut),
			len < 14 + 20 + 8 ? CV_CONVOY_NOT_A_CONVOY : CV_CONVOY_TRUNCATED);
		free(bytes);
	}
	free(frame.data);
}

struct tampering {
	uint8_t *data;
	uint16_t len;
	atomic_bool stop; // set by the test, relaxed: nothing else depends on it
};

// The other side of a shared buffer: writes lengths, counts and anything else while we read.
static void *tamper(void *arg)
{
	struct tampering *side = arg;
	uint32_t random = 1;

	while (!atomic_load_explicit(&side->stop, memory_order_relaxed)) {
		uint16_t at;

		random = random * 1664525 + 1013904223;
		at = (uint16_t)((random >> 8) % (side->len - 42)) + 42;
		*(volatile uint8_t *)&side->data[at] ^= random >> 24;
		at = at / 62 * 62 + 46 < side->len ? at / 62 * 62 + 46 : 46;
		*(volatile uint8_t *)&side->data[42] = CV_CONVOY_VERSION << 4;
		*(volatile uint8_t *)&side->data[43] = random & 0x10 ? 16 : 15;
		*(volatile uint8_t *)&side->data[at] = 0;
		*(volatile uint8_t *)&side->data[at + 1] = random & 0x20 ? 60 : 0xff;
		for (uint16_t i = 46; i < side->len && random & 0x40; i += 62) {
			*(volatile uint8_t *)&side->data[i] = 0;
			*(volatile uint8_t *)&side->data[i + 1] = 60;
		}
	}
	return NULL;
}

static void lengths_that_change_meanwhile_show_nothing_outside(void **state)
{
	uint16_t lens[16];
	unsigned accepted = 0, refused = 0;
	struct tampering side;
	struct cv_convoy convoy;
	struct cv_view frame;
	pthread_t thread;

	for (unsigned i = 0; i < 16; i++)
		lens[i] = 60;
	make_frame(&frame, 4, lens, 16);
	side.data = frame.data;
	side.len = frame.len;
	atomic_init(&side.stop, false);
	assert_int_equal(pthread_create(&thread, NULL, tamper, &side), 0);
	// Enough of both, and an end if the other side never runs.
	for (unsigned i = 0; i < 20000000 && (accepted < 20000 || refused < 20000); i++) {
		if (walk(&convoy, &frame) == CV_CONVOY_OK)
			accepted++;
		else
			refused++;
		if (i % 1024 == 0)
			sched_yield();
	}
	atomic_store_explicit(&side.stop, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	print_message("%u accepted, %u refused\n", accepted, refused);
	assert_true(accepted > 0 && refused > 0);
	free(frame.data);
}

#ifdef __x86_64__
// The worst other side there is: after each single read of the frame it writes. The page with the
// frame is not readable; what reads it faults, runs one instruction, and then the frame changes.
static struct {
	uint8_t *page;
	uint8_t *read; // what was read last
	uint16_t lengths[16]; // offsets of the lengths in the page
	uint16_t value; // what a length becomes once it was read
	unsigned first; // how often the first length was read
} spy;

static void before_a_read(int signal, siginfo_t *info, void *context)
{
	spy.read = info->si_addr;
	if (spy.read < spy.page || spy.read >= spy.page + 4096)
		abort();
	mprotect(spy.page, 4096, PROT_READ | PROT_WRITE);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= 0x100; // trap after it
}

static void after_a_read(int signal, siginfo_t *info, void *context)
{
	for (unsigned i = 0; i < 16; i++) {
		uint8_t *length = spy.page + spy.lengths[i];

		// The first is read once more before, for the guess that all are equal.
		if (spy.read >= length && spy.read < length + 2 && (i > 0 || spy.first++ > 0)) {
			length[0] = (uint8_t)(spy.value >> 8);
			length[1] = (uint8_t)spy.value;
		}
	}
	mprotect(spy.page, 4096, PROT_NONE);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

static void a_length_is_validated_and_used_as_one_reading(void **state)
{
	static const uint16_t values[] = {0, 13, 14, 59, 61, 1000, 0xffff};
	struct sigaction segv = {.sa_sigaction = before_a_read, .sa_flags = SA_SIGINFO};
	struct sigaction trap = {.sa_sigaction = after_a_read, .sa_flags = SA_SIGINFO};
	struct sigaction old_segv, old_trap;

	spy.page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(spy.page, MAP_FAILED);
	for (unsigned i = 0; i < 2 * sizeof(values) / sizeof(values[0]); i++) {
		struct cv_view views[CV_CONVOY_PACKETS_MAX], frame, spied;
		uint16_t lens[16], at = 46;
		enum cv_convoy_reason reason;
		struct cv_convoy convoy;

		// Equal lengths, then mixed: both ways through the walk.
		for (unsigned k = 0; k < 16; k++) {
			lens[k] = (uint16_t)(60 - (i & 1) * (k % 3));
			spy.lengths[k] = at;
			at += 2 + lens[k];
		}
		make_frame(&frame, 4, lens, 16);
		mprotect(spy.page, 4096, PROT_READ | PROT_WRITE);
		memcpy(spy.page, frame.data, frame.len);
		cv_view_set(&spied, spy.page, frame.len);
		spied.in = spied.out = 0;
		spy.value = values[i / 2];
		spy.first = 0;
		mprotect(spy.page, 4096, PROT_NONE);
		sigaction(SIGSEGV, &segv, &old_segv);
		sigaction(SIGTRAP, &trap, &old_trap);
		reason = cv_convoy_walk(&convoy, views, &spied, PORT);
		sigaction(SIGSEGV, &old_segv, NULL);
		sigaction(SIGTRAP, &old_trap, NULL);
		assert_int_equal(spy.first, 2);
		// Every length has another value by now; what was read of each was right.
		assert_int_equal(reason, CV_CONVOY_OK);
		packets_fill_the_frame(&convoy, views, &spied);
		free(frame.data);
	}
	munmap(spy.page, 4096);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_change_of_one_byte_is_survived),
		cmocka_unit_test(every_packet_is_seen_for_what_it_is),
		cmocka_unit_test(a_frame_cut_anywhere_is_refused),
		cmocka_unit_test(lengths_that_change_meanwhile_show_nothing_outside),
#ifdef __x86_64__
		cmocka_unit_test(a_length_is_validated_and_used_as_one_reading),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
