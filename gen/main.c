// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors

// convoy-gen: trials from standard input, results on standard output, one JSON object a line.

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "ethdev_port.h"
#include "monitor.h"
#include "ports.h"
#include "result.h"
#include "selftest.h"

#define OK 0
#define FAILED 1
#define BAD_INPUT 2

#define IDLE_MS 50
#define REATTACH_NS 20000000ull
#define SPEC_MAX (1 << 20)

static const char help[] =
	"Usage: convoy-gen --port PORT [--port PORT …] [OPTION …]\n"
	"       convoy-gen --self-test\n"
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
	"  dev:DEVARGS         any device DPDK has a driver for, by its device arguments:\n"
	"                      dev:net_memif0,role=client,socket=/run/m.sock\n"
	"                      dev:net_af_packet0,iface=veth0    dev:0000:01:00.0\n"
	"\n"
	"Options:\n"
	"  --core N            the core to run on (the last one this process may use)\n"
	"  --spec FILE         run the one trial in FILE and end, rather than read input\n"
	"  --self-test         tester to tester first: its ceiling and its noise; alone, end\n"
	"  --reflector-core N  for the self-test's device (another core than --core)\n"
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

static struct gen_tester tester;

static void on_signal(int number)
{
	tester.stop = number;
}

static int __attribute__((format(printf, 2, 3))) complain(int status, const char *format, ...)
{
	va_list arguments;

	fputs("convoy-gen: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return status;
}

static void print(json_t *object)
{
	json_dumpf(object, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	fputc('\n', stdout);
	fflush(stdout);
	json_decref(object);
}

// An answer even where the message quotes what is no UTF-8, or was cut in the middle of it.
static void print_bad_spec(char *error, json_t *json)
{
	json_t *reason = json_string(error);

	if (reason == NULL) {
		for (char *c = error; *c != '\0'; c++)
			*c = *c < ' ' ? '?' : *c;
		reason = json_string(error);
	}
	print(json_pack("{s:s, s:b, s:s, s:o, s:O?}", "schema", "convoy.trial/1", "ok", false,
		"reason_code", "bad_spec", "reason", reason, "spec", json));
}

struct options {
	uint32_t port_count;
	struct gen_port_option ports[GEN_MAX_PORTS];
	const char *spec;
	bool self_test;
	int core, reflector_core; // -1: choose
	double attach_timeout_s;
};

static bool parse_core(const char *text, const cpu_set_t *allowed, int *core)
{
	char *end;
	const long number = strtol(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || number >= CPU_SETSIZE ||
		!CPU_ISSET((size_t)number, allowed))
		return false;
	*core = (int)number;
	return true;
}

static int last_core(const cpu_set_t *allowed, int except)
{
	for (int i = CPU_SETSIZE - 1; i >= 0; i--)
		if (i != except && CPU_ISSET((size_t)i, allowed))
			return i;
	return -1;
}

enum { PORT = 256, CORE, SPEC, SELF_TEST, REFLECTOR_CORE, ATTACH_TIMEOUT, HELP, VERSION };

// -1: go on; otherwise the exit status.
static int parse_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{"port", required_argument, NULL, PORT},
		{"core", required_argument, NULL, CORE},
		{"spec", required_argument, NULL, SPEC},
		{"self-test", no_argument, NULL, SELF_TEST},
		{"reflector-core", required_argument, NULL, REFLECTOR_CORE},
		{"attach-timeout", required_argument, NULL, ATTACH_TIMEOUT},
		{"help", no_argument, NULL, HELP},
		{"version", no_argument, NULL, VERSION},
		{0},
	};
	cpu_set_t allowed;
	char error[512], *end;

	*options = (struct options){.core = -1, .reflector_core = -1, .attach_timeout_s = 30};
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int option; (option = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
		switch (option) {
		case PORT:
			if (options->port_count == GEN_MAX_PORTS)
				return complain(BAD_INPUT, "--port %s: at most %u ports", optarg,
					GEN_MAX_PORTS);
			if (gen_port_parse(&options->ports[options->port_count++], optarg, error,
				    sizeof(error)) < 0)
				return complain(BAD_INPUT, "%s", error);
			break;
		case CORE:
		case REFLECTOR_CORE:
			if (!parse_core(optarg, &allowed,
				    option == CORE ? &options->core : &options->reflector_core))
				return complain(BAD_INPUT,
					"--%s %s: not a core this process may use; `taskset -p $$` "
					"and `nproc` show them",
					option == CORE ? "core" : "reflector-core", optarg);
			break;
		case SPEC:
			options->spec = optarg;
			break;
		case SELF_TEST:
			options->self_test = true;
			break;
		case ATTACH_TIMEOUT:
			options->attach_timeout_s = strtod(optarg, &end);
			if (end == optarg || *end != '\0' || !(options->attach_timeout_s >= 0) ||
				options->attach_timeout_s > 1e6)
				return complain(
					BAD_INPUT, "--attach-timeout %s: must be seconds", optarg);
			break;
		case 'h':
		case HELP:
			fputs(help, stdout);
			return OK;
		case VERSION:
			printf("convoy-gen %s\n", CONVOY_VERSION);
			return OK;
		default:
			return complain(BAD_INPUT, "see convoy-gen --help");
		}
	}
	if (optind < argc)
		return complain(
			BAD_INPUT, "%s: not an option; see convoy-gen --help", argv[optind]);
	if (options->spec != NULL && options->port_count == 0)
		return complain(BAD_INPUT, "--spec needs a --port to send to");
	if (options->port_count == 0 && !options->self_test)
		return complain(BAD_INPUT, "no --port; see convoy-gen --help");
	if (options->spec != NULL && access(options->spec, R_OK) < 0)
		return complain(BAD_INPUT, "--spec %s: %s", options->spec, strerror(errno));
	for (uint32_t i = 0; i < options->port_count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(options->ports[i].path, options->ports[j].path) == 0)
				return complain(BAD_INPUT, "--port %s: given twice",
					options->ports[i].text);
	if (options->core < 0)
		options->core = last_core(&allowed, options->reflector_core);
	if (options->reflector_core < 0)
		options->reflector_core = last_core(&allowed, options->core);
	if (options->self_test &&
		(options->reflector_core < 0 || options->reflector_core == options->core))
		return complain(BAD_INPUT, "--self-test: needs two cores; this process may use "
					   "only one");
	return -1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool all_attached(void)
{
	for (uint32_t i = 0; i < tester.port_count; i++) {
		if (tester.ports[i]->check != NULL)
			tester.ports[i]->check(tester.ports[i]);
		if (atomic_load_explicit(&tester.ports[i]->gone, memory_order_acquire))
			return false;
	}
	return true;
}

// Attaches what is not, in turn and a little at a time: a device may connect to our ports in any
// order. false: not before the deadline, or interrupted; `error` says which port.
static bool attach_all(uint64_t deadline_ns, char *error, size_t error_size)
{
	do {
		for (uint32_t i = 0; i < tester.port_count; i++) {
			struct gen_port *port = tester.ports[i];

			if (!atomic_load_explicit(&port->gone, memory_order_acquire))
				continue;
			if (port->attach(port, now_ns() + REATTACH_NS, error, error_size) ==
				-ERANGE)
				return false;
		}
		if (all_attached())
			return true;
	} while (now_ns() < deadline_ns && !tester.stop);
	return false;
}

static int run_trial(const struct gen_context *context, json_t *json, double attach_timeout_s)
{
	char error[512] = "";
	struct gen_trial trial = {0};
	struct gen_spec spec;
	int status = BAD_INPUT;

	if (gen_spec_parse(&spec, json, tester.port_count, error, sizeof(error)) < 0) {
		complain(0, "%s", error);
		print_bad_spec(error, json);
		gen_spec_free(&spec);
		return BAD_INPUT;
	}
	if (!all_attached()) {
		fprintf(stderr, "convoy-gen: a port's peer is away, waiting for it\n");
		const uint64_t patience = (uint64_t)(attach_timeout_s * 1e9);
		attach_all(now_ns() + patience, error, sizeof(error));
	}
	if (spec.warmup_s > 0) {
		struct gen_spec warmup = spec;
		warmup.drain_s = 0;
		gen_trial_run(&tester, &warmup, spec.warmup_s, &trial, error, sizeof(error));
		gen_trial_free(&trial);
	}
	if (gen_trial_run(&tester, &spec, spec.duration_s, &trial, error, sizeof(error)) == 0) {
		if (trial.reason_code[0] != '\0')
			fprintf(stderr, "convoy-gen: trial failed: %s\n", trial.reason);
		print(gen_result(&tester, context, &spec, &trial));
		status = OK;
	} else {
		complain(0, "%s", error);
		print_bad_spec(error, json);
	}
	gen_trial_free(&trial);
	gen_spec_free(&spec);
	return status;
}

static int run_text(const struct gen_context *context, const char *text, size_t length,
	const char *name, double attach_timeout_s)
{
	char error[256];
	json_error_t where;
	json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);

	if (json == NULL) {
		complain(0, "%s: not JSON: %s (column %d)", name, where.text, where.column);
		snprintf(error, sizeof(error), "spec: not JSON: %.200s", where.text);
		print_bad_spec(error, NULL);
		return BAD_INPUT;
	}
	const int status = run_trial(context, json, attach_timeout_s);
	json_decref(json);
	return status;
}

