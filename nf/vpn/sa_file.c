// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 The Convoy authors
//
// The file of security associations: one a line, its direction and SPI, then words and their values in any
// order:
//
//   out 0x1001 policy branch local 192.0.2.1 peer 198.51.100.1 key 0x00..13 esn yes
//   in  0x2001 policy branch local 192.0.2.1 key 0x00..13 window 1024
//
// Its keys are worth as much as the traffic: a file that others may read is refused, and no message repeats
// what stands in it.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nf/vpn/aggfrag.h"
#include "packet/ipv4.h"
#include "packet/ipv6.h"

#define FILE_MAX_BYTES (8 << 20)
#define BLANKS " \t\r"
#define WORDS                                                                                   \
	"policy local peer key esn aggregate window udp ttl dscp df soft-packets hard-packets " \
	"soft-bytes "                                                                           \
	"hard-bytes"

// The file while it is read.
struct reader {
	struct cv_vpn *vpn;
	const struct cv_vpn *running; // NULL: none
	const struct cv_nf_env *env;
	const char *path;
	unsigned line;
	struct cv_error *error;
};

// A line.
struct row {
	struct reader *reader;
	struct cv_sa sa;
	struct cv_sa_key key;
	unsigned seen; // words, a bit each
	bool has_local, copies_df;
};

static int refuse(const struct reader *reader, const char *what, const char *must)
{
	cv_error_set(reader->error, "%s: sa_file: %s:%u: %s: %s", reader->env->name, reader->path,
		reader->line, what, must);
	return -EINVAL;
}

// Reads "123" or "0x7b".
static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, text[1] == 'x' ? 16 : 10);
	return errno == 0 && *end == '\0' && *value >= least && *value <= most;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_key(struct row *row, const char *text)
{
	size_t digits;

	if (text[0] == '0' && (text[1] | 0x20) == 'x')
		text += 2;
	digits = strlen(text);
	if (digits != 2 * (16 + CV_GCM_SALT_LEN) && digits != 2 * (32 + CV_GCM_SALT_LEN))
		return false;
	for (size_t i = 0; i < digits; i += 2) {
		const int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return false;
		row->key.bytes[i / 2] = (uint8_t)(high << 4 | low);
	}
	row->key.len = (uint8_t)(digits / 2 - CV_GCM_SALT_LEN);
	return true;
}

static bool read_address(const char *text, struct cv_address *address)
{
	rte_be32_t v4;

	if (cv_address_parse(text, address) != 0)
		return false;
	memcpy(&v4, address->bytes, sizeof(v4));
	return address->v6 ? !cv_ipv6_martian(address->bytes) : !cv_ipv4_martian(v4);
}

static bool read_policy(struct row *row, const char *text)
{
	const struct cv_vpn *vpn = row->reader->vpn;

	for (size_t i = 1; i <= vpn->policies; i++)
		if (vpn->policy[i].name != NULL && strcmp(vpn->policy[i].name, text) == 0 &&
			vpn->policy[i].action == CV_VPN_PROTECT)
			row->sa.policy = (uint32_t)i;
	return row->sa.policy != 0;
}

static bool read_local(struct row *row, const char *text)
{
	row->has_local = true;
	return read_address(text, &row->sa.local);
}

static bool read_peer(struct row *row, const char *text)
{
	row->sa.has_peer = true;
	return read_address(text, &row->sa.peer);
}

static bool read_esn(struct row *row, const char *text)
{
	row->sa.esn = strcmp(text, "yes") == 0;
	return row->sa.esn || strcmp(text, "no") == 0;
}

static bool read_aggregate(struct row *row, const char *text)
{
	row->sa.aggregate = strcmp(text, "yes") == 0;
	return row->sa.aggregate || strcmp(text, "no") == 0;
}

static bool read_window(struct row *row, const char *text)
{
	uint64_t value;

	if (!read_number(text, 64, CV_REPLAY_WINDOW_MAX, &value) || (value & (value - 1)) != 0)
		return false;
	row->sa.window = (uint16_t)value;
	return true;
}

