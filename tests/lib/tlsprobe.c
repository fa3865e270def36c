/* tlsprobe.c: a TLS client that tests drive from outside. Reads commands from standard input, one a line, and answers
 * each with one line of JSON on standard output; {"ok": false, "error": ...} when a command could not be done. What the
 * peer does is a result, not an error.
 *
 *   connect to=HOST:PORT [source=HOST]          answers with its own address
 *   handshake [version=1.2|1.3] [suite=NAME] [groups=] [sni=] [alpn=a,b] [ca=PEM] [cert=PEM key=PEM]
 *             [session=FILE] [tickets=off] [max_fragment=N] [ccs=off] [text="said right behind Finished"]
 *             [record_len=N]    handshake messages in records of up to N bytes, which may hold several
 *   save_session file=FILE        waits for a ticket
 *   send text=|hex=|bytes=N [key_update=before|after|both]        in one write with the data
 *   read [bytes=N] [until=TEXT]   plaintext (raw bytes before the handshake)
 *   end [until=tls]               reads on until the peer ends its TCP connection (or TLS); says how
 *   get|put|post path=/5 [host=] [headers=] [bytes=N] [rate=BYTES_PER_S] [key_update_every=BYTES] [method=]
 *   echo bytes=N [rate=] [key_update_every=]
 *   key_update [request=1], close_notify, fin, rst, close, renegotiate, state
 *   pace bytes=N every_ms=M       of what is sent from now on, in pieces; bytes=0: no limit
 *   raw text=|hex=                bytes on the wire as they are
 *   forge type=N [outer=N] [version=N] [text=|hex=|zeros=N] [padding=N] [tag=wrong] [count=N] [step=1]
 *             a record with valid keys and whatever content; from then on OpenSSL writes no more.
 *             step: the keys step behind it
 * All take timeout_ms (default 10000).
 */
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket/address.h"
#include "proto/error.h"
#include "tests/lib/probe_answer.h"
#include "tests/lib/probe_args.h"

#define TIMEOUT_MS 10000
#define TEXT_MAX   4096u /* of what was read, in an answer */

static struct probe probe;

struct command {
	struct probe_args *args;
	uint64_t deadline_ms;
	json_t *answer;
};

static int fail(struct command *c, const char *error)
{
	json_object_set_new(c->answer, "error", json_string(error));
	return -1;
}

static void put(struct command *c, const char *key, json_t *value)
{
	json_object_set_new(c->answer, key, value);
}

/* --- how things stand --- */

static int do_state(struct command *c)
{
	answer_put_state(c->answer, &probe);
	return 0;
}

static int do_end(struct command *c)
{
	int until_tls = strcmp(probe_text(c->args, "until", "tcp"), "tls") == 0;
	uint64_t bytes = 0;

	do {
		bytes += byte_queue_len(&probe.in);
		byte_queue_take(&probe.in, byte_queue_len(&probe.in));
		if (until_tls && probe.tls && memory_client_end(probe.tls) != CLIENT_OPEN)
			break;
	} while (probe_turn(&probe, c->deadline_ms) > 0);
	bytes += byte_queue_len(&probe.in);
	byte_queue_take(&probe.in, byte_queue_len(&probe.in));
	answer_put_state(c->answer, &probe);
	put(c, "end", json_string(answer_end_word(&probe)));
	put(c, "bytes", json_integer((json_int_t)bytes));
	return 0;
}

/* --- connection and handshake --- */

static void put_local(struct command *c)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);
	char text[ADDRESS_TEXT_MAX];

	if (getsockname(probe.fd, (struct sockaddr *)&local, &len) == 0)
		put(c, "local", json_string(address_format((struct sockaddr *)&local, text)));
}

static int do_connect(struct command *c)
{
	const char *to = probe_text(c->args, "to", NULL);

	probe_reset(&probe);
	if (!to)
		return fail(c, "connect needs to=HOST:PORT");
	int r = probe_connect(&probe, to, probe_text(c->args, "source", NULL), c->deadline_ms);
	if (r < 0)
		return fail(c, strerror(-r));
	put_local(c);
	return 0;
}

static uint16_t find_suite(const char *name)
{
	unsigned count;
	const struct cipher_suite *all = cipher_suites(&count);
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);
	uint16_t id = 0;

	for (unsigned i = 0; i < count && !id; i++) {
		const uint8_t wire[2] = { (uint8_t)(all[i].id >> 8), (uint8_t)all[i].id };
		const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, wire);
		if (strcmp(name, all[i].name) == 0 || (cipher && strcmp(name, SSL_CIPHER_get_name(cipher)) == 0))
			id = all[i].id;
	}
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return id;
}