static int run_file(const struct gen_context *context, const struct options *options)
{
	static char text[SPEC_MAX];
	FILE *file = fopen(options->spec, "r");

	if (file == NULL)
		return complain(BAD_INPUT, "--spec %s: %s", options->spec, strerror(errno));
	const size_t length = fread(text, 1, sizeof(text), file);
	fclose(file);
	return run_text(context, text, length, options->spec, options->attach_timeout_s);
}

// Lines from standard input; between them, ports whose peer went away are attached again.
static int run_input(const struct gen_context *context, const struct options *options)
{
	static char text[SPEC_MAX];
	size_t have = 0;
	int status = OK;
	char error[512];

	while (!tester.stop) {
		struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
		char *end = memchr(text, '\n', have);

		if (end != NULL) {
			const size_t length = (size_t)(end - text);
			if (strspn(text, " \t\r") < length &&
				run_text(context, text, length, "standard input",
					options->attach_timeout_s) != OK)
				status = BAD_INPUT;
			have -= length + 1;
			memmove(text, end + 1, have);
			continue;
		}
		if (have == sizeof(text))
			return complain(BAD_INPUT, "standard input: a line of more than 1 MiB");
		if (!all_attached())
			attach_all(now_ns(), error, sizeof(error));
		if (poll(&ready, 1, IDLE_MS) <= 0)
			continue;
		const ssize_t got = read(STDIN_FILENO, text + have, sizeof(text) - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			if (have == 0)
				return status;
			text[have++] = '\n';
			continue;
		}
		have += (size_t)got;
	}
	return status;
}

