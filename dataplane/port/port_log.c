// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "port/port_log.h"

#include <stdarg.h>

void cv_port_log(struct cv_port *port, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	cv_log_limited(&port->log, "port", port->name, format, args);
	va_end(args);
}
