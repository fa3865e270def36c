/* smtp_sink.c: `cssl-bench smtp-sink`: one server on one worker: it accepts within the limits, ends, and sums up. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/command/command.h"
#include "bench/mail/sink_session.h"
#include "net/limits/admission.h"
#include "net/loop/listener.h"
#include "net/loop/signals.h"
#include "net/loop/timer.h"
#include "net/memory/container_of.h"
#include "net/process/descriptors.h"
#include "net/report/log.h"
#include "net/socket/address.h"

#define PROGRESS_MS 1000u

enum server_state { SINK_SERVES, SINK_STOPS, SINK_IS_OVER_ALL };

struct sink_server {
	struct sink_host host;
	enum server_state state;
	unsigned listener_count, listeners_open;
	struct listener *listeners[SINK_LISTEN_MAX];
	enum { SINK_ACCEPTS, SINK_PAUSES } accepting;
	struct admission *admission;
	struct signals *signals;
	struct timer *progress;
	LIST_HEAD(, sink_session) sessions;
};

static void stop_when_empty(struct sink_server *s)
{
	if (s->state != SINK_STOPS || s->listeners_open > 0 || !LIST_EMPTY(&s->sessions))
		return;
	s->state = SINK_IS_OVER_ALL;
	timer_stop(s->progress);
	signals_destroy(s->signals);
	s->progress = NULL;
	s->signals = NULL;
	worker_stop(s->host.worker);
}

static void sink_server_stop(struct sink_server *s)
{
	struct sink_session *session, *next;
	if (s->state != SINK_SERVES)
		return;
	s->state = SINK_STOPS;
	for (unsigned i = 0; i < s->listener_count; i++)
		listener_close(s->listeners[i]);
	for (session = LIST_FIRST(&s->sessions); session; session = next) {
		next = LIST_NEXT(session, next);
		sink_session_close(session);
	}
	stop_when_empty(s);
}

static void on_sink_signal(void *ctx, int signum)
{
	sink_server_stop(ctx);
}

static void on_sink_host_mail(struct sink_host *host)
{
	struct sink_server *s = container_of(host, struct sink_server, host);
	if (host->options->max_mails && host->result->counts[SINK_MAILS] >= host->options->max_mails)
		sink_server_stop(s);
}

/* Limits */

static void pause_or_resume(struct sink_server *s)
{
	const struct sink_options *o = s->host.options;
	bool full = o->over == SINK_LETS_WAIT && o->max_connections && s->host.result->open >= o->max_connections;
	if (s->state != SINK_SERVES || full == (s->accepting == SINK_PAUSES))
		return;
	s->accepting = full ? SINK_PAUSES : SINK_ACCEPTS;
	for (unsigned i = 0; i < s->listener_count; i++) {
		if (full)
			listener_pause(s->listeners[i]);
		else
			listener_resume(s->listeners[i]);
	}
}

static void on_sink_session_gone(struct sink_host *host, struct sink_session *session)
{
	struct sink_server *s = container_of(host, struct sink_server, host);
	LIST_REMOVE(session, next);
	host->result->open--;
	if (session->source.len)
		admission_leave_source(s->admission, &session->source);
	free(session);
	pause_or_resume(s);
	stop_when_empty(s);
}

/* Counts the session with its source. */
static enum sink_welcome sink_server_admit(
	struct sink_server *s, struct sink_session *session, const struct sockaddr_storage *peer)
{
	const struct sink_options *o = s->host.options;
	struct client_address source = { .len = 0 };
	source.len = (uint8_t)address_bytes((const struct sockaddr *)peer, source.bytes);
	if (o->max_connections && s->host.result->open >= o->max_connections)
		return SINK_IS_OVER;
	if (admission_enter_source(s->admission, &source) < 0)
		return SINK_IS_OVER;
	session->source = source;
	return SINK_IS_WELCOME;
}

static void note_open(struct sink_server *s)
{
	struct sink_result *r = s->host.result;
	r->counts[SINK_CONNECTIONS]++;
	if (++r->open > r->most_open)
		r->most_open = r->open;
}

static void on_sink_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct sink_server *s = ctx;
	struct sink_session *session = calloc(1, sizeof *session);
	if (!session) {
		close(fd);
		return;
	}
	session->peer = *peer;
	enum sink_welcome welcome = sink_server_admit(s, session, peer);
	note_open(s);
	s->host.result->counts[SINK_OVER] += welcome == SINK_IS_OVER;
	LIST_INSERT_HEAD(&s->sessions, session, next);
	if (sink_session_open(session, &s->host, fd, welcome) < 0)
		on_sink_session_gone(&s->host, session);
	pause_or_resume(s);
}

static void on_sink_listener_closed(void *ctx)
{
	struct sink_server *s = ctx;
	s->listeners_open--;
	stop_when_empty(s);
}

static const struct listener_ops listener_ops = { .on_accept = on_sink_accept, .on_closed = on_sink_listener_closed };

/* The start */

