// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// A device that is slow to read: answers that are on their way to it stay as they are, whatever
// comes meanwhile.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/trial/answer.h"

#define PLACES 8u // of the queue
#define FRAME_BYTES 60u
#define PACKETS 4000u
#define MAGIC 7

// The queue, whose first frame is the next one that the device reads.
static struct queue {
	const uint8_t *frame[PLACES];
	uint32_t number[PLACES];
	uint32_t count;
} queue;

static uint32_t tx_room(struct gen_wire *wire, uint32_t wanted)
{
	const uint32_t room = PLACES - queue.count;

	return room < wanted ? room : wanted;
}

static uint32_t tx(struct gen_wire *wire, const struct gen_tx *burst)
{
	for (uint32_t i = 0; i < burst->count; i++) {
		assert_true(queue.count < PLACES);
		queue.frame[queue.count] = burst->base + burst->frame[i].offset;
		queue.number[queue.count++] = burst->seq[i];
	}
	return burst->count;
}

// Of the packet with this number: all of it but the stamp says which it is.
static void write_packet(uint8_t *frame, uint32_t number)
{
	for (uint32_t i = 0; i < FRAME_BYTES - GEN_STAMP_BYTES; i++)
		frame[i] = (uint8_t)(number * 31 + i);
}

static void expect_answer(const uint8_t *frame, uint32_t number)
{
	uint8_t packet[FRAME_BYTES];

	write_packet(packet, number);
	assert_memory_equal(frame, packet + 6, 6);
	assert_memory_equal(frame + 6, packet, 6);
	assert_memory_equal(frame + 26, packet + 30, 4);
	assert_memory_equal(frame + 30, packet + 26, 4);
	assert_memory_equal(frame + 38, packet + 38, FRAME_BYTES - GEN_STAMP_BYTES - 38);
}

// The device reads some, the oldest first.
static void read_some(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		expect_answer(queue.frame[i], queue.number[i]);
	queue.count -= count;
	memmove(queue.frame, queue.frame + count, queue.count * sizeof(queue.frame[0]));
	memmove(queue.number, queue.number + count, queue.count * sizeof(queue.number[0]));
}

static void answers_on_their_way_stay_as_they_are(void **state)
{
	static const struct gen_wire_ops ops = {.tx = tx, .tx_room = tx_room};
	static uint8_t memory[1 << 20];
	struct gen_port port = {.wire_count = 1,
		.wires = {{.ops = &ops}},
		.memory = memory,
		.memory_bytes = sizeof(memory),
		.frame_bytes_max = FRAME_BYTES,
		.queue_frames = PLACES};
	struct gen_tester tester = {.port_count = 1, .ports = {&port}};
	static struct gen_spec spec = {.flows = {.protocol = GEN_UDP}};
	static struct gen_trial trial;
	static struct gen_stream stream = {.to = 1}; // what comes to another port is answered
	static struct cv_error error;
	struct gen_loop loop = {.spec = &spec, .trial = &trial};

	loop.answers = gen_answers_create(&tester, &trial, &error);
	assert_non_null(loop.answers);
	for (uint32_t number = 0; number < PACKETS; number++) {
		uint8_t packet[FRAME_BYTES];
		const struct gen_stamp stamp = {.magic = MAGIC, .seq = number};
		const struct gen_rx frame = {packet, sizeof(packet), true};

		write_packet(packet, number);
		assert_false(gen_answer(&loop, &stream, &frame, 0, &port.wires[0], &stamp));
		if (number % 5 == 4)
			gen_answers_send(loop.answers);
		// Of a few hundred packets it reads two, and then all.
		if (number % 400 == 399)
			read_some(queue.count < 2 ? queue.count : 2);
		if (number % 1600 == 1599)
			read_some(queue.count);
	}
	gen_answers_send(loop.answers);
	read_some(queue.count);
	assert_in_range(trial.answered, PLACES, PACKETS / 10);
	assert_int_equal(trial.answered + trial.unanswered, PACKETS);
	free(loop.answers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_on_their_way_stay_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