static bool read_udp(struct row *row, const char *text)
{
	uint64_t value;

	if (!read_number(text, 1, UINT16_MAX, &value))
		return false;
	row->sa.udp = (uint16_t)value;
	return true;
}

static bool read_ttl(struct row *row, const char *text)
{
	uint64_t value;

	if (!read_number(text, 1, UINT8_MAX, &value))
		return false;
	row->sa.ttl = (uint8_t)value;
	return true;
}

static bool read_dscp(struct row *row, const char *text)
{
	uint64_t value;

	if (!read_number(text, 0, 63, &value))
		return false;
	row->sa.dscp = (int16_t)value;
	return true;
}

static bool read_df(struct row *row, const char *text)
{
	static const char *const words[] = {"copy", "set", "clear"};

	for (unsigned i = 0; i < RTE_DIM(words); i++)
		if (strcmp(text, words[i]) == 0) {
			row->sa.df = (enum cv_sa_df)i;
			row->copies_df = row->sa.df == CV_SA_DF_COPY;
			return true;
		}
	return false;
}

static bool read_limit(uint64_t *limit, const char *text)
{
	return read_number(text, 1, UINT64_MAX, limit);
}

static bool read_soft_packets(struct row *row, const char *text)
{
	return read_limit(&row->sa.limits.soft_packets, text);
}

static bool read_hard_packets(struct row *row, const char *text)
{
	return read_limit(&row->sa.limits.hard_packets, text);
}

static bool read_soft_bytes(struct row *row, const char *text)
{
	return read_limit(&row->sa.limits.soft_bytes, text);
}

static bool read_hard_bytes(struct row *row, const char *text)
{
	return read_limit(&row->sa.limits.hard_bytes, text);
}

static const struct word {
	const char *name;
	bool (*read)(struct row *row, const char *text);
	const char *must;
	enum { BOTH, OUT, IN } of;
} words[] = {
	{"policy", read_policy, "must be the name of a policy that protects", BOTH},
	{"local", read_local, "must be an address of the node", BOTH},
	{"peer", read_peer, "must be the peer's address", BOTH},
	{"key", read_key,
		"must be 40 or 72 hexadecimal digits: 16 or 32 bytes of AES key and 4 of salt",
		BOTH},
	{"esn", read_esn, "must be yes or no", BOTH},
	{"aggregate", read_aggregate, "must be yes or no", BOTH},
	{"window", read_window, "must be a power of two from 64 to 4096", IN},
	{"udp", read_udp, "must be the peer's port", OUT},
	{"ttl", read_ttl, "must be from 1 to 255", OUT},
	{"dscp", read_dscp, "must be from 0 to 63", OUT},
	{"df", read_df, "must be copy, set or clear", OUT},
	{"soft-packets", read_soft_packets, "must be a number of packets", BOTH},
	{"hard-packets", read_hard_packets, "must be a number of packets", BOTH},
	{"soft-bytes", read_soft_bytes, "must be a number of bytes", BOTH},
	{"hard-bytes", read_hard_bytes, "must be a number of bytes", BOTH},
};

static int read_word(struct row *row, const char *name, const char *text)
{
	const struct reader *reader = row->reader;

	for (unsigned i = 0; i < RTE_DIM(words); i++) {
		const struct word *word = &words[i];

		if (strcmp(name, word->name) != 0)
			continue;
		if (row->seen >> i & 1)
			return refuse(reader, word->name, "is there twice; remove one");
		row->seen |= 1u << i;
		if (word->of != BOTH && (word->of == OUT) != row->sa.outbound)
			return refuse(reader, word->name,
				word->of == OUT ? "is for direction out; remove it"
						: "is for direction in; remove it");
		if (text == NULL || !word->read(row, text))
			return refuse(reader, word->name, word->must);
		return 0;
	}
	return refuse(reader, "a word is not known", "they are " WORDS);
}

