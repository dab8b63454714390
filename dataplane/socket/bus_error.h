// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Who touches memory beyond the end of a file gets SIGBUS, which ends a process. Where the file is a
// peer's, which can make it shorter at any time, it must not.
#ifndef CV_BUS_ERROR_H
#define CV_BUS_ERROR_H

#include <stdbool.h>

// From now on replace(address) is asked, in the signal handler of the thread that touched the address:
// true: there is memory now, and the thread goes on. False, and every other SIGBUS: as before, by
// the handler that was there. Once in a process.
void cv_bus_error_handle(bool (*replace)(void *address));

// Puts zeros that nobody shares in place of a page of a mapping of which no more is known: of the
// sizes that pages come in, the smallest that the mapping can be cut at.
bool cv_bus_error_replace_page(void *address);

// Writes a line to stderr, by the first call in a process: there may be thousands of pages.
void cv_bus_error_report_once(const char *line);

#endif
