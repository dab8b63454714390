// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// convoyd: reads a plan, runs it until told to stop or until its captures end, prints the counts.
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/control/server.h"
#include "daemon/counts.h"
#include "daemon/flow_store.h"
#include "daemon/handover.h"
#include "daemon/history.h"
#include "daemon/methods.h"
#include "daemon/node.h"
#include "daemon/node_openflow.h"
#include "daemon/node_sandbox.h"
#include "daemon/notify.h"
#include "daemon/plan.h"
#include "daemon/plan_eal.h"
#include "daemon/plan_next.h"
#include "daemon/process.h"
#include "daemon/running.h"
#include "daemon/scale.h"
#include "daemon/standby.h"
#include "daemon/state.h"
#include "daemon/stop_signals.h"
#include "daemon/telemetry.h"
#include "daemon/why.h"
#include "port/eal.h"

#define EXIT_FAILED 1
#define EXIT_BAD_INPUT 2

static const char usage[] =
	"Usage: convoyd [OPTIONS] PLAN\n"
	"\n"
	"Runs the network functions that PLAN describes (JSON, '-' for standard input; `convoy\n"
	"check FILE --plan` makes one from a chain descriptor). Prints {\"event\": \"ready\", ...} "
	"on\n"
	"standard output when packets are being forwarded. SIGINT or SIGTERM drain and stop it; "
	"so\n"
	"does the end of its captures, where every port that it receives from is one. Then it "
	"prints\n"
	"the final counts as one JSON object. A second signal ends it at once.\n"
	"\n"
	"  --functions        print the types of function, their parameters and drop reasons\n"
	"  --check            check the plan, its functions' configuration included, print what "
	"its\n"
	"                     flows take, and run nothing\n"
	"  --result FILE      write the final counts to FILE, not to standard output\n"
	"  --state DIR        keep what runs in a folder, and start with what ran last\n"
	"  --keep-flows       the service manager keeps flows, for a start after it was killed\n"
	"  --handover FD      take over from the running node at that socket (convoy handover)\n"
	"  --instead-of FILE  the plan that the running node runs, if it is another one\n"
	"  --log-level LEVEL  DPDK's own log: error (default), warning, notice, info, debug\n"
	"  --stop-deadline S  end at once if stopping takes longer than S seconds, 10 by default\n"
	"  --core-dumps       may be debugged and leave a core dump\n"
	"  --no-sandbox       keep all rights after start, for debugging\n"
	"  -h, --help         this text\n"
	"\n"
	"Exit codes: 0 ran and stopped as asked, 1 failed, 2 bad plan or option (nothing was "
	"started).\n";

struct options {
	bool check;
	const char *result;
	const char *state;
	bool keep_flows;
	const char *log_level;
	unsigned stop_deadline_s;
	bool no_sandbox, core_dumps;
	int handover; // a socket; -1: none
	const char *instead_of;
	const char *plan;
};

static int fail(int code, const struct cv_error *error)
{
	fprintf(stderr, "convoyd: %s\n", error->text);
	return code;
}

static bool read_seconds(const char *text, unsigned *seconds)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < 1 || value > 3600) {
		fprintf(stderr, "convoyd: --stop-deadline: %s: give seconds, 1 to 3600\n", text);
		return false;
	}
	*seconds = (unsigned)value;
	return true;
}

static bool read_descriptor(const char *text, int *fd)
{
	char *end;
	const unsigned long value = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < 3 || value > INT_MAX ||
		fcntl((int)value, F_SETFD, FD_CLOEXEC) != 0) {
		fprintf(stderr,
			"convoyd: --handover: %s: is no open descriptor; use `convoy handover`\n",
			text);
		return false;
	}
	*fd = (int)value;
	return true;
}

static bool complain(const char *path)
{
	fprintf(stderr, "convoyd: %s: %s\n", path != NULL ? path : "standard output",
		strerror(errno));
	return false;
}

// The exit code of a command whose only purpose is to print.
static int printed(void)
{
	return (fflush(stdout) == 0 && !ferror(stdout)) || complain(NULL) ? 0 : EXIT_FAILED;
}