static void *read_pem(const char *path, void *(*reader)(FILE *))
{
	FILE *f = path ? fopen(path, "r") : NULL;
	void *object = f ? reader(f) : NULL;

	if (f)
		fclose(f);
	return object;
}

static void *pem_certificate(FILE *f)
{
	return PEM_read_X509(f, NULL, NULL, NULL);
}

static void *pem_key(FILE *f)
{
	return PEM_read_PrivateKey(f, NULL, NULL, NULL);
}

static void *pem_session(FILE *f)
{
	return PEM_read_SSL_SESSION(f, NULL, NULL, NULL);
}

/* 1: complete (and what is to be said right behind it is in the same write). */
static int shake(struct command *c)
{
	size_t len;
	const uint8_t *text = probe_bytes(c->args, "text", &len);

	for (;;) {
		int r = memory_client_handshake(probe.tls);
		if (r == 1 && text)
			memory_client_write(probe.tls, text, len);
		probe_collect(&probe);
		if (r != 0)
			return r;
		if (probe_turn(&probe, c->deadline_ms) <= 0 && memory_client_handshake(probe.tls) != 1)
			return 0;
	}
}

static int read_config(struct command *c, struct memory_client_config *config)
{
	const char *version = probe_text(c->args, "version", ""), *suite = probe_text(c->args, "suite", NULL);
	const char *session = probe_text(c->args, "session", NULL);

	config->version = strcmp(version, "1.2") == 0   ? TLS1_2_VERSION
			  : strcmp(version, "1.3") == 0 ? TLS1_3_VERSION
							: 0;
	config->suite = suite ? find_suite(suite) : 0;
	if (config->suite && !config->version)
		config->version = cipher_suite_find(config->suite)->protocol_version;
	config->groups = probe_text(c->args, "groups", NULL);
	config->server_name = probe_text(c->args, "sni", NULL);
	config->alpn = probe_text(c->args, "alpn", NULL);
	config->max_fragment = (unsigned)probe_number(c->args, "max_fragment", 0);
	config->record_len = (size_t)probe_number(c->args, "record_len", 0);
	config->tickets = strcmp(probe_text(c->args, "tickets", "on"), "off") == 0 ? CLIENT_NO_TICKETS : CLIENT_TICKETS;
	config->ccs = strcmp(probe_text(c->args, "ccs", "on"), "off") == 0 ? CLIENT_NO_CCS : CLIENT_MIDDLEBOX_CCS;
	config->ca = read_pem(probe_text(c->args, "ca", NULL), pem_certificate);
	config->certificate = read_pem(probe_text(c->args, "cert", NULL), pem_certificate);
	config->key = read_pem(probe_text(c->args, "key", NULL), pem_key);
	config->resume = read_pem(session, pem_session);
	if (suite && !config->suite)
		return fail(c, "unknown suite");
	if (session && !config->resume)
		return fail(c, "session file cannot be read");
	return !config->certificate != !config->key ? fail(c, "cert and key go together") : 0;
}

static void free_config(struct memory_client_config *config)
{
	X509_free(config->ca);
	X509_free(config->certificate);
	EVP_PKEY_free(config->key);
	SSL_SESSION_free(config->resume);
}

static int do_handshake(struct command *c)
{
	struct memory_client_config config = { 0 };

	if (probe.tls || probe.tcp != TCP_OPEN)
		return fail(c, "not connected, or shaken hands already");
	if (read_config(c, &config) == 0) {
		probe.tls = memory_client_create(&config);
		if (probe.tls && byte_queue_len(&probe.in) > 0) /* came with the answer to STARTTLS */
			memory_client_feed(probe.tls, byte_queue_front(&probe.in), byte_queue_len(&probe.in));
		byte_queue_take(&probe.in, byte_queue_len(&probe.in));
	}
	free_config(&config);
	if (!probe.tls)
		return fail(c, "settings not accepted");
	int done = shake(c) == 1;
	if (done)
		probe.phase = PHASE_DATA;
	probe_flush(&probe, c->deadline_ms);
	put(c, "done", json_boolean(done));
	if (done)
		answer_put_agreed(c->answer, memory_client_ssl(probe.tls));
	answer_put_state(c->answer, &probe);
	return 0;
}

static int do_save_session(struct command *c)
{
	const char *path = probe_text(c->args, "file", NULL);
	SSL_SESSION *session;

	if (!path || !probe.tls)
		return fail(c, "save_session needs file=, and a handshake before");
	while (!(session = memory_client_session(probe.tls)))
		if (probe_turn(&probe, c->deadline_ms) <= 0)
			return fail(c, "no session came");
	FILE *f = fopen(path, "w");
	int ok = f && PEM_write_SSL_SESSION(f, session);
	if (f)
		fclose(f);
	put(c, "sessions", json_integer(memory_client_sessions(probe.tls)));
	put(c, "ticket", json_boolean(SSL_SESSION_has_ticket(session)));
	SSL_SESSION_free(session);
	return ok ? 0 : fail(c, "cannot write the file");
}

