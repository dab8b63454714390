// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

#include "gen/options.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: convoy-gen --port PORT [--port PORT …] [OPTION …]\n"
	"       convoy-gen --self-test[=KIND]\n"
	"\n"
	"Sends traffic into one port, receives it at another, and says what became of it.\n"
	"Reads one trial specification per line (JSON) from standard input and prints one\n"
	"JSON object per trial on standard output, until the input ends. The first line of\n"
	"output is {\"event\": \"ready\", …}, once every port is attached.\n"
	"\n"
	"Ports (numbered 0, 1, … in this order; at most 8):\n"
	"  vhost-user:/PATH    the tester plays the guest at a device's vhost-user socket\n"
	"    ,server           listen there and let the device connect\n"
	"    ,queues=N         queue pairs (1)\n"
	"    ,ring=N           descriptors of a virtqueue, a power of two (1024)\n"
	"    ,frame=BYTES      largest frame, with FCS (1518)\n"
	"    ,mem=MIB          memory for prebuilt frames (256)\n"
	"  virtio-user:/PATH   the same by DPDK's own driver (slower); ,server listens\n"
	"  memif:/PATH         a memif interface; ,server makes the socket; ,id=N (0)\n"
	"  af_packet:IFACE     an interface of the kernel, by packet sockets\n"
	"  dev:DEVARGS         any device DPDK has a driver for, by its device arguments:\n"
	"                      dev:net_ring0    dev:net_vhost0,iface=/PATH    dev:0000:01:00.0\n"
	"\n"
	"Options:\n"
	"  --core N            the core to run on (the last one this process may use)\n"
	"  --spec FILE         run the one trial in FILE and end, rather than read input\n"
	"  --self-test[=KIND]  tester to tester first: baseline rate and noise; alone, end.\n"
	"                      KIND: that of the ports (alone: vhost-user), or vhost-user,\n"
	"                      virtio-user, memif, af_packet, ring\n"
	"  --reflector-core N  for the device of vhost-user's self-test (another than --core)\n"
	"  --device-core N     where the device polls: before and after each trial, a thread of "
	"ours\n"
	"                      measures the core-to-core round trip of a cache line\n"
	"  --attach-timeout S  how long to wait for a port's peer (30)\n"
	"  --help, --version\n"
	"\n"
	"A specification (all fields optional; docs/tester.md explains each):\n"
	"  {\"rate_pps\": 1000000, \"duration_s\": 1, \"size\": 64, \"paths\": [\"0>1\"]}\n"
	"  \"rate_pps\": \"max\"    \"size\": \"imix\"    \"flows\": {\"count\": 1000}\n"
	"Sizes count the FCS, as in RFC 2544: 64 is a frame of 60 bytes on the ring.\n"
	"\n"
	"Exit status: 0 done (a failed trial says so in its result), 1 the tester failed,\n"
	"2 bad input, nothing was sent.\n";

struct given {
	cpu_set_t allowed;
	bool self_test;
	const char *kind; // of the self-test; NULL: that of the ports
};

