/* direct_listen.c: an agent's own listeners: which clients it accepts, all of them at once, and their access log. */
#include <stdlib.h>

#include "net/limits/admission.h"
#include "net/loop/listener.h"
#include "net/report/log_pace.h"
#include "sslagent/carrier/direct.h"
#include "sslagent/connection/connection.h"
#include "sslagent/counters.h"

static void direct_note_refused(enum end_reason reason)
{
	count(COUNT_DIRECT_REFUSED);
	log_paced(LOG_INFO, NULL, "direct connection refused", "reason=%s", end_reason_text(reason));
}

static void direct_on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct direct_listener *l = ctx;
	uint8_t words[DIRECT_WORDS_MAX];

	if (admission_enter(l->home->admission) < 0) {
		direct_note_refused(END_LIMIT_TOTAL);
		listener_refuse_accepted(fd, words, direct_preamble_full(l, words));
		return;
	}
	if (direct_begin(l, fd, peer) == 0)
		return;
	admission_leave(l->home->admission);
	direct_note_refused(END_INTERNAL);
}

static void direct_on_listener_closed(void *ctx)
{
	/* freed with the worker, because connections still point to it */
}

static const struct listener_ops listener_ops = { .on_accept = direct_on_accept,
	.on_closed = direct_on_listener_closed };

struct direct_listener *direct_listen(struct carrier_home *home, const struct conf_direct *conf)
{
	const struct sockaddr *address = (const struct sockaddr *)&conf->address;
	struct direct_listener *l = calloc(1, sizeof *l);
	char text[ADDRESS_TEXT_MAX];
	int uv_error = UV_ENOMEM;

	if (l) {
		l->home = home;
		l->conf = conf;
		l->listener = worker_index(home->connections->worker) == 0
				      ? listener_create(home->connections->worker, address, SOMAXCONN, 0, &listener_ops,
						l, &uv_error)
				      : listener_create_beside(home->connections->worker, address, SOMAXCONN,
						&listener_ops, l, &uv_error);
	}
	if (!l || !l->listener) {
		log_event(LOG_ERROR, NULL, "cannot listen", "address=%s cause=%s", address_format(address, text),
			uv_strerror(uv_error));
		free(l);
		return NULL;
	}
	listener_pause(l->listener);
	l->next = home->directs;
	home->directs = l;
	return l;
}

void direct_accept(struct carrier_home *home)
{
	for (struct direct_listener *l = home->directs; l; l = l->next)
		listener_resume(l->listener);
}

void direct_stop_accepting(struct carrier_home *home)
{
	for (struct direct_listener *l = home->directs; l; l = l->next) {
		listener_close(l->listener);
		l->listener = NULL;
	}
}

void direct_finish(struct carrier_home *home, enum direct_whom whom)
{
	for (struct direct_listener *l = home->directs; l; l = l->next)
		for (struct direct *d = LIST_FIRST(&l->clients); d; d = LIST_NEXT(d, entry))
			direct_finish_one(d, whom);
}

uint32_t direct_lingering(const struct carrier_home *home)
{
	uint32_t n = 0;

	for (struct direct_listener *l = home->directs; l; l = l->next)
		for (struct direct *d = LIST_FIRST(&l->clients); d; d = LIST_NEXT(d, entry))
			n += d->state == DIRECT_LINGERING;
	return n;
}

void direct_close_all(struct carrier_home *home)
{
	direct_stop_accepting(home);
	for (struct direct_listener *l = home->directs; l; l = l->next)
		for (struct direct *d = LIST_FIRST(&l->clients); d; d = LIST_NEXT(d, entry))
			direct_drop(d, END_SHUTTING_DOWN);
}

void direct_release_all(struct carrier_home *home)
{
	while (home->directs) {
		struct direct_listener *l = home->directs;
		home->directs = l->next;
		free(l);
	}
}

/* --- the access log: a line for each client, with the fields that RAgent's lines have --- */

void direct_log_end(const struct direct *d, enum end_reason reason, const char *end)
{
	const enum conf_log_connections which = d->listener->home->connections->conf->log.connections;
	struct log_pace unpaced = { .to = LOG_ACCESS }, *paced = &d->listener->home->ended_lines[reason];
	struct connection_account a = { .cause = "" };
	char client[ADDRESS_TEXT_MAX], ja4[JA4_TEXT_MAX];

	if (!log_takes(LOG_ACCESS, LOG_INFO) || (which == CONF_LOG_NONE && !end_reason_is_refusal(reason)))
		return;
	if (d->connection)
		connection_account(d->connection, &a);
	log_event_paced(which == CONF_LOG_ALL ? &unpaced : paced, LOG_INFO, a.id, "ended",
		"reason=%s end=%s listener=%s client=%s version=%04x suite=%04x alpn=%s ja4=%s cause=%s "
		"client_bytes=%llu server_bytes=%llu ms=%llu server_name=%s",
		end_reason_text(reason), end, d->listener->conf->listener,
		address_format((const struct sockaddr *)&d->client, client), a.facts.protocol_version,
		a.facts.cipher_suite, a.facts.alpn, ja4_text(&a.facts.ja4, ja4), a.cause,
		(unsigned long long)a.client_bytes, (unsigned long long)a.server_bytes,
		(unsigned long long)(worker_now_ms(d->stream.worker) - d->accepted_ms), a.facts.server_name);
}

void direct_tell_left_out(struct carrier_home *home)
{
	for (unsigned reason = 0; reason < END_REASON_COUNT; reason++)
		log_pace_tell(&home->ended_lines[reason], LOG_INFO, "ended");
}