/* --- data --- */

static int do_send(struct command *c)
{
	size_t len;
	const uint8_t *data = probe_bytes(c->args, "text", &len);
	uint64_t zeros = (uint64_t)probe_number(c->args, "bytes", 0);
	const char *updates = probe_text(c->args, "key_update", "");
	static const uint8_t piece[16384];

	if (strcmp(updates, "before") == 0 || strcmp(updates, "both") == 0)
		probe_update_keys(&probe, 0);
	if (data)
		probe_say(&probe, data, len);
	for (uint64_t left = zeros; left > 0; left -= left < sizeof(piece) ? left : sizeof(piece))
		probe_say(&probe, piece, left < sizeof(piece) ? (size_t)left : sizeof(piece));
	if (strcmp(updates, "after") == 0 || strcmp(updates, "both") == 0)
		probe_update_keys(&probe, 0);
	put(c, "sent", json_boolean(probe_flush(&probe, c->deadline_ms) == 0));
	answer_put_state(c->answer, &probe);
	return 0;
}

static int do_raw(struct command *c)
{
	size_t len;
	const uint8_t *data = probe_bytes(c->args, "text", &len);

	if (!data)
		return fail(c, "raw needs text= or hex=");
	probe_raw(&probe, data, len);
	put(c, "sent", json_boolean(probe_flush(&probe, c->deadline_ms) == 0));
	return 0;
}

static int do_read(struct command *c)
{
	size_t until_len, bytes = (size_t)probe_number(c->args, "bytes", 0);
	const uint8_t *until = probe_bytes(c->args, "until", &until_len);
	struct byte_queue *in = &probe.in;
	const uint8_t *found = NULL;

	for (;;) {
		const uint8_t *data = byte_queue_front(in);
		if (until && byte_queue_len(in) > 0 && (found = memmem(data, byte_queue_len(in), until, until_len)))
			bytes = (size_t)(found - data) + until_len;
		if ((bytes && byte_queue_len(in) >= bytes) || (!bytes && !until && byte_queue_len(in) > 0))
			break;
		if (probe_turn(&probe, c->deadline_ms) <= 0)
			break;
	}
	size_t len = bytes && bytes < byte_queue_len(in) ? bytes : byte_queue_len(in);
	put(c, "text", answer_latin1(byte_queue_front(in), len < TEXT_MAX ? len : TEXT_MAX));
	put(c, "bytes", json_integer((json_int_t)len));
	byte_queue_take(in, len);
	answer_put_state(c->answer, &probe);
	return 0;
}

static struct http_request request_of(struct command *c, const char *method)
{
	return (struct http_request){ .method = probe_text(c->args, "method", method),
		.path = probe_text(c->args, "path", "/"),
		.host = probe_text(c->args, "host", "www.example.org"),
		.headers = probe_text(c->args, "headers", ""),
		.body = (uint64_t)probe_number(c->args, "bytes", 0),
		.rate = (uint64_t)probe_number(c->args, "rate", 0),
		.key_update_every = (uint64_t)probe_number(c->args, "key_update_every", 0) };
}

static int exchange_http(struct command *c, const char *method)
{
	struct http_request request = request_of(c, method);
	struct http_response response;

	http_exchange(&probe, &request, c->deadline_ms, &response);
	answer_put_head(c->answer, &response);
	answer_put_exchange(c->answer, &response);
	answer_put_state(c->answer, &probe);
	return 0;
}

static int do_get(struct command *c)
{
	return exchange_http(c, "GET");
}

static int do_put(struct command *c)
{
	return exchange_http(c, "PUT");
}

static int do_post(struct command *c)
{
	return exchange_http(c, "POST");
}

static int do_echo(struct command *c)
{
	struct http_request request = request_of(c, "");
	struct http_response response;

	echo_exchange(&probe, &request, c->deadline_ms, &response);
	answer_put_exchange(c->answer, &response);
	answer_put_state(c->answer, &probe);
	return 0;
}

/* --- ends, KeyUpdate, misuse --- */

static int do_key_update(struct command *c)
{
	if (!probe.tls)
		return fail(c, "no handshake yet");
	probe_update_keys(&probe, (int)probe_number(c->args, "request", 0));
	probe_flush(&probe, c->deadline_ms);
	return 0;
}

