// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// TCP's windows: rows of packets, each with what becomes of it.
#include "tests/support/test_packets.h"

#include "flow/window.h"

#define NONE -1
#define I CV_FLOW_WINDOW_INSIDE
#define O CV_FLOW_WINDOW_OUTSIDE
#define U CV_FLOW_WINDOW_UNSURE

struct row {
	const char *flags; // '<' before them: the answering end's; 'f': a first fragment
	uint32_t seq, ack;
	uint16_t window, data;
	int scale; // its option, or NONE
	enum cv_flow_window_verdict verdict;
};

// The opening end counts from 1000 on, the other from 5000.
#define S(window, scale)                         \
	{                                        \
		"S", 999, 0, window, 0, scale, I \
	}
#define SA(window, scale)                              \
	{                                              \
		"<SA", 4999, 1000, window, 0, scale, I \
	}
#define OPENED                                    \
	S(1000, NONE), SA(2000, NONE),            \
	{                                         \
		"A", 1000, 5000, 1000, 0, NONE, I \
	}

static const struct {
	const char *name;
	struct row rows[16];
} tables[] = {
	{"data in both windows",
		{OPENED, {"A", 1000, 5000, 1000, 2000, NONE, I},
			{"A", 3000, 5000, 1000, 1, NONE,
				I}, // begins at the end: the receiver cuts it
			{"A", 3002, 5000, 1000, 1, NONE, O}, {"<A", 5000, 3000, 2000, 900, NONE, I},
			{"A", 3000, 5900, 1000, 500, NONE, I}, {"A", 4999, 5900, 1000, 0, NONE, I},
			{"A", 5002, 5900, 1000, 0, NONE, O}}},
	{"data from before",
		{OPENED, {"A", 1000, 5000, 1000, 1500, NONE, I},
			{"A", 1000, 5000, 1000, 500, NONE, I}, // again
			{"A", 0u - 501, 5000, 1000, 1, NONE, O}, {"A", 499, 5000, 1000, 0, NONE, O},
			{"A", 500, 5000, 1000, 0, NONE, I}}},
	{"an acknowledgement of what was not sent",
		{OPENED, {"A", 1000, 5001, 1000, 0, NONE, O}, {"<A", 5000, 1000, 2000, 10, NONE, I},
			{"A", 1000, 5010, 1000, 0, NONE, I},
			{"A", 1000, 5010 - 66001u, 1000, 0, NONE, O},
			{"A", 1000, 5010 - 66000u, 1000, 0, NONE, I}}},
	{"scaled windows", {S(1000, 4), SA(2000, 3), {"A", 1000, 5000, 1000, 0, NONE, I},
				   {"<A", 5000, 1000, 2000, 10, NONE, I},
				   {"<A", 5010 + 15000, 1000, 2000, 10, NONE, I},
				   {"<A", 5000 + 16001, 1000, 2000, 1, NONE, O},
				   {"A", 1000 + 16000, 5000, 1000, 1, NONE, I},
				   {"A", 1000 + 16002, 5000, 1000, 1, NONE, O}}},
	{"scaled by one end is not scaled",
		{S(1000, 4), SA(2000, NONE), {"A", 1000, 5000, 1000, 0, NONE, I},
			{"<A", 6001, 1000, 2000, 1, NONE, O},
			{"<A", 6000, 1000, 2000, 1, NONE, I}}},
	{"a window of 0 is probed with a byte",
		{OPENED, {"<A", 5000, 1000, 0, 0, NONE, I},
			{"A", 1000, 5000, 1000, 2000, NONE, I}, // was allowed before
			{"<A", 5000, 3000, 0, 0, NONE, I}, {"A", 3000, 5000, 1000, 1, NONE, I},
			{"A", 3002, 5000, 1000, 1, NONE, O}}},
	{"a keep-alive",
		{OPENED, {"A", 999, 5000, 1000, 0, NONE, I}, {"<A", 5000, 1000, 2000, 0, NONE, I},
			{"<A", 4999, 1000, 2000, 1, NONE, I}}},
	{"a reset at the number that is expected", {OPENED, {"<R", 5000, 0, 0, 0, NONE, I}}},
	{"a reset with an acknowledgement of zero", {OPENED, {"<RA", 5000, 0, 0, 0, NONE, I}}},
	{"a reset inside is not sure",
		{OPENED, {"<R", 5001, 0, 0, 0, NONE, U}, {"<R", 5999, 0, 0, 0, NONE, U},
			{"<R", 6001, 0, 0, 0, NONE, O}, {"<R", 4999, 0, 0, 0, NONE, O},
			{"R", 0, 0, 0, 0, NONE, O}, {"R", 2500, 0, 0, 0, NONE, U}}},
	{"a reset behind data that was sent",
		{OPENED, {"A", 1000, 5000, 1000, 100, NONE, I}, {"R", 1100, 0, 0, 0, NONE, I}}},
	{"a refusal",
		{S(1000, NONE), {"<RA", 0, 1001, 0, 0, NONE, O}, {"<RA", 0, 1000, 0, 0, NONE, I}}},
	{"a refusal that was not asked for",
		{S(1000, NONE), {"<RA", 0, 100000, 0, 0, NONE, O}, SA(2000, NONE)}},
	{"who guesses before the answer changes nothing",
		{S(1000, NONE), {"<A", 77777, 5, 1000, 0, NONE, U}, SA(2000, NONE),
			{"A", 1000, 5000, 1000, 0, NONE, I}}},
	{"a SYN again, and another",
		{S(1000, NONE), S(1000, NONE), {"S", 9999, 0, 1000, 0, NONE, I},
			{"<SA", 4999, 10000, 2000, 0, NONE, I},
			{"A", 10000, 5000, 1000, 0, NONE, I}}},
	{"both open",
		{S(1000, NONE), {"<S", 4999, 0, 2000, 0, NONE, I},
			{"A", 1000, 5000, 1000, 0, NONE, I}, {"<A", 5000, 1000, 1000, 0, NONE, I}}},
	{"numbers that begin again",
		{{"S", 0u - 2, 0, 1000, 0, NONE, I}, {"<SA", 0u - 2, 0u - 1, 2000, 0, NONE, I},
			{"A", 0u - 1, 0u - 1, 1000, 100, NONE, I},
			{"<A", 0u - 1, 99, 2000, 100, NONE, I}, {"A", 99, 99, 1000, 0, NONE, I},
			{"A", 2100, 99, 1000, 0, NONE, O}}},
	{"both close",
		{OPENED, {"FA", 1000, 5000, 1000, 0, NONE, I}, {"<A", 5000, 1001, 2000, 0, NONE, I},
			{"<FA", 5000, 1001, 2000, 0, NONE, I}, {"A", 1001, 5001, 1000, 0, NONE, I},
			{"A", 1001, 5002, 1000, 0, NONE, O}}},
	{"another between the same ports",
		{OPENED, {"FA", 1000, 5000, 1000, 0, NONE, I},
			{"<FA", 5000, 1001, 2000, 0, NONE, I}, {"S", 100, 0, 1000, 0, NONE, I},
			{"<SA", 200, 101, 1000, 0, NONE, I}, {"A", 101, 201, 1000, 0, NONE, I},
			{"A", 1001, 5001, 1000, 0, NONE, O}}},
	{"a segment in fragments",
		{OPENED, {"Af", 1000, 5000, 1000, 28, NONE, I},
			{"<A", 5000, 3001, 2000, 0, NONE, O}, // beyond the window
			{"<A", 5000, 1044, 2000, 0, NONE, I},
			{"A", 1000, 5000, 1000, 44, NONE, I}, // again
			{"A", 999, 5000, 1000, 0, NONE, I}, {"<A", 5000, 1100, 2000, 9, NONE, I},
			{"A", 1100, 5009, 1000, 10, NONE, I}, // a whole one
			{"<A", 5009, 1111, 2000, 0, NONE, O},
			{"<A", 5009, 1110, 2000, 0, NONE, I}}},
	{"a SYN in a connection is its receiver's to challenge",
		{OPENED, {"S", 77777, 0, 1000, 0, 14, U}, {"A", 1000, 5000, 1000, 0, NONE, I},
			{"A", 77778, 5000, 1000, 0, NONE, O}}},
};

