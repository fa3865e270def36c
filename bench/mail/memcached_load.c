/* memcached_load.c: `cssl-bench memcached`: stores values in memcached and deletes each again, over one connection, as
 * `cssl-bench queue --delete` does with messages. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <getopt.h>
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <uv.h>

#include "bench/command/command.h"
#include "bench/command/option_table.h"
#include "bench/measure/report.h"
#include "net/address.h"

#define NUMBER_MAX 1e9
#define REQUEST    64u /* bytes of a line at most */
#define REPLIES    65536u

enum memcached_output { MEMCACHED_TEXT, MEMCACHED_JSON };

struct memcached_options {
	uint64_t messages, length, window;
	enum memcached_output output;
};

/* Requests and replies are in the same order, so the replies tell which key they are for. */
struct memcached_load {
	const struct memcached_options *options;
	int fd;
	char *body, *out;
	size_t out_at, out_len, out_cap;
	char in[REPLIES];
	size_t in_len;
	uint64_t added, stored, deleted; /* values */
	uint64_t begin_ns, end_ns;       /* uv_hrtime() */
};

#define NUMBER(letter, name, member, help)                                                                             \
	OPTION_NUMBER(letter, name, "N", struct memcached_options, member, 1, NUMBER_MAX, 1, help)

static const struct option_row rows[] = {
	NUMBER('m', "messages", messages, "values in all (default 1000)"),
	NUMBER('l', "length", length, "bytes of each (default 1024)"),
	NUMBER('w', "window", window, "values at a time that are not stored yet (default 1000)"),
	OPTION_FLAG(
		0, "json", struct memcached_options, output, MEMCACHED_JSON, "the result as JSON on standard output"),
};

#define ROWS (sizeof rows / sizeof rows[0])

static void help(FILE *to)
{
	fputs("cssl-bench memcached [OPTIONS] ADDRESS: stores values in memcached over one connection, deletes each as "
	      "soon\nas it is stored, and tells how long that took.\n",
		to);
	option_table_help(to, rows, ROWS);
	fputs("\nExit status: 0; 1: it did not do all of that; 2: bad options.\n", to);
}

/* Sends what fits. 0 or -1. */
static int send_out(struct memcached_load *l)
{
	const ssize_t n = send(l->fd, l->out + l->out_at, l->out_len - l->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN ? 0 : -1;
	l->out_at += (size_t)n;
	if (l->out_at == l->out_len)
		l->out_at = l->out_len = 0;
	return 0;
}

static void line_out(struct memcached_load *l, const char *format, uint64_t key)
{
	l->out_len += (size_t)snprintf(l->out + l->out_len, REQUEST, format, key, l->options->length);
}

/* A delete that is not sent yet stands before stores that are not, so there are at most a window of both. */
static void add_more(struct memcached_load *l)
{
	while (l->added < l->options->messages && l->added - l->stored < l->options->window) {
		line_out(l, "set k%" PRIu64 " 0 0 %" PRIu64 "\r\n", l->added++);
		memcpy(l->out + l->out_len, l->body, l->options->length + 2);
		l->out_len += l->options->length + 2;
	}
}

/* 0, or -1: it is none of the replies to a success. */
static int take_reply(struct memcached_load *l, const char *line, size_t len)
{
	if (len == strlen("STORED") && memcmp(line, "STORED", len) == 0) {
		line_out(l, "delete k%" PRIu64 "\r\n", l->stored++);
		return 0;
	}
	if (len == strlen("DELETED") && memcmp(line, "DELETED", len) == 0) {
		l->deleted++;
		return 0;
	}
	fprintf(stderr, "memcached: it says %.*s\n", (int)len, line);
	return -1;
}

/* 0 or -1. */
static int receive(struct memcached_load *l)
{
	const ssize_t n = recv(l->fd, l->in + l->in_len, sizeof l->in - l->in_len, MSG_DONTWAIT);
	char *line = l->in, *end;

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -1;
	l->in_len += (size_t)n;
	while ((end = memmem(line, l->in_len - (size_t)(line - l->in), "\r\n", 2))) {
		if (take_reply(l, line, (size_t)(end - line)))
			return -1;
		line = end + 2;
	}
	l->in_len -= (size_t)(line - l->in);
	memmove(l->in, line, l->in_len);
	return 0;
}

/* What was not sent yet moves to the beginning now and then: it is at most a half of the buffer. */
static void fill_out(struct memcached_load *l)
{
	if (l->out_at > l->out_cap / 2) {
		memmove(l->out, l->out + l->out_at, l->out_len - l->out_at);
		l->out_len -= l->out_at;
		l->out_at = 0;
	}
	add_more(l);
}

static int exchange(struct memcached_load *l)
{
	l->begin_ns = uv_hrtime();
	while (l->deleted < l->options->messages) {
		struct pollfd p = { .fd = l->fd, .events = POLLIN };

		fill_out(l);
		if (l->out_len && send_out(l))
			return -1;
		p.events |= l->out_len ? POLLOUT : 0;
		if (poll(&p, 1, -1) < 0 || ((p.revents & ~POLLOUT) && receive(l)))
			return -1;
	}
	l->end_ns = uv_hrtime();
	return 0;
}

static int run(struct memcached_load *l, const struct sockaddr *to)
{
	const uint64_t length = l->options->length;

	l->out_cap = (size_t)(2 * (l->options->window + 1) * (length + 2 + 2 * REQUEST));
	l->body = malloc(length + 2);
	l->out = malloc(l->out_cap);
	l->fd = socket(to->sa_family, SOCK_STREAM, 0);
	if (!l->body || !l->out || l->fd < 0 || connect(l->fd, to, address_len(to))) {
		perror("memcached");
		return -1;
	}
	setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	memset(l->body, 'x', length);
	memcpy(l->body + length, "\r\n", 2);
	return exchange(l);
}

static int report(const struct memcached_load *l)
{
	const double seconds = report_seconds(l->begin_ns, l->end_ns), per_s = report_rate(l->deleted, seconds);

	if (l->options->output == MEMCACHED_JSON)
		return report_print_json(json_pack("{s:f, s:f, s:I, s:I}", "seconds", seconds, "per_s", per_s, "stored",
			(json_int_t)l->stored, "deleted", (json_int_t)l->deleted));
	printf("%-18s %10.3f\n%-18s %10.1f\n%-18s %10" PRIu64 "\n%-18s %10" PRIu64 "\n", "seconds", seconds,
		"messages/s", per_s, "stored", l->stored, "deleted", l->deleted);
	return 0;
}

int memcached_load_main(int argc, char **argv)
{
	static struct memcached_options options = { .messages = 1000, .length = 1024, .window = 1000 };
	static struct memcached_load load = { .options = &options, .fd = -1 };
	struct sockaddr_storage to;

	switch (option_table_parse("memcached", rows, ROWS, argc, argv, &options)) {
	case OPTIONS_HELP: help(stdout); return EXIT_SUCCESS;
	case OPTIONS_BAD: return 2;
	default: break;
	}
	if (argc - optind != 1 || address_parse(argv[optind], &to)) {
		fputs("memcached: an ADDRESS is needed\n", stderr);
		return 2;
	}
	const int r = run(&load, (const struct sockaddr *)&to);
	if (load.fd >= 0)
		close(load.fd);
	free(load.body);
	free(load.out);
	return r == 0 && report(&load) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
