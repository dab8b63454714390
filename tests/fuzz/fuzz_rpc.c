// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Any bytes as a request to the control sockets, with the methods of a node that is ending: each is
// answered by one line of JSON that has a result or an error with a number of ours, or wants no
// answer. On the socket for reading no method that changes is called.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/rpc.h"
#include "daemon/methods.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check(char *line, bool may_change)
{
	const size_t length = strlen(line);
	json_t *answer = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	const json_t *error = json_object_get(answer, "error");
	const json_int_t code = json_integer_value(json_object_get(error, "code"));

	must(length > 0 && line[length - 1] == '\n' && strchr(line, '\n') == line + length - 1);
	must(json_is_object(answer) && json_object_get(answer, "id") != NULL);
	must((error == NULL) == (json_object_get(answer, "result") != NULL));
	must(error == NULL || (code <= -32000 && code >= -32700 &&
				      json_is_string(json_object_get(error, "message"))));
	must(code != CV_RPC_READ_ONLY || !may_change);
	json_decref(answer);
	free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct cv_rpc rpc = {.methods = cv_methods};

	for (int may_change = 0; may_change < 2; may_change++) {
		char *line = cv_rpc_answer(&rpc, may_change, (const char *)data, size, -1);

		if (line != NULL)
			check(line, may_change);
	}
	return 0;
}
