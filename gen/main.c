// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

// convoy-gen: trials from standard input, results on standard output, one JSON object a line.

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gen/input.h"
#include "gen/options.h"
#include "gen/port/dataplane_port.h"
#include "gen/port/monitor.h"
#include "gen/selftest/selftest.h"
#include "gen/trial/attach.h"

static struct gen_tester tester;

static void on_signal(int number)
{
	tester.stop = number;
}

// As much of the core as we may have, if that is wanted: whoever may not, goes on without. The
// scheduler ranks whole sessions first, so one that is only ours is raised too.
static int raise_priority(void)
{
	const char *wanted = getenv("CONVOY_PRIORITY");

	if (wanted != NULL && strcmp(wanted, "normal") == 0)
		return GEN_OK;
	if (wanted != NULL && strcmp(wanted, "high") != 0)
		return gen_complain(
			GEN_BAD_INPUT, "CONVOY_PRIORITY: '%s' is neither high nor normal", wanted);
	setpriority(PRIO_PROCESS, 0, -20);
	if (getsid(0) != getpid())
		return GEN_OK;
	FILE *file = fopen("/proc/self/autogroup", "w");
	if (file != NULL) {
		fputs("-19", file);
		fclose(file);
	}
	return GEN_OK;
}

// Onto our core: by DPDK, where a port needs that, whose own threads then stay away from it.
static int take_core(const struct gen_options *options)
{
	bool dpdk = options->self_test != NULL && options->self_test->needs_dpdk;
	struct cv_error error = {0};
	bool pci = false;
	cpu_set_t core;

	for (uint32_t i = 0; i < options->port_count; i++)
		dpdk |= gen_port_needs_dpdk(&options->ports[i], &pci);
	if (dpdk && gen_dataplane_begin((uint32_t)options->core, pci, &error) != 0)
		return gen_complain(GEN_FAILED, "%s", error.text);
	CPU_ZERO(&core);
	CPU_SET((size_t)options->core, &core);
	if (sched_setaffinity(0, sizeof(core), &core) < 0)
		return gen_complain(GEN_FAILED, "--core %d: %s", options->core, strerror(errno));
	return GEN_OK;
}

static int set_up(const struct gen_options *options)
{
	struct sigaction action = {.sa_handler = on_signal};
	int error = raise_priority();

	if (error != GEN_OK)
		return error;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	tester.clock = gen_clock_measure();
	// A start that differs from run to run keeps an earlier tester's frames apart.
	tester.next_magic = (uint16_t)(gen_ticks() ^ (uint64_t)getpid() << 4);
	error = gen_monitor_start();
	if (error < 0)
		return gen_complain(GEN_FAILED, "cannot start a thread: %s", strerror(-error));
	if (options->device_core >= 0) {
		tester.probe = gen_probe_start((uint32_t)options->device_core);
		if (tester.probe == NULL)
			return gen_complain(GEN_FAILED,
				"--device-core %d: cannot start a thread there: %s",
				options->device_core, strerror(errno));
	}
	return take_core(options);
}

static int open_ports(const struct gen_options *options)
{
	struct cv_error error = {0};

	for (uint32_t i = 0; i < options->port_count; i++) {
		struct gen_port *port = calloc(1, sizeof(*port));

		if (port == NULL)
			return gen_complain(GEN_FAILED, "out of memory");
		if (gen_port_open(port, &options->ports[i], &error) < 0) {
			free(port);
			return gen_complain(GEN_BAD_INPUT, "%s", error.text);
		}
		tester.ports[tester.port_count++] = port;
	}
	if (!gen_attach(&tester, options->attach_timeout_s, &error))
		return gen_complain(GEN_FAILED, "%s", tester.stop ? "interrupted" : error.text);
	return GEN_OK;
}

static int run(const struct gen_options *options, struct gen_context *context)
{
	const struct gen_input input = {&tester, context, options->attach_timeout_s};
	struct cv_error error = {0};
	int status = set_up(options);

	if (status != GEN_OK)
		return status;
	if (options->self_test != NULL) {
		context->self_test = gen_self_test(&tester, context, options->self_test,
			(uint32_t)options->reflector_core, &error);
		if (context->self_test == NULL)
			return gen_complain(GEN_FAILED, "%s", error.text);
		gen_print(json_incref(context->self_test));
		if (options->port_count == 0)
			return GEN_OK;
	}
	status = open_ports(options);
	if (status != GEN_OK)
		return status;
	gen_print(json_pack("{s:s, s:s, s:i, s:i}", "schema", "convoy.event/1", "event", "ready",
		"core", options->core, "ports", (int)tester.port_count));
	return options->spec != NULL ? gen_input_file(&input, options->spec)
				     : gen_input_lines(&input);
}

int main(int argc, char **argv)
{
	struct gen_options options;
	int status = gen_options_parse(argc, argv, &options);

	if (status < 0) {
		struct gen_context context = {.core = (uint32_t)options.core,
			.device_core = options.device_core,
			.argv = argv};

		status = run(&options, &context);
		for (uint32_t i = 0; i < tester.port_count; i++) {
			tester.ports[i]->close(tester.ports[i]);
			free(tester.ports[i]);
		}
		gen_probe_stop(tester.probe);
		gen_dataplane_end();
		json_decref(context.self_test);
	}
	gen_options_free(&options);
	if (status == GEN_OK && (fflush(stdout) != 0 || ferror(stdout)))
		return gen_complain(GEN_FAILED, "standard output: %s", strerror(errno));
	return status;
}