static void put32(uint8_t *at, uint32_t value)
{
	value = rte_cpu_to_be_32(value);
	memcpy(at, &value, 4);
}

static uint8_t flags_of(const char *text)
{
	uint8_t flags = 0;

	for (; *text != '\0'; text++)
		flags |= *text == 'S'   ? CV_TCP_SYN
			 : *text == 'A' ? CV_TCP_ACK
			 : *text == 'F' ? CV_TCP_FIN
			 : *text == 'R' ? CV_TCP_RST
					: 0;
	return flags;
}

// A header, its options and its data, in memory of their exact size.
static uint8_t *segment_of(const struct row *row, unsigned *len)
{
	const unsigned header = row->scale == NONE ? 20 : 24;
	uint8_t *tcp = calloc(1, header + row->data);

	put32(tcp + 4, row->seq);
	put32(tcp + 8, row->ack);
	tcp[12] = (uint8_t)(header / 4 << 4);
	tcp[13] = flags_of(row->flags);
	packet_put16(tcp + 14, row->window);
	if (row->scale != NONE)
		memcpy(tcp + 20, (const uint8_t[]){1, 3, 3, (uint8_t)row->scale}, 4);
	*len = header + row->data;
	return tcp;
}

static void connections(void **state)
{
	for (unsigned t = 0; t < RTE_DIM(tables); t++) {
		enum cv_flow_tcp_state tcp_state = CV_FLOW_TCP_OPEN;
		struct cv_flow_window window = {0};
		bool replied = false;

		for (unsigned r = 0; r < 16 && tables[t].rows[r].flags != NULL; r++) {
			const struct row *row = &tables[t].rows[r];
			const unsigned direction = row->flags[0] == '<';
			uint8_t flags = flags_of(row->flags);
			struct cv_view view = {0};
			unsigned len;
			enum cv_flow_window_verdict verdict;

			view.data = segment_of(row, &len);
			view.len = (uint16_t)len;
			verdict = cv_flow_window_see(&window, direction, tcp_state, &view, 0, len);
			if (verdict != row->verdict)
				fail_msg("%s, packet %u: %u, not %u", tables[t].name, r, verdict,
					row->verdict);
			free(view.data);
			if (verdict != I)
				continue;
			if (strchr(row->flags, 'f') != NULL)
				cv_flow_window_fragmented(&window, direction);
			replied |= direction == CV_FLOW_REPLY;
			tcp_state = cv_flow_tcp_next(tcp_state, direction, flags, replied);
		}
	}
}

