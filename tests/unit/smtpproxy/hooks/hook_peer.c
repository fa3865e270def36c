/* hook_peer.c: see hook_peer.h. */
#include "hook_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/report/log.h"
#include "smtpproxy/hooks/call.h"

struct hooks hooks;
struct smtpproxy_counters counters;
struct smtpproxy_hook hook_confs[PEERS];
struct filter_facts filter_facts;
struct filter *filter;
struct message message;
char reply[FILTER_REPLY_MAX + 1];
unsigned verdicts;

static enum filter_verdict last;
static char names[PEERS][2] = { "a", "b" }, path[] = "/judge";
static char *of_listener[PEERS];
static struct smtpproxy_listener listener = { .hooks = of_listener };
static struct conf_smtpproxy conf = { .hooks = hook_confs, .hook_count = PEERS };
static struct {
	int listening, fd; /* -1: none */
} peers[PEERS];

void hooks_setup(void)
{
	setup_worker();
	log_set_level(LOG_ERROR + 1);
	counters = (struct smtpproxy_counters){ 0 };
	filter_facts = (struct filter_facts){ .listener = "mx.example", .hello = "sender.example", .connection = 7 };
	filter_facts.destination = "192.0.2.25:25";
	ck_assert_int_eq(address_parse("192.0.2.1:1234", &filter_facts.client), 0);
	for (unsigned i = 0; i < FILTER_STEPS; i++)
		filter_facts.most_ms[i] = WAIT_LIMIT_MS;
	for (unsigned i = 0; i < PEERS; i++) {
		hook_confs[i] = (struct smtpproxy_hook){ .name = names[i], .path = path };
		hook_confs[i].timeout_ms = WAIT_LIMIT_MS;
		peers[i].fd = -1;
		peers[i].listening = socket_listen(i % 2 ? OVER_UNIX : OVER_TCP4, &hook_confs[i].address);
		fcntl(peers[i].listening, F_SETFL, O_NONBLOCK);
	}
	hooks_init(&hooks, w, &counters);
	ck_assert_int_eq(hooks_prepare(&hooks, &conf), 0);
	hooks_follow(&hooks, &conf);
}

void hooks_teardown(void)
{
	filter_end();
	message_free(&message);
	for (unsigned i = 0; i < PEERS; i++)
		close(peers[i].listening);
	hooks_free(&hooks);
	teardown_worker();
}

/* The transaction */

static void on_verdict(void *ctx, enum filter_verdict given, struct smtp_span text)
{
	ck_assert_ptr_eq(ctx, &filter);
	ck_assert_uint_le(text.len, FILTER_REPLY_MAX);
	verdicts++;
	last = given;
	memcpy(reply, text.at, text.len);
	reply[text.len] = '\0';
}

void filter_end(void)
{
	filter_leave(filter);
	filter = NULL;
	for (unsigned i = 0; i < PEERS; i++)
		peer_close(i);
}

void filter_begin(const char *which)
{
	filter_end();
	listener.hook_count = strlen(which);
	for (size_t i = 0; i < listener.hook_count; i++)
		of_listener[i] = names[which[i] - 'a'];
	verdicts = 0;
	filter = filter_create(&hooks, &listener, &filter_facts, on_verdict, &filter);
	ck_assert_ptr_nonnull(filter);
}

void asks(enum filter_step step, const char *address, const char *params)
{
	verdicts = 0;
	if (step == FILTER_MESSAGE)
		filter_ask_message(filter, &message);
	else
		filter_ask(filter, step, smtp_span_of(address), smtp_span_of(params));
	ck_assert_uint_eq(verdicts, 0);
}

enum filter_verdict verdict(void)
{
	wait_until(verdicts > 0);
	ck_assert_uint_eq(verdicts, 1);
	return last;
}

void message_is(const char *text, size_t len)
{
	message_free(&message);
	ck_assert_int_eq(message_add(&message, text, len, 1 << 24), 0);
	ck_assert_int_eq(message_read(&message), 0);
}

const char *message_text(void)
{
	static char text[4096];
	struct smtp_span piece;
	size_t len = 0;

	for (size_t n = 0; message_piece(&message, n, &piece); n++) {
		ck_assert_uint_lt(len + piece.len, sizeof text);
		if (piece.len)
			memcpy(text + len, piece.at, piece.len);
		len += piece.len;
	}
	text[len] = '\0';
	return text;
}

uint64_t limit_ms(unsigned call)
{
	const struct deadline *d = &filter->calls[call].deadline;

	return deadline_is_set(d) ? d->at_ms : 0;
}

void is_late(unsigned call)
{
	turns(3); /* output that was taken gives it its time again */
	ck_assert_uint_ne(limit_ms(call), 0);
	deadline_set(w, &filter->calls[call].deadline, 1);
}

/* The programs */

bool peer_is_connected(unsigned n)
{
	struct pollfd waiting = { .fd = peers[n].listening, .events = POLLIN };

	return peers[n].fd >= 0 || poll(&waiting, 1, 0) > 0;
}

void peer_accept(unsigned n)
{
	ck_assert_int_lt(peers[n].fd, 0);
	wait_until((peers[n].fd = accept4(peers[n].listening, NULL, NULL, SOCK_NONBLOCK)) >= 0);
}

int peer_fd(unsigned n)
{
	return peers[n].fd;
}

/* Also those that nobody accepted. */
void peer_close(unsigned n)
{
	do {
		if (peers[n].fd >= 0)
			close(peers[n].fd);
		peers[n].fd = accept4(peers[n].listening, NULL, NULL, SOCK_NONBLOCK);
	} while (peers[n].fd >= 0);
}
