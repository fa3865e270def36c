/* resume_storm.c: many TLS clients that connect, close and come back, on blocking sockets and a few threads.
 *
 *   resume_storm --to HOST:PORT... [--clients N] [--threads N] [--version 1.2|1.3] [--ca PEM] [--server-name NAME]
 *                [--sources N] [--get PATH] [--timeout-ms N]
 *
 * Reads commands from standard input, one a line, and answers each with one line of JSON:
 *
 *   full       each client makes a full handshake and keeps its session
 *   resume     each client connects once more, offering the session it kept
 *   storm K    each client makes a full handshake and at once K more connections, offering the newest session each time
 *   to HOST:PORT    from now on all connections go there (no answer)
 *
 *   {"full": N, "resumed": N, "failed": N, "errors": {"what": N}, "ms": N}    as the clients saw it
 *
 * A TLS 1.3 client closes only when it has its ticket. With several --to, each connection of a client goes to the next
 * one. With --sources N clients connect from 127.0.0.1 to 127.0.0.N. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TARGETS_MAX 16u
#define THREADS_MAX 64u
#define ERRORS_MAX  16u
#define ERROR_LEN   160u
#define ANSWER_CAP  16384u

static struct {
	struct sockaddr_in to[TARGETS_MAX];
	unsigned to_count, clients, threads, sources, timeout_ms;
	const char *server_name, *path;
} options = { .clients = 100, .threads = 8, .sources = 1, .timeout_ms = 20000, .server_name = "localhost" };

struct client {
	SSL_SESSION *session; /* the newest, or NULL */
	unsigned connections;
};

/* The state of one connection. */
struct attempt {
	SSL_SESSION *fresh; /* came with it */
	const char *step;   /* under way, or failed */
	char error[ERROR_LEN];
};

enum outcome { OUTCOME_FULL, OUTCOME_RESUMED, OUTCOME_FAILED, OUTCOME_COUNT };

struct error_count {
	char text[ERROR_LEN];
	unsigned count;
};

struct tally {
	unsigned of[OUTCOME_COUNT];
	struct error_count errors[ERRORS_MAX]; /* the last takes all further kinds */
};

/* The threads of a command share these. */
struct phase {
	enum { SESSIONS_FORGOTTEN, SESSIONS_OFFERED } sessions;
	unsigned reconnections;
	atomic_uint next;
};

struct part {
	pthread_t thread;
	struct phase *phase;
	struct tally tally;
};

static SSL_CTX *ctx;
static int attempt_slot; /* ex_data of an SSL: its struct attempt */
static struct client *clients;

static void die(const char *what)
{
	fprintf(stderr, "resume_storm: %s\n", what);
	exit(2);
}

/* --- one connection --- */

static int failed(struct attempt *a, const char *why)
{
	char reason[120];
	const unsigned long code = ERR_peek_error();

	ERR_error_string_n(code, reason, sizeof(reason));
	snprintf(a->error, sizeof(a->error), "%s: %.100s", a->step, code ? reason : why);
	ERR_clear_error();
	return -1;
}

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct attempt *a = SSL_get_ex_data(ssl, attempt_slot);

	SSL_SESSION_free(a->fresh);
	a->fresh = session;
	return 1;
}

/* -1, or the connected socket. */
static int open_socket(struct attempt *a, unsigned number, const struct sockaddr_in *to)
{
	struct timeval limit = { .tv_sec = options.timeout_ms / 1000, .tv_usec = options.timeout_ms % 1000 * 1000 };
	struct sockaddr_in from = { .sin_family = AF_INET };
	const int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a->step = "connect";
	if (fd < 0)
		return failed(a, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* Ports are chosen at connect, so that two clients may have the same one towards different targets. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number % options.sources);
	if ((options.sources == 1 || bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0) &&
		connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0)
		return fd;
	failed(a, strerror(errno));
	close(fd);
	return -1;
}

/* Without SSL_MODE_AUTO_RETRY, SSL_read comes back after each record that was no data: also after a ticket. */
static int read_ticket(struct attempt *a, SSL *ssl)
{
	char byte;

	a->step = "ticket";
	while (!a->fresh) {
		errno = 0;
		const int r = SSL_read(ssl, &byte, 1);
		if (r > 0)
			return failed(a, "data that nobody asked for");
		if (SSL_get_error(ssl, r) != SSL_ERROR_WANT_READ)
			return failed(a, "the server closed");
		if (!a->fresh && errno == EAGAIN)
			return failed(a, "timed out");
	}
	return 0;
}

