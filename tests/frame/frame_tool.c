// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The C side of the tests that compare it with Python's: questions as JSON, one a line, on
// standard input, answers on standard output.
//
//   {"frame": HEX, "port": N}                         -> {"reason": NAME, "nfi": N, "packets": [HEX]}
//   {"outer": {...}, "nfi": N, "packets": [HEX ...]}  -> {"sent": [HEX ...]}, frames and packets
#include <stdio.h>

#include "convoy/frame.h"
#include "convoy/test_json.h"

#define PACKETS_MAX 4096

static json_t *hex(const uint8_t *bytes, size_t len)
{
	char *text = malloc(2 * len + 1);
	json_t *json;

	text[0] = '\0';
	for (size_t i = 0; i < len; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	json = json_string(text);
	free(text);
	return json;
}

static json_t *walk(const json_t *question)
{
	struct cv_view frame = {0}, views[CV_CONVOY_PACKETS_MAX];
	unsigned port = json_number(question, "port");
	enum cv_convoy_reason reason;
	struct cv_convoy convoy;
	size_t len;
	uint8_t *bytes = hex_bytes(json_text(question, "frame"), &len);
	json_t *answer, *packets = json_array();

	if (bytes == NULL)
		return NULL;
	cv_view_set(&frame, bytes, (uint16_t)len);
	reason = cv_convoy_walk(&convoy, views, &frame,
		rte_cpu_to_be_16((uint16_t)(port != 0 ? port : CV_CONVOY_PORT)));
	for (unsigned i = 0; reason == CV_CONVOY_OK && i < convoy.count; i++)
		json_array_append_new(packets, hex(views[i].data, views[i].len));
	answer = json_pack("{ss si so}", "reason", cv_convoy_reason_names[reason], "nfi",
		reason == CV_CONVOY_OK ? convoy.nfi : 0, "packets", packets);
	free(bytes);
	return answer;
}

static json_t *send_all(const struct cv_outer *outer, const struct cv_view *views, uint16_t n)
{
	uint8_t *buffer = malloc(outer->frame_max);
	json_t *sent = json_array();

	for (uint16_t taken, done = 0; done < n; done += taken) {
		const uint8_t *frame;
		struct cv_frame built;
		uint16_t len;

		cv_frame_begin(&built, outer, buffer, outer->frame_max);
		taken = cv_frame_add(&built, views + done, n - done);
		frame = cv_frame_close(&built, &len);
		if (taken == 0) {
			frame = views[done].data;
			len = views[done].len;
			taken = 1;
			if (cv_looks_like_convoy(outer, &views[done]))
				continue; // it cannot be sent
		}
		json_array_append_new(sent, hex(frame, len));
	}
	free(buffer);
	return sent;
}

static json_t *pack(const json_t *question)
{
	static struct cv_view views[PACKETS_MAX];
	const json_t *packet;
	struct cv_outer_config config;
	struct cv_outer outer;
	uint16_t n = 0;
	json_t *sent;
	size_t i;

	if (!json_outer(&config, question) || cv_outer_set(&outer, &config, NULL) != 0)
		return NULL;
	json_array_foreach (json_object_get(question, "packets"), i, packet) {
		size_t len;
		uint8_t *bytes = hex_bytes(json_string_value(packet), &len);

		if (bytes == NULL || n == PACKETS_MAX)
			return NULL;
		cv_view_set(&views[n++], bytes, (uint16_t)len);
	}
	sent = send_all(&outer, views, n);
	while (n > 0)
		free(views[--n].data);
	return json_pack("{so}", "sent", sent);
}

int main(void)
{
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		json_error_t error;
		json_t *question = json_loads(line, 0, &error);
		bool frame = json_object_get(question, "frame") != NULL;
		json_t *answer = frame ? walk(question) : pack(question);

		if (answer == NULL) {
			fprintf(stderr, "frame-tool: not a question: %s", line);
			return 2;
		}
		json_dumpf(answer, stdout, JSON_COMPACT);
		putchar('\n');
		fflush(stdout);
		json_decref(answer);
		json_decref(question);
	}
	free(line);
	return 0;
}