// On one line; takes the reference.
static void print_json(json_t *json)
{
	json_dumpf(json, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(json);
}

// 0, or the exit code + 1 of a command that ends here.
static int parse(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{"functions", no_argument, NULL, 'f'},
		{"check", no_argument, NULL, 'c'},
		{"result", required_argument, NULL, 'r'},
		{"state", required_argument, NULL, 's'},
		{"keep-flows", no_argument, NULL, 'k'},
		{"handover", required_argument, NULL, 'h' + 256},
		{"instead-of", required_argument, NULL, 'i'},
		{"log-level", required_argument, NULL, 'l'},
		{"stop-deadline", required_argument, NULL, 'd'},
		{"no-sandbox", no_argument, NULL, 'n'},
		{"core-dumps", no_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (option) {
		case 'f':
			print_json(cv_nf_describe());
			return 1 + printed();
		case 'c':
			options->check = true;
			break;
		case 'r':
			options->result = optarg;
			break;
		case 's':
			options->state = optarg;
			break;
		case 'k':
			options->keep_flows = true;
			break;
		case 'h' + 256:
			if (!read_descriptor(optarg, &options->handover))
				return 1 + EXIT_BAD_INPUT;
			break;
		case 'i':
			options->instead_of = optarg;
			break;
		case 'l':
			options->log_level = optarg;
			break;
		case 'd':
			if (!read_seconds(optarg, &options->stop_deadline_s))
				return 1 + EXIT_BAD_INPUT;
			break;
		case 'n':
			options->no_sandbox = true;
			break;
		case 'o':
			options->core_dumps = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 1 + printed();
		default:
			fputs("Try 'convoyd --help'.\n", stderr);
			return 1 + EXIT_BAD_INPUT;
		}
	}
	if (optind != argc - 1) {
		fprintf(stderr, "convoyd: give one plan; try 'convoyd --help'\n");
		return 1 + EXIT_BAD_INPUT;
	}
	options->plan = argv[optind];
	if (options->keep_flows && !options->check && getenv("NOTIFY_SOCKET") == NULL) {
		fprintf(stderr, "convoyd: --keep-flows: NOTIFY_SOCKET is not set: no service "
				"manager keeps them; start it as a service, or without it\n");
		return 1 + EXIT_BAD_INPUT;
	}
	return 0;
}

// Before rights are given up. NULL: standard output.
static FILE *open_result(const char *path)
{
	FILE *to = path != NULL ? fopen(path, "we") : stdout;

	if (to == NULL)
		complain(path);
	return to;
}

// The final counts, to the file or standard output. False if that could not be written.
static bool write_counts(json_t *counts, FILE *to, const char *path)
{
	if (json_dumpf(counts, to, JSON_COMPACT) != 0 || fputc('\n', to) == EOF || fflush(to) != 0)
		return complain(path);
	return to == stdout || fclose(to) == 0 || complain(path);
}

// What the node does not need any more. 0 or a negative errno.
static int give_up_rights(
	struct cv_node *node, const struct options *options, struct cv_error *error)
{
	if (!options->no_sandbox)
		return cv_node_sandbox_enter(
			node->plan, options->core_dumps, &node->sandbox, error);
	fputs("convoyd: note: no sandbox: it keeps all its rights (--no-sandbox)\n", stderr);
	return 0;
}

// Tells the service manager that the node is alive. Whether it has ended.
static bool has_ended(struct cv_notify *notify)
{
	struct cv_node *node = cv_running_take();
	const bool ended = cv_node_ended(node);

	cv_notify_alive(notify, node);
	cv_flow_store_due(node);
	if (node != NULL)
		cv_scale_due(node);
	cv_running_give();
	return ended;
}

static void wait_for_end(struct cv_notify *notify)
{
	const struct timespec time = {.tv_nsec = 5000000};

	while (!cv_stop_signals_came() && cv_handover_given_to() == 0 && !has_ended(notify)) {
		nanosleep(&time, NULL);
		cv_history_due();
		cv_why_due();
	}
}

// What a running node does goes over to this one.
static int take_over(struct cv_node *node, int fd, struct cv_error *error)
{
	int rc;

	print_json(json_pack("{s:s}", "event", "prepared"));
	rc = cv_handover_take(node, fd, error);
	return rc != 0 ? rc : cv_handover_take_over(node, fd, error);
}

// The plan that the running node runs, as a new reference: this one's, unless an option says otherwise.
static json_t *read_running(
	const struct options *options, const struct cv_plan *plan, struct cv_error *error)
{
	json_error_t why;
	json_t *running;

	if (options->instead_of == NULL)
		return json_incref(plan->json);
	running = json_load_file(options->instead_of, JSON_REJECT_DUPLICATES, &why);
	if (!json_is_object(running)) {
		cv_error_set(error, "--instead-of: %s: is no plan: %s", options->instead_of,
			running == NULL ? why.text : "no object");
		json_decref(running);
		return NULL;
	}
	return running;
}

static void print_ready(
	const struct cv_node *node, const struct cv_control *control, const struct options *options)
{
	json_t *ready = json_pack("{s:s, s:s, s:s, s:s, s:b, s:o}", "event", "ready", "control",
		cv_control_path(control), "read", cv_control_reading_path(control), "telemetry",
		cv_eal_telemetry_path(), "hugepages", node->plan->hugepages, "sandbox",
		cv_counts_sandbox(node));

	if (options->handover >= 0)
		json_object_set_new(ready, "handover", cv_handover_describe());
	if (options->keep_flows)
		json_object_set_new(ready, "flows", cv_flow_store_describe());
	print_json(ready);
	if (options->handover >= 0)
		cv_handover_finish(options->handover);
}

// The node has stopped: its counts, unless another one goes on with them. The exit code.
static int finish(const struct cv_node *node, FILE *result, const char *path)
{
	json_t *counts = cv_counts(node);
	const bool conserved = cv_counts_conserved(json_object_get(counts, "accounting"));
	bool written = true;

	if (cv_handover_given_to() != 0)
		print_json(json_pack(
			"{s:s, s:i}", "event", "handed over", "pid", cv_handover_given_to()));
	else
		written = write_counts(counts, result, path);
	json_decref(counts);
	if (!conserved)
		fputs("convoyd: packets are not conserved: some were lost uncounted\n", stderr);
	return conserved && written ? 0 : EXIT_FAILED;
}

// A standby waits, until it is to forward. False: it is to end.
static bool wait_as_standby(
	struct cv_node *node, struct cv_notify *notify, const struct cv_control *control)
{
	if (!cv_standby_waits())
		return true;
	print_json(json_pack("{s:s, s:s, s:s}", "event", "standby", "control",
		cv_control_path(control), "read", cv_control_reading_path(control)));
	cv_notify_tell(notify, "READY=1\nSTATUS=standby: forwards nothing");
	if (!cv_standby_wait(node, notify))
		return false;
	cv_notify_tell(notify, "STATUS=active");
	return true;
}

// Waits until all flows came back, which packets do not wait for, and has them kept from now on.
static void keep_flows(struct cv_node *node, struct cv_notify *notify)
{
	const struct timespec time = {.tv_nsec = 1000000};

	if (!cv_flow_store_restored(node))
		print_json(json_pack("{s:s}", "event", "forwarding"));
	while (!cv_flow_store_restored(node) && !cv_stop_signals_came()) {
		cv_notify_alive(notify, node);
		nanosleep(&time, NULL);
	}
	cv_flow_store_begin(node, notify);
}

// Packets flow, with the flows of a process that was killed, or of the active node.
static void begin_forwarding(
	struct cv_node *node, struct cv_notify *notify, const struct options *options)
{
	if (options->keep_flows)
		cv_flow_store_restore(node);
	cv_standby_restore(node);
	cv_node_forward(node);
	if (options->keep_flows)
		keep_flows(node, notify);
}

// Whether the node forwarded before this process was started, and does not wait to be active.
static bool was_active(const struct options *options)
{
	return options->handover >= 0 || (options->keep_flows && cv_flow_store_has_some());
}

static int forward(struct cv_node *node, struct cv_control *control, struct cv_of_server **openflow,
	const struct options *options, struct cv_error *error)
{
	struct cv_notify notify;
	FILE *result = open_result(options->result);

	if (result == NULL)
		return EXIT_FAILED;
	cv_history_begin(node);
	if (cv_notify_open(&notify, error) != 0 || cv_node_connect(node, error) != 0 ||
		cv_node_openflow_open(node, openflow, error) != 0 ||
		cv_standby_open(node->plan, was_active(options), error) != 0 ||
		cv_node_start(node, error) != 0 || give_up_rights(node, options, error) != 0 ||
		cv_control_start(control, error) != 0)
		return fail(EXIT_FAILED, error);
	if (!wait_as_standby(node, &notify, control)) {
		cv_notify_close(&notify);
		return finish(node, result, options->result);
	}
	if (options->handover < 0)
		begin_forwarding(node, &notify, options);
	else if (take_over(node, options->handover, error) != 0)
		return fail(EXIT_FAILED, error);
	if (options->handover >= 0 && options->keep_flows)
		cv_flow_store_begin(node, &notify);
	cv_handover_begin(&notify);
	cv_state_begin(node);
	cv_running_set(node);
	if (*openflow != NULL && cv_of_server_start(*openflow, error) != 0)
		fail(EXIT_FAILED, error);
	if (cv_standby_give_begin(error) != 0)
		fail(EXIT_FAILED, error);
	cv_telemetry_begin();
	print_ready(node, control, options);
	cv_notify_tell(&notify, "READY=1");
	wait_for_end(&notify);
	if (cv_handover_given_to() == 0)
		cv_notify_tell(&notify, "STOPPING=1");
	cv_standby_end();
	cv_running_set(NULL);
	if (cv_handover_given_to() == 0)
		cv_flow_store_end();
	cv_notify_close(&notify);
	cv_why_end(node);
	if (cv_handover_given_to() == 0)
		cv_node_stop(node);
	else
		cv_node_join(node);
	return finish(node, result, options->result);
}

static int run(struct cv_node *node, const struct options *options, struct cv_error *error)
{
	const struct cv_socket_access access = node->plan->control, reading = node->plan->telemetry;
	const struct cv_control_config config = {
		.folder = cv_eal_folder(),
		.version = CV_VERSION,
		.control = &access,
		.reading = &reading,
		.rpc = {.methods = cv_methods},
	};
	struct cv_control *control = cv_control_open(&config, error);
	struct cv_of_server *openflow = NULL;
	int rc;

	if (control == NULL)
		return fail(EXIT_FAILED, error);
	rc = forward(node, control, &openflow, options, error);
	cv_standby_end();
	node->openflow = NULL;
	cv_of_server_close(openflow);
	cv_control_close(control);
	cv_history_end();
	return rc;
}

// Of what ran last, else of the plan. The one that is not used is freed.
static struct cv_node *make_node(
	struct cv_plan **plan, struct cv_plan *last, struct cv_error *error)
{
	struct cv_error why = {0};
	struct cv_node *node = last == NULL ? NULL : cv_node_make(last, &why);

	if (last != NULL && node == NULL)
		cv_state_refused(why.text);
	if (node == NULL) {
		cv_plan_free(last);
		return cv_node_make(*plan, error);
	}
	cv_plan_free(*plan);
	*plan = last;
	return node;
}

int main(int argc, char **argv)
{
	struct options options = {.log_level = "error", .stop_deadline_s = 10, .handover = -1};
	struct cv_error error = {0};
	struct cv_node *node;
	struct cv_plan *plan, *last = NULL;
	json_t *running;
	int rc;

	// Else each thread that serves a client keeps an arena of what it once needed: 10 MB of rules.
	mallopt(M_ARENA_MAX, 1);
	cv_process_remember(argv + 1);
	rc = parse(argc, argv, &options);
	if (rc != 0)
		return rc - 1;
	if (options.keep_flows)
		cv_flow_store_open();
	signal(SIGPIPE, SIG_IGN); // a peer's socket that went away is an error, not the end
	plan = cv_plan_read(options.plan, &error);
	if (plan == NULL)
		return fail(EXIT_BAD_INPUT, &error);
	running = read_running(&options, plan, &error);
	if (running == NULL ||
		cv_node_sandbox_check(plan, !options.check && !options.no_sandbox, &error) != 0) {
		json_decref(running);
		cv_plan_free(plan);
		return fail(EXIT_BAD_INPUT, &error);
	}
	if (!options.check) { // before the workers' cores are taken from this thread
		// Of a node that takes over the running one's comes along.
		cv_state_open(options.handover < 0 ? options.state : NULL, plan);
		last = cv_state_plan(plan);
	}
	if (cv_stop_signals_start(options.stop_deadline_s, &error) != 0 ||
		cv_plan_eal_start(plan, options.check, options.log_level, &error) != 0) {
		json_decref(running);
		cv_plan_free(last);
		cv_plan_free(plan);
		return fail(EXIT_FAILED, &error);
	}
	node = make_node(&plan, last, &error);
	if (node == NULL) {
		rc = fail(EXIT_BAD_INPUT, &error);
		cv_plan_free(plan);
	} else if (!options.check) {
		if (options.handover >= 0)
			cv_handover_expect(plan, running);
		rc = run(node, &options, &error);
	} else {
		print_json(json_pack("{s:s, s:o, s:o}", "event", "checked", "flows",
			cv_node_flows_plan(node), "differences",
			cv_plan_all_differences(running, plan->json)));
		rc = printed();
	}
	json_decref(running);
	cv_node_free(node);
	cv_state_close();
	cv_eal_stop();
	return rc;
}