// As much of the core as we may have: whoever may not, goes on without. The scheduler ranks whole
// sessions first, so one that is only ours is raised too.
static void raise_priority(void)
{
	setpriority(PRIO_PROCESS, 0, -20);
	if (getsid(0) != getpid())
		return;
	FILE *file = fopen("/proc/self/autogroup", "w");
	if (file != NULL) {
		fputs("-19", file);
		fclose(file);
	}
}

static int set_up(const struct options *options)
{
	struct sigaction action = {.sa_handler = on_signal};
	cpu_set_t core;
	int error;

	raise_priority();
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	tester.clock = gen_clock_measure();
	// A start that differs from run to run keeps an earlier tester's frames apart.
	tester.next_magic = (uint16_t)(gen_ticks() ^ (uint64_t)getpid() << 4);
	error = gen_monitor_start();
	if (error < 0)
		return complain(FAILED, "cannot start a thread: %s", strerror(-error));
	CPU_ZERO(&core);
	CPU_SET((size_t)options->core, &core);
	if (sched_setaffinity(0, sizeof(core), &core) < 0)
		return complain(FAILED, "--core %d: %s", options->core, strerror(errno));
	return OK;
}

static int open_ports(const struct options *options)
{
	char error[512];

	for (uint32_t i = 0; i < options->port_count; i++) {
		struct gen_port *port = calloc(1, sizeof(*port));

		if (port == NULL)
			return complain(FAILED, "out of memory");
		if (gen_port_open(port, &options->ports[i], (uint32_t)options->core, error,
			    sizeof(error)) < 0) {
			free(port);
			return complain(BAD_INPUT, "%s", error);
		}
		tester.ports[tester.port_count++] = port;
	}
	if (!attach_all(
		    now_ns() + (uint64_t)(options->attach_timeout_s * 1e9), error, sizeof(error)))
		return complain(FAILED, "%s", tester.stop ? "interrupted" : error);
	return OK;
}

static int run(const struct options *options, struct gen_context *context)
{
	char error[512];
	int status = set_up(options);

	if (status != OK)
		return status;
	if (options->self_test) {
		context->self_test = gen_self_test(
			&tester, context, (uint32_t)options->reflector_core, error, sizeof(error));
		if (context->self_test == NULL)
			return complain(FAILED, "%s", error);
		print(json_incref(context->self_test));
		if (options->port_count == 0)
			return OK;
	}
	status = open_ports(options);
	if (status != OK)
		return status;
	print(json_pack("{s:s, s:s, s:i, s:i}", "schema", "convoy.event/1", "event", "ready",
		"core", options->core, "ports", (int)tester.port_count));
	return options->spec != NULL ? run_file(context, options) : run_input(context, options);
}

int main(int argc, char **argv)
{
	struct options options;
	int status = parse_options(argc, argv, &options);

	if (status >= 0)
		return status;
	struct gen_context context = {.core = (uint32_t)options.core, .argv = argv};
	status = run(&options, &context);
	for (uint32_t i = 0; i < tester.port_count; i++) {
		tester.ports[i]->close(tester.ports[i]);
		free(tester.ports[i]);
	}
	gen_ethdev_finish();
	json_decref(context.self_test);
	return status;
}