static int check_row(const struct row *row)
{
	const struct cv_sa *sa = &row->sa;

	if (sa->policy == 0)
		return refuse(row->reader, "policy", "is missing");
	if (!row->has_local)
		return refuse(row->reader, "local", "is missing");
	if (row->key.len == 0)
		return refuse(row->reader, "key", "is missing");
	if (sa->outbound && !sa->has_peer)
		return refuse(row->reader, "peer", "is missing; packets out go there");
	if (sa->has_peer && sa->peer.v6 != sa->local.v6)
		return refuse(row->reader, "peer", "must be of the IP version of local");
	if (sa->aggregate && row->copies_df)
		return refuse(row->reader, "df",
			"cannot be copy with aggregate yes: a packet outside has many inside; "
			"write set or clear");
	return 0;
}

static int add_spi(struct reader *reader, uint32_t spi)
{
	struct cv_spi_table *table = &reader->vpn->spis;
	uint32_t at = spi * UINT32_C(0x9e3779b1) >> 16;

	for (; table->place[at & table->mask].spi != 0; at++)
		if (table->place[at & table->mask].spi == spi)
			return refuse(reader, "the SPI", "is another association's that is in");
	table->place[at & table->mask] =
		(struct cv_spi_place){.spi = spi, .sa = (uint32_t)reader->vpn->sas};
	return 0;
}

static int add_local(struct reader *reader, const struct cv_address *local)
{
	struct cv_vpn *vpn = reader->vpn;

	for (unsigned i = 0; i < vpn->locals; i++)
		if (memcmp(&vpn->local[i], local, sizeof(*local)) == 0)
			return 0;
	if (vpn->locals == CV_VPN_LOCALS_MAX)
		return refuse(reader, "local", "is one address too many; 16 are possible");
	vpn->local[vpn->locals++] = *local;
	return 0;
}

// Two that are out would count apart: one key would have each number twice.
static bool has_twin(const struct row *row)
{
	const struct cv_vpn *vpn = row->reader->vpn;

	for (size_t i = 0; i < vpn->sas; i++)
		if (cv_sa_state_is(vpn->sa[i].state, &row->sa, &row->key))
			return true;
	return false;
}

// Puts an association that is right into the function.
static int add_row(struct row *row)
{
	struct reader *reader = row->reader;
	struct cv_vpn *vpn = reader->vpn;
	struct cv_sa *to = &vpn->sa[vpn->sas];
	int rc;

	if (row->sa.outbound && vpn->policy[row->sa.policy].out != NULL)
		return refuse(reader, "policy", "has an association out already; remove one");
	if (row->sa.outbound && has_twin(row))
		return refuse(reader, "the SPI and the key",
			"are another association's that is out; write another key");
	rc = row->sa.outbound ? 0 : add_spi(reader, row->sa.spi);
	if (rc == 0 && !row->sa.outbound)
		rc = add_local(reader, &row->sa.local);
	if (rc != 0)
		return rc;
	row->sa.state = cv_sa_state_get(&row->sa, &row->key,
		reader->running != NULL ? reader->running->sa : NULL,
		reader->running != NULL ? reader->running->sas : 0, reader->env->socket);
	if (row->sa.state == NULL)
		return -ENOMEM;
	if (row->sa.aggregate && !cv_aggfrag_make(&row->sa, reader->env->socket)) {
		cv_sa_state_put(row->sa.state);
		return -ENOMEM;
	}
	*to = row->sa;
	if (to->outbound) {
		cv_sa_header_make(to, vpn->udp_port);
		vpn->policy[to->policy].out = to;
		vpn->has_plain |= !to->aggregate;
	}
	vpn->sas++;
	return 0;
}

