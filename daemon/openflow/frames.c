// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "daemon/openflow/frames.h"

#include <errno.h>
#include <time.h>

#include "daemon/openflow/inband.h"

int cv_of_frames_init(struct cv_of_frames *frames, struct cv_of_switch *of)
{
	*frames = (struct cv_of_frames){.of = of};
	if (of->node->inband_count == 0)
		return 0;
	frames->session = cv_of_session_open(of);
	if (frames->session == NULL)
		return -ENOMEM;
	frames->session->greeted = true;
	frames->session->out_to = 0;
	memset(frames->session->async, 0, sizeof(frames->session->async));
	return 0;
}

void cv_of_frames_fini(struct cv_of_frames *frames)
{
	for (unsigned i = 0; i < frames->count; i++)
		rte_pktmbuf_free(frames->taken[i]);
	if (frames->session != NULL)
		cv_of_session_close(frames->session);
}

bool cv_of_frames_take(struct cv_of_frames *frames)
{
	const struct cv_of_node *node = frames->of->node;

	for (unsigned i = 0; i < node->inband_count && frames->count == 0; i++) {
		frames->port = (frames->port + 1) % node->inband_count;
		frames->count = cv_openflow_port_take(
			node->inband[frames->port], frames->taken, CV_OF_FRAMES);
	}
	return frames->count > 0;
}

static uint64_t wall_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void carry_out(struct cv_of_frames *frames, const struct rte_mbuf *frame)
{
	const struct cv_port *port = frames->of->node->inband[frames->port];
	struct cv_of_counters *counters = &frames->of->counters;
	struct cv_of_session *session = frames->session;
	const uint8_t *messages = NULL;
	size_t bytes = 0;

	if (frame->nb_segs == 1)
		messages = cv_of_inband_open(rte_pktmbuf_mtod(frame, const uint8_t *),
			frame->data_len, cv_openflow_port_key(port), wall_clock_ns(),
			&frames->last[frames->port], &bytes);
	cv_of_count(messages != NULL ? &counters->frames : &counters->frames_refused, 1);
	if (messages == NULL)
		return;
	memcpy(session->in, messages, bytes);
	session->in_used = bytes;
	while (cv_of_session_is_due(session)) {
		cv_of_session_run(session);
		session->out_from = session->out_to = 0;
	}
}

void cv_of_frames_run(struct cv_of_frames *frames)
{
	for (unsigned i = 0; i < frames->count; i++) {
		carry_out(frames, frames->taken[i]);
		rte_pktmbuf_free(frames->taken[i]);
	}
	frames->count = 0;
}