static int sink_server_listen_on(struct sink_server *s, const struct sockaddr *address)
{
	char text[ADDRESS_TEXT_MAX];
	struct sockaddr_storage bound;
	int r = 0;
	struct listener *l =
		listener_create(s->host.worker, address, (int)s->host.options->backlog, 0666, &listener_ops, s, &r);
	if (!l) {
		fprintf(stderr, "smtp-sink: %s: %s\n", address_format(address, text), uv_strerror(r));
		return -1;
	}
	s->listeners[s->listener_count++] = l;
	s->listeners_open++;
	if (listener_address(l, &bound) == 0)
		printf("listening on %s\n", address_format((const struct sockaddr *)&bound, text));
	fflush(stdout);
	return 0;
}

static void on_sink_progress(void *ctx)
{
	struct sink_server *s = ctx;
	sink_result_progress(s->host.result, uv_hrtime());
}

static const unsigned char context_id[] = "smtp-sink";

/* Sessions are resumed by tickets and by id. 0, or -1. */
static int open_tls(struct client_tls_shared *shared, const char *certificate, const char *key)
{
	shared->wire = stream_bio_method();
	shared->ctx = SSL_CTX_new(TLS_server_method());
	if (shared->ctx && shared->wire && SSL_CTX_use_certificate_chain_file(shared->ctx, certificate) == 1 &&
		SSL_CTX_use_PrivateKey_file(shared->ctx, key, SSL_FILETYPE_PEM) == 1 &&
		SSL_CTX_check_private_key(shared->ctx) == 1 &&
		SSL_CTX_set_session_id_context(shared->ctx, context_id, sizeof context_id - 1) == 1) {
		SSL_CTX_clear_mode(shared->ctx, SSL_MODE_AUTO_RETRY);
		return 0;
	}
	fprintf(stderr, "smtp-sink: certificate %s or key %s cannot be used\n", certificate, key);
	return -1;
}

static int open_files(struct sink_server *s)
{
	const struct sink_options *o = s->host.options;
	if (o->certificate && open_tls(&s->host.tls, o->certificate, o->key) < 0)
		return -1;
	if (!o->dump)
		return 0;
	s->host.dump = fopen(o->dump, "we");
	if (!s->host.dump)
		fprintf(stderr, "smtp-sink: %s cannot be written\n", o->dump);
	return s->host.dump ? 0 : -1;
}

static int sink_server_prepare(struct sink_server *s)
{
	static const int stop_signals[] = { SIGTERM, SIGINT };
	const struct sink_options *o = s->host.options;
	if (open_files(s) < 0)
		return -1;
	s->admission = admission_create(0, (uint32_t)o->max_per_source);
	s->host.worker = worker_create(0, "smtp-sink");
	if (o->trusted_count > 0)
		s->host.ledger = tx_ledger_create(o->ids_max);
	if (!s->admission || !s->host.worker || (o->trusted_count > 0 && !s->host.ledger))
		return -1;
	s->signals = signals_create(s->host.worker, stop_signals, 2, on_sink_signal, s);
	if (!s->signals)
		return -1;
	if (o->progress == SINK_PROGRESS)
		s->progress = timer_start(s->host.worker, on_sink_progress, s, PROGRESS_MS, PROGRESS_MS);
	/* The last step: from here on clients come, and use all that is above. */
	for (unsigned i = 0; i < o->listen_count; i++) {
		if (sink_server_listen_on(s, (const struct sockaddr *)&o->listen[i]) < 0)
			return -1;
	}
	return 0;
}

static void sink_server_clear(struct sink_server *s)
{
	worker_destroy(s->host.worker);
	admission_destroy(s->admission);
	tx_ledger_destroy(s->host.ledger);
	client_tls_close(&s->host.tls);
	if (s->host.dump)
		fclose(s->host.dump);
}

static int sink_server_report(const struct sink_options *o, const struct sink_result *r)
{
	if (o->output == SINK_TEXT)
		sink_result_text(r);
	else if (sink_result_json(r) < 0)
		return EXIT_FAILURE;
	return r->counts[SINK_WRONG] > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* An exit status. */
static int sink_server_serve(struct sink_options *o, struct sink_result *result)
{
	static struct sink_server s;
	s.host = (struct sink_host){
		.options = o, .result = result, .on_mail = on_sink_host_mail, .on_gone = on_sink_session_gone
	};
	result->begin_ns = uv_hrtime();
	const int failed = sink_server_prepare(&s);
	if (failed && s.host.worker)
		sink_server_stop(&s); /* the worker has to turn until all is closed */
	if (s.host.worker)
		worker_run(s.host.worker);
	sink_server_clear(&s);
	return failed ? EXIT_FAILURE : sink_server_report(o, result);
}

int smtp_sink_main(int argc, char **argv)
{
	static struct sink_options options;

	const enum option_parse parsed = sink_options_parse(argc, argv, &options);

	if (parsed != OPTIONS_PARSED)
		return parsed;
	struct sink_result *result = sodium_init() < 0 ? NULL : sink_result_create();
	if (!result)
		return EXIT_FAILURE;
	descriptors_raise(0);
	log_open("cssl-bench", "smtp-sink", LOG_TEXT, LOG_WARNING, NULL);
	int status = sink_server_serve(&options, result);
	sink_result_destroy(result);
	log_close();
	return status;
}
