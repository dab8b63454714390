// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
#include "preload/dpdk/host.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_version.h>

#define EAL "librte_eal.so." // and its ABI's number

// Names of the EALs in this process, the program's and the one that the library brings along: one
// file if they are of one ABI.
struct eals {
	char first[64], other[64];
};

void cv_host_refuse(const char *library, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "convoy: %s: ", library);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(2);
}

static int note_eal(struct dl_phdr_info *info, size_t size, void *argument)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash != NULL ? slash + 1 : info->dlpi_name;
	struct eals *eals = argument;

	(void)size;
	if (strncmp(name, EAL, strlen(EAL)) != 0)
		return 0;
	if (eals->first[0] == '\0')
		snprintf(eals->first, sizeof(eals->first), "%s", name);
	else if (strcmp(name, eals->first) != 0)
		snprintf(eals->other, sizeof(eals->other), "%s", name);
	return 0;
}

void cv_host_check(const char *library)
{
	struct eals eals = {.first = ""};

	dl_iterate_phdr(note_eal, &eals);
	if (eals.other[0] != '\0')
		cv_host_refuse(library,
			"the program brings another DPDK (%s and %s are here): this library is for "
			"DPDK %d.%02d",
			eals.first, eals.other, RTE_VER_YEAR, RTE_VER_MONTH);
	// Releases between two ABIs share a name.
	if (rte_version_year() != RTE_VER_YEAR || rte_version_month() != RTE_VER_MONTH)
		cv_host_refuse(library, "the program runs on %s: this library is for DPDK %d.%02d",
			rte_version(), RTE_VER_YEAR, RTE_VER_MONTH);
}

void *cv_host_function(const char *library, const char *name)
{
	void *symbol = dlsym(RTLD_NEXT, name);

	if (symbol == NULL)
		cv_host_refuse(library,
			"%s: not there: this library is for programs that are linked with the "
			"shared libraries of DPDK %d.%02d",
			name, RTE_VER_YEAR, RTE_VER_MONTH);
	return symbol;
}