static int do_close_notify(struct command *c)
{
	if (!probe.tls)
		return fail(c, "no handshake yet");
	probe_close_notify(&probe);
	probe_flush(&probe, c->deadline_ms);
	return 0;
}

static int do_fin(struct command *c)
{
	probe_flush(&probe, c->deadline_ms);
	return shutdown(probe.fd, SHUT_WR) == 0 ? 0 : fail(c, "not connected");
}

static int do_rst(struct command *c)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(probe.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	probe_reset(&probe);
	return 0;
}

static int do_close(struct command *c)
{
	probe_reset(&probe);
	return 0;
}

static int do_renegotiate(struct command *c)
{
	SSL *ssl = probe.tls ? memory_client_ssl(probe.tls) : NULL;

	if (!ssl || SSL_version(ssl) != TLS1_2_VERSION || probe.forge)
		return fail(c, "needs a TLS 1.2 connection");
	SSL_renegotiate(ssl);
	memory_client_handshake(probe.tls);
	probe_collect(&probe);
	probe_flush(&probe, c->deadline_ms);
	return 0;
}

static int do_pace(struct command *c)
{
	probe.pace.bytes = (size_t)probe_number(c->args, "bytes", 0);
	probe.pace.every_ms = (uint64_t)probe_number(c->args, "every_ms", 1);
	probe.pace.next_ms = 0;
	return 0;
}

static int do_forge(struct command *c)
{
	static const uint8_t zeros[65535];
	size_t len;
	const uint8_t *content = probe_bytes(c->args, "text", &len);
	long long count = probe_number(c->args, "count", 1), step = probe_number(c->args, "step", 0);
	struct forged_record r = { .type = (uint8_t)probe_number(c->args, "type", TLS_APPLICATION_DATA),
		.outer_type = (uint8_t)probe_number(c->args, "outer", 0),
		.version = (uint16_t)probe_number(c->args, "version", 0),
		.content = content ? content : zeros,
		.len = content ? len : (size_t)probe_number(c->args, "zeros", 0),
		.padding = (size_t)probe_number(c->args, "padding", 0),
		.tag = strcmp(probe_text(c->args, "tag", "right"), "wrong") == 0 ? FORGED_TAG_WRONG
										 : FORGED_TAG_RIGHT };

	if (probe_forge(&probe) < 0)
		return fail(c, "no handshake yet");
	for (long long i = 0; i < count; i++) {
		if (probe_say_forged(&probe, &r) < 0)
			return fail(c, "too long to be a record");
		if (step && record_forge_step(probe.forge) < 0)
			return fail(c, "keys cannot step");
	}
	put(c, "sent", json_boolean(probe_flush(&probe, c->deadline_ms) == 0));
	return 0;
}

static const struct {
	const char *verb;
	int (*run)(struct command *c);
} commands[] = {
	{ "connect", do_connect },
	{ "handshake", do_handshake },
	{ "save_session", do_save_session },
	{ "send", do_send },
	{ "read", do_read },
	{ "end", do_end },
	{ "get", do_get },
	{ "put", do_put },
	{ "post", do_post },
	{ "echo", do_echo },
	{ "key_update", do_key_update },
	{ "close_notify", do_close_notify },
	{ "fin", do_fin },
	{ "rst", do_rst },
	{ "close", do_close },
	{ "renegotiate", do_renegotiate },
	{ "pace", do_pace },
	{ "forge", do_forge },
	{ "raw", do_raw },
	{ "state", do_state },
};

static int run(struct command *c)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].verb, c->args->verb) != 0)
			continue;
		if (commands[i].run(c) < 0)
			return -1;
		const char *unused = probe_args_unused(c->args);
		return unused ? fail(c, unused) : 0;
	}
	return fail(c, "unknown command");
}

static void answer(char *line)
{
	struct probe_args args;
	struct command c = { .args = &args, .answer = json_object() };

	line[strcspn(line, "\n")] = '\0';
	int r = probe_args_parse(line, &args);
	if (r < 0) {
		fail(&c, "malformed line");
	} else {
		c.deadline_ms = probe_now_ms() + (uint64_t)probe_number(&args, "timeout_ms", TIMEOUT_MS);
		r = run(&c);
	}
	put(&c, "ok", json_boolean(r == 0));
	json_dumpf(c.answer, stdout, JSON_COMPACT | JSON_SORT_KEYS);
	putchar('\n');
	fflush(stdout);
	json_decref(c.answer);
}

int main(void)
{
	char *line = NULL;
	size_t cap = 0;

	probe_start(&probe);
	while (getline(&line, &cap, stdin) > 0)
		answer(line);
	free(line);
	probe_reset(&probe);
	return 0;
}