/* The length of the answer in @text, or 0 while its head is not complete. */
static size_t answer_len(const char *text)
{
	static const char field[] = "\r\nContent-Length: ";
	const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, field);

	if (!end || !length || length > end)
		return 0;
	return (size_t)(end + 4 - text) + strtoul(length + sizeof(field) - 1, NULL, 10);
}

static int get(struct attempt *a, SSL *ssl)
{
	char request[256], answer[ANSWER_CAP];
	size_t got = 0, whole = 0;
	const int len = snprintf(
		request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", options.path, options.server_name);

	a->step = "request";
	if (SSL_write(ssl, request, len) != len)
		return failed(a, "cut");
	while (whole == 0 || got < whole) {
		errno = 0;
		const int r =
			got < sizeof(answer) - 1 ? SSL_read(ssl, answer + got, (int)(sizeof(answer) - 1 - got)) : 0;
		if (r <= 0 && SSL_get_error(ssl, r) == SSL_ERROR_WANT_READ && errno != EAGAIN)
			continue;
		if (r <= 0)
			return failed(a, errno == EAGAIN ? "timed out" : "cut or too long");
		got += (size_t)r;
		answer[got] = '\0';
		whole = answer_len(answer);
	}
	return got == whole && strncmp(answer, "HTTP/1.1 200 ", 13) == 0 ? 0 : failed(a, "not the answer expected");
}

static enum outcome converse(struct attempt *a, SSL *ssl)
{
	a->step = "handshake";
	errno = 0;
	if (SSL_connect(ssl) != 1)
		return failed(a, errno == EAGAIN ? "timed out" : "cut"), OUTCOME_FAILED;
	if (options.path && get(a, ssl) < 0)
		return OUTCOME_FAILED;
	if (SSL_version(ssl) >= TLS1_3_VERSION && read_ticket(a, ssl) < 0)
		return OUTCOME_FAILED;
	const enum outcome outcome = SSL_session_reused(ssl) ? OUTCOME_RESUMED : OUTCOME_FULL;
	SSL_shutdown(ssl);
	return outcome;
}

/* Connects as client @number, keeps the session that came. */
static enum outcome come(struct client *c, unsigned number, struct attempt *a)
{
	const int fd = open_socket(a, number, &options.to[(number + c->connections++) % options.to_count]);
	SSL *ssl = fd < 0 ? NULL : SSL_new(ctx);
	enum outcome outcome = OUTCOME_FAILED;

	if (ssl) {
		SSL_set_ex_data(ssl, attempt_slot, a);
		SSL_set_tlsext_host_name(ssl, options.server_name);
		SSL_set1_host(ssl, options.server_name);
		SSL_set_fd(ssl, fd);
		if (c->session)
			SSL_set_session(ssl, c->session);
		outcome = converse(a, ssl);
		SSL_free(ssl);
	}
	if (fd >= 0)
		close(fd);
	if (a->fresh) {
		SSL_SESSION_free(c->session);
		c->session = a->fresh;
	}
	return outcome;
}

/* --- all of them --- */

static void count_error(struct tally *t, const char *text, unsigned count)
{
	struct error_count *e = t->errors;

	while (e < t->errors + ERRORS_MAX - 1 && e->count > 0 && strcmp(e->text, text) != 0)
		e++;
	snprintf(e->text, sizeof(e->text), "%s", e < t->errors + ERRORS_MAX - 1 ? text : "others");
	e->count += count;
}

static void *run_part(void *arg)
{
	struct part *part = arg;
	struct phase *phase = part->phase;
	unsigned number;

	while ((number = atomic_fetch_add(&phase->next, 1)) < options.clients) {
		struct client *c = &clients[number];
		if (phase->sessions == SESSIONS_FORGOTTEN) {
			SSL_SESSION_free(c->session);
			c->session = NULL;
		}
		for (unsigned i = 0; i <= phase->reconnections; i++) {
			struct attempt attempt = { 0 };
			const enum outcome outcome = come(c, number, &attempt);
			part->tally.of[outcome]++;
			if (outcome == OUTCOME_FAILED)
				count_error(&part->tally, attempt.error, 1);
		}
	}
	return NULL;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void report(const struct tally *t, uint64_t ms)
{
	json_t *errors = json_object();

	for (const struct error_count *e = t->errors; e < t->errors + ERRORS_MAX && e->count > 0; e++)
		json_object_set_new(errors, e->text, json_integer(e->count));
	json_t *out = json_pack("{s:i, s:i, s:i, s:o, s:I}", "full", (int)t->of[OUTCOME_FULL], "resumed",
		(int)t->of[OUTCOME_RESUMED], "failed", (int)t->of[OUTCOME_FAILED], "errors", errors, "ms",
		(json_int_t)ms);
	json_dumpf(out, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(out);
}

static void run_phase(struct phase *phase)
{
	static struct part parts[THREADS_MAX];
	struct tally sum = { 0 };
	const uint64_t start = now_ms();

	memset(parts, 0, sizeof(parts));
	for (unsigned i = 0; i < options.threads; i++) {
		parts[i].phase = phase;
		if (pthread_create(&parts[i].thread, NULL, run_part, &parts[i]) != 0)
			die("no thread");
	}
	for (unsigned i = 0; i < options.threads; i++) {
		pthread_join(parts[i].thread, NULL);
		for (unsigned j = 0; j < OUTCOME_COUNT; j++)
			sum.of[j] += parts[i].tally.of[j];
		for (const struct error_count *e = parts[i].tally.errors;
			e < parts[i].tally.errors + ERRORS_MAX && e->count > 0; e++)
			count_error(&sum, e->text, e->count);
	}
	report(&sum, now_ms() - start);
}

static void add_target(const char *text)
{
	char host[INET_ADDRSTRLEN];
	unsigned port = 0;
	struct sockaddr_in *to = &options.to[options.to_count];

	if (options.to_count == TARGETS_MAX || sscanf(text, "%15[0-9.]:%u", host, &port) != 2 ||
		inet_pton(AF_INET, host, &to->sin_addr) != 1)
		die("--to takes an IPv4 address and a port");
	to->sin_family = AF_INET;
	to->sin_port = htons((uint16_t)port);
	options.to_count++;
}

static void run_command(const char *line)
{
	struct phase phase = { .sessions = SESSIONS_FORGOTTEN };

	if (strncmp(line, "to ", 3) == 0) {
		options.to_count = 0;
		add_target(line + 3);
		return;
	}
	if (strcmp(line, "resume\n") == 0)
		phase.sessions = SESSIONS_OFFERED;
	else if (strcmp(line, "full\n") != 0 && sscanf(line, "storm %u\n", &phase.reconnections) != 1)
		die("commands are listed atop resume_storm.c");
	run_phase(&phase);
}

/* --- options --- */

static unsigned count_of(const char *text, unsigned max)
{
	const unsigned long n = strtoul(text, NULL, 10);

	if (n < 1 || n > max)
		die("a number is out of range");
	return (unsigned)n;
}

static void set_version(const char *text)
{
	const int version = strcmp(text, "1.2") == 0 ? TLS1_2_VERSION : strcmp(text, "1.3") == 0 ? TLS1_3_VERSION : 0;

	if (!version)
		die("--version is 1.2 or 1.3");
	SSL_CTX_set_min_proto_version(ctx, version);
	SSL_CTX_set_max_proto_version(ctx, version);
}

static void set_ca(const char *path)
{
	if (SSL_CTX_load_verify_file(ctx, path) != 1)
		die("--ca cannot be read");
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
}

static const struct option long_options[] = {
	{ "to", required_argument, NULL, 't' },
	{ "clients", required_argument, NULL, 'c' },
	{ "threads", required_argument, NULL, 'n' },
	{ "version", required_argument, NULL, 'v' },
	{ "ca", required_argument, NULL, 'a' },
	{ "server-name", required_argument, NULL, 's' },
	{ "sources", required_argument, NULL, 'o' },
	{ "get", required_argument, NULL, 'g' },
	{ "timeout-ms", required_argument, NULL, 'm' },
	{ NULL, 0, NULL, 0 },
};

static void set_option(int option)
{
	switch (option) {
	case 't': add_target(optarg); break;
	case 'c': options.clients = count_of(optarg, 1000000); break;
	case 'n': options.threads = count_of(optarg, THREADS_MAX); break;
	case 'v': set_version(optarg); break;
	case 'a': set_ca(optarg); break;
	case 's': options.server_name = optarg; break;
	case 'o': options.sources = count_of(optarg, 250); break;
	case 'g': options.path = optarg; break;
	case 'm': options.timeout_ms = count_of(optarg, 600000); break;
	default: die("options are listed atop resume_storm.c");
	}
}

int main(int argc, char **argv)
{
	char line[64];
	int option;

	signal(SIGPIPE, SIG_IGN);
	ctx = SSL_CTX_new(TLS_client_method());
	attempt_slot = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		set_option(option);
	if (options.to_count == 0 || !(clients = calloc(options.clients, sizeof(*clients))))
		die("--to HOST:PORT is needed");
	while (fgets(line, sizeof(line), stdin))
		run_command(line);
	for (unsigned i = 0; i < options.clients; i++)
		SSL_SESSION_free(clients[i].session);
	free(clients);
	SSL_CTX_free(ctx);
	return 0;
}
