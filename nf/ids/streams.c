// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The memory of streams: all of it is taken at first.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nf/ids/stream.h"

int cv_ids_streams_make(struct cv_ids_streams *streams, const hs_database_t *hs,
	uint32_t connections, uint32_t buffers, uint32_t window)
{
	const size_t bytes = (size_t)window * 2;

	streams->connection = calloc(connections, sizeof(*streams->connection));
	streams->free_connection = calloc(connections, sizeof(*streams->free_connection));
	streams->free_buffer = calloc(buffers, sizeof(*streams->free_buffer));
	streams->buffers = calloc(buffers, CV_IDS_SEGMENT_MAX);
	streams->windows = calloc(connections, 2 * bytes);
	if (streams->connection == NULL || streams->free_connection == NULL ||
		streams->free_buffer == NULL || streams->buffers == NULL ||
		streams->windows == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < buffers; i++)
		streams->free_buffer[streams->free_buffers++] = (uint16_t)i;
	for (uint32_t i = 0; i < connections; i++) {
		streams->free_connection[streams->free_connections++] = i;
		streams->connections++;
		for (unsigned way = 0; way < 2; way++) {
			struct cv_ids_stream *stream = &streams->connection[i].way[way];

			stream->window = streams->windows + (2 * (size_t)i + way) * bytes;
			if (hs_open_stream(hs, 0, &stream->hs) != HS_SUCCESS)
				return -ENOMEM;
		}
	}
	return 0;
}

void cv_ids_streams_free(struct cv_ids_streams *streams)
{
	for (uint32_t i = 0; i < streams->connections; i++)
		for (unsigned way = 0; way < 2; way++)
			if (streams->connection[i].way[way].hs != NULL)
				hs_close_stream(
					streams->connection[i].way[way].hs, NULL, NULL, NULL);
	free(streams->connection);
	free(streams->free_connection);
	free(streams->free_buffer);
	free(streams->buffers);
	free(streams->windows);
}

uint32_t cv_ids_streams_take(struct cv_ids_streams *streams)
{
	return streams->free_connections == 0
		       ? 0
		       : streams->free_connection[--streams->free_connections] + 1;
}

void cv_ids_streams_give(struct cv_ids_streams *streams, uint32_t number)
{
	struct cv_ids_connection *connection = &streams->connection[number - 1];

	for (unsigned way = 0; way < 2; way++)
		cv_ids_stream_clear(streams, &connection->way[way]);
	streams->free_connection[streams->free_connections++] = number - 1;
}

void cv_ids_stream_clear(struct cv_ids_streams *streams, struct cv_ids_stream *stream)
{
	for (unsigned i = 0; i < stream->waiting_count; i++)
		streams->free_buffer[streams->free_buffers++] = stream->waiting[i].buffer;
	hs_reset_stream(stream->hs, 0, NULL, NULL, NULL);
	*stream = (struct cv_ids_stream){.hs = stream->hs, .window = stream->window};
}
