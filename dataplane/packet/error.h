// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// Why something was refused, in one line for the person who must fix it: the file and line or
// the option, the value, and the fix. The first error wins: later ones are its consequences.
#ifndef CV_ERROR_H
#define CV_ERROR_H

#include <stdarg.h>
#include <stdio.h>

struct cv_error {
	char text[512]; // empty: no error
};

__attribute__((format(printf, 2, 3))) static inline void cv_error_set(
	struct cv_error *error, const char *format, ...)
{
	va_list args;

	if (error == NULL || error->text[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
}

#endif