static int read_line(struct reader *reader, char *line)
{
	struct row row = {.reader = reader, .sa = {.window = 1024, .ttl = 64, .dscp = -1}};
	char *save = NULL, *word = strtok_r(line, BLANKS, &save);
	uint64_t spi;
	int rc = 0;

	if (word == NULL || word[0] == '#')
		return 0;
	row.sa.outbound = strcmp(word, "out") == 0;
	if (!row.sa.outbound && strcmp(word, "in") != 0)
		return refuse(reader, "the first word", "must be in or out");
	word = strtok_r(NULL, BLANKS, &save);
	if (word == NULL || !read_number(word, CV_VPN_SPI_MIN, UINT32_MAX, &spi))
		return refuse(reader, "the second word",
			"must be the SPI, a number from 256 to 4294967295");
	row.sa.spi = (uint32_t)spi;
	while (rc == 0 && (word = strtok_r(NULL, BLANKS, &save)) != NULL)
		rc = read_word(&row, word, strtok_r(NULL, BLANKS, &save));
	if (rc == 0)
		rc = check_row(&row);
	if (rc == 0 && reader->vpn->sas == CV_VPN_SAS_MAX)
		rc = refuse(reader, "the line", "is one association too many; 4096 are possible");
	if (rc == 0)
		rc = add_row(&row);
	explicit_bzero(&row.key, sizeof(row.key));
	return rc;
}

// The file's bytes, with a zero behind them, and how many. NULL with error set. One that is in no folder, a
// copy that came with a request, nobody else can open.
static char *read_file(const struct reader *reader, size_t *len)
{
	const int fd = open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *why = NULL;
	char *text = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		why = strerror(errno);
	else if (!S_ISREG(st.st_mode))
		why = "is no file";
	else if (st.st_nlink > 0 && (st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		why = "others may read or write it, and it has keys; chmod 600 it";
	else if (st.st_uid != geteuid() && st.st_uid != 0)
		why = "is another user's, and it has keys; chown it to the node's";
	else if (st.st_size > FILE_MAX_BYTES)
		why = "is longer than 8 MiB";
	else if ((text = calloc(1, (size_t)st.st_size + 1)) == NULL)
		why = "no memory to read it";
	for (*len = 0; why == NULL && *len < (size_t)st.st_size;) {
		const ssize_t n = read(fd, text + *len, (size_t)st.st_size - *len);

		if (n < 0)
			why = strerror(errno);
		if (n <= 0)
			break;
		*len += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	if (why != NULL) {
		cv_error_set(
			reader->error, "%s: sa_file: %s: %s", reader->env->name, reader->path, why);
		free(text);
		return NULL;
	}
	return text;
}

static int make_tables(struct cv_vpn *vpn)
{
	vpn->sa = calloc(CV_VPN_SAS_MAX, sizeof(*vpn->sa));
	vpn->spis.mask = 4 * CV_VPN_SAS_MAX - 1;
	vpn->spis.place = calloc(vpn->spis.mask + 1u, sizeof(*vpn->spis.place));
	return vpn->sa != NULL && vpn->spis.place != NULL ? 0 : -ENOMEM;
}

int cv_vpn_read_sas(struct cv_vpn *vpn, const char *path, const struct cv_vpn *running,
	const struct cv_nf_env *env, struct cv_error *error)
{
	struct reader reader = {
		.vpn = vpn, .running = running, .env = env, .path = path, .error = error};
	int rc = make_tables(vpn);
	char *text, *next;
	size_t len;

	if (rc != 0)
		return rc;
	text = read_file(&reader, &len);
	if (text == NULL)
		return -EINVAL;
	if (strlen(text) != len)
		rc = refuse(&reader, "the file", "has a zero byte");
	for (char *line = text; rc == 0 && line != NULL; line = next) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		reader.line++;
		rc = read_line(&reader, line);
	}
	explicit_bzero(text, len);
	free(text);
	if (rc == -ENOMEM)
		cv_error_set(error, "%s: no memory, random numbers or cipher for its associations",
			env->name);
	return rc;
}