// Headers that are longer than what is there, and options of any kind, in memory of its exact size.
static void headers_that_do_not_fit(void **state)
{
	static const char *const options[] = {"03030e00", "03ff0e00", "03", "0300", "0301", "0302",
		"010103", "02040303", "000303ff", "030300", "0303ff", "ffffffff",
		"0101010103030f01"};

	for (unsigned o = 0; o < RTE_DIM(options); o++)
		for (unsigned offset = 0; offset < 16; offset++) {
			const size_t bytes = strlen(options[o]) / 2;
			struct cv_flow_window window = {0};
			struct cv_view view = {.len = (uint16_t)(20 + bytes)};
			const bool fits = offset >= 5 && offset * 4 <= 20 + bytes;

			view.data = calloc(1, 20 + bytes);
			view.data[12] = (uint8_t)(offset << 4);
			view.data[13] = CV_TCP_SYN;
			for (size_t i = 0; i < bytes; i++)
				sscanf(options[o] + 2 * i, "%2hhx", &view.data[20 + i]);
			assert_int_equal(cv_flow_window_see(
						 &window, 0, CV_FLOW_TCP_OPEN, &view, 0, view.len),
				fits ? I : O);
			assert_in_range(window.end[0].scale, 0, 14);
			free(view.data);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections),
		cmocka_unit_test(headers_that_do_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