int gen_complain(int status, const char *format, ...)
{
	va_list arguments;

	fputs("convoy-gen: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return status;
}

// The core that an option names. -1: go on.
static int take_core(const char *option, const cpu_set_t *allowed, int *core)
{
	char *end;
	const long number = strtol(optarg, &end, 10);

	if (*optarg < '0' || *optarg > '9' || *end != '\0' || number >= CPU_SETSIZE ||
		!CPU_ISSET((size_t)number, allowed))
		return gen_complain(GEN_BAD_INPUT,
			"--%s %s: not a core this process may use; `taskset -p $$` and `nproc` "
			"show them",
			option, optarg);
	*core = (int)number;
	return -1;
}

static int last_core(const cpu_set_t *allowed, int except)
{
	for (int i = CPU_SETSIZE - 1; i >= 0; i--)
		if (i != except && CPU_ISSET((size_t)i, allowed))
			return i;
	return -1;
}

enum {
	PORT = 256,
	CORE,
	SPEC,
	SELF_TEST,
	REFLECTOR_CORE,
	DEVICE_CORE,
	ATTACH_TIMEOUT,
	HELP,
	VERSION
};

// One option. -1: go on.
static int take(struct gen_options *options, struct given *given, int option)
{
	struct cv_error error = {0};
	char *end;

	switch (option) {
	case PORT:
		if (options->port_count == GEN_MAX_PORTS)
			return gen_complain(GEN_BAD_INPUT, "--port %s: at most %u ports", optarg,
				GEN_MAX_PORTS);
		if (gen_port_parse(&options->ports[options->port_count++], optarg, &error) < 0)
			return gen_complain(GEN_BAD_INPUT, "%s", error.text);
		return -1;
	case CORE:
		return take_core("core", &given->allowed, &options->core);
	case REFLECTOR_CORE:
		return take_core("reflector-core", &given->allowed, &options->reflector_core);
	case DEVICE_CORE:
		return take_core("device-core", &given->allowed, &options->device_core);
	case SPEC:
		options->spec = optarg;
		return -1;
	case SELF_TEST:
		given->self_test = true;
		given->kind = optarg;
		return -1;
	case ATTACH_TIMEOUT:
		options->attach_timeout_s = strtod(optarg, &end);
		if (end == optarg || *end != '\0' || !(options->attach_timeout_s >= 0) ||
			options->attach_timeout_s > 1e6)
			return gen_complain(
				GEN_BAD_INPUT, "--attach-timeout %s: must be seconds", optarg);
		return -1;
	case 'h':
	case HELP:
		fputs(help, stdout);
		return GEN_OK;
	case VERSION:
		printf("convoy-gen %s\n", CONVOY_VERSION);
		return GEN_OK;
	default:
		return gen_complain(GEN_BAD_INPUT, "see convoy-gen --help");
	}
}

// Which kind of self-test: the one that was named, or that of the ports.
static int choose_self_test(struct gen_options *options, const struct given *given)
{
	const char *names;

	options->self_test =
		gen_loopback_find(given->kind != NULL ? given->kind : "vhost-user", &names);
	if (options->self_test == NULL)
		return gen_complain(
			GEN_BAD_INPUT, "--self-test=%s: is none of: %s", given->kind, names);
	for (uint32_t i = 0; given->kind == NULL && i < options->port_count; i++) {
		const struct gen_loopback_kind *kind = gen_loopback_of(&options->ports[i]);

		if (kind == NULL || (i > 0 && kind != options->self_test))
			return gen_complain(GEN_BAD_INPUT,
				"--self-test: port %s %s; say which it shall be, --self-test=KIND: "
				"%s",
				options->ports[i].text,
				kind == NULL ? "has no self-test of its own"
					     : "is of another kind than the one before",
				names);
		options->self_test = kind;
	}
	if (options->self_test->needs_reflector &&
		(options->reflector_core < 0 || options->reflector_core == options->core))
		return gen_complain(GEN_BAD_INPUT,
			"--self-test=%s: needs two cores; this process may use only one",
			options->self_test->name);
	return -1;
}

// What no option shows alone. -1: go on.
static int check_together(struct gen_options *options, const struct given *given)
{
	if (options->spec != NULL && options->port_count == 0)
		return gen_complain(GEN_BAD_INPUT, "--spec needs a --port to send to");
	if (options->port_count == 0 && !given->self_test)
		return gen_complain(GEN_BAD_INPUT, "no --port; see convoy-gen --help");
	if (options->spec != NULL && access(options->spec, R_OK) < 0)
		return gen_complain(GEN_BAD_INPUT, "--spec %s: %s", options->spec, strerror(errno));
	for (uint32_t i = 0; i < options->port_count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(options->ports[i].place, options->ports[j].place) == 0)
				return gen_complain(GEN_BAD_INPUT, "--port %s: given twice",
					options->ports[i].text);
	if (options->core < 0)
		options->core = last_core(&given->allowed, options->reflector_core >= 0
								   ? options->reflector_core
								   : options->device_core);
	if (options->reflector_core < 0)
		options->reflector_core = last_core(&given->allowed, options->core);
	if (options->device_core >= 0 && options->device_core == options->core)
		return gen_complain(GEN_BAD_INPUT,
			"--device-core %d: is the tester's own (--core); name the device's, or "
			"none",
			options->device_core);
	return given->self_test ? choose_self_test(options, given) : -1;
}

int gen_options_parse(int argc, char **argv, struct gen_options *options)
{
	static const struct option known[] = {
		{"port", required_argument, NULL, PORT},
		{"core", required_argument, NULL, CORE},
		{"spec", required_argument, NULL, SPEC},
		{"self-test", optional_argument, NULL, SELF_TEST},
		{"reflector-core", required_argument, NULL, REFLECTOR_CORE},
		{"device-core", required_argument, NULL, DEVICE_CORE},
		{"attach-timeout", required_argument, NULL, ATTACH_TIMEOUT},
		{"help", no_argument, NULL, HELP},
		{"version", no_argument, NULL, VERSION},
		{0},
	};
	struct given given = {0};

	*options = (struct gen_options){
		.core = -1, .reflector_core = -1, .device_core = -1, .attach_timeout_s = 30};
	sched_getaffinity(0, sizeof(given.allowed), &given.allowed);
	for (int option; (option = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
		const int status = take(options, &given, option);

		if (status >= 0)
			return status;
	}
	if (optind < argc)
		return gen_complain(
			GEN_BAD_INPUT, "%s: not an option; see convoy-gen --help", argv[optind]);
	return check_together(options, &given);
}

void gen_options_free(struct gen_options *options)
{
	for (uint32_t i = 0; i < options->port_count; i++)
		gen_port_option_free(&options->ports[i]);
}
