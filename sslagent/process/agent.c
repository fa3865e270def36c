/* agent.c: builds the process from the cluster file, runs the main loop, and takes all down in the reverse order. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "conf/memory.h"
#include "net/limits/admission.h"
#include "net/limits/blocked.h"
#include "net/loop/listener.h"
#include "net/loop/signals.h"
#include "net/loop/timer.h"
#include "net/memory/secret.h"
#include "net/process/descriptors.h"
#include "net/process/scheduling.h"
#include "net/process/user.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "sslagent/carrier/link_acceptor.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/process/agent.h"
#include "sslagent/process/agent_internal.h"
#include "sslagent/sessions/session_listing.h"
#include "sslagent/tls/tls_contexts.h"

/* Times after SIGTERM: for connections to end where no RAgent drains them; extra time after RAgent's own limit; and
 * for a last goodbye to reach clients. */
#define AGENT_GRACE_MS      5000u
#define AGENT_LAST_WORDS_MS 1000u
#define MESSAGE_MAX         1024u
#define WATCH_MS            50u /* how often a stopping agent checks whether its connections have ended */
#define GAUGES_MS           1000u

/* --- orders of RAgent --- */

static void on_blocked(struct worker *w, void *arg)
{
	struct agent_worker *home = arg;

	direct_finish(&home->carriers, DIRECT_BLOCKED);
}

int agent_block(struct agent *a, const char *ragent, uint64_t boot_id, const ProtobufCBinaryData *packed)
{
	const struct conf_ragent *r = conf_ragent_find(a->conf, ragent);
	const uint64_t now_ms = worker_now_ms(a->main);
	struct blocked_net at[BLOCKED_MAX];
	char first[ADDRESS_TEXT_MAX];

	if (!r)
		return CSSL_E_NOT_FOUND;
	const int result =
		blocked_unpack(&a->blocked[r - a->conf->ragents], boot_id, packed->data, packed->len, now_ms);
	const size_t count = blocked_list(&a->blocked[r - a->conf->ragents], now_ms, at);
	if (count > 0)
		log_event(LOG_INFO, NULL, "networks blocked", "ragent=%s networks=%zu first=%s", ragent, count,
			address_net_format(&at[0].net, first));
	for (unsigned i = 0; i < a->worker_count; i++)
		worker_post(a->workers[i].worker, on_blocked, &a->workers[i]);
	return result;
}

/* --- reload --- */

static void on_reloaded(struct worker *w, void *arg)
{
	struct agent_worker *home = arg;
	struct tls_contexts *contexts = atomic_exchange(&home->reloaded, NULL);

	if (!contexts)
		return; /* an earlier call took it */
	tls_contexts_unref(home->connections.contexts);
	home->connections.contexts = contexts;
}

static int not_reloaded(char *faults)
{
	for (char *fault; (fault = strsep(&faults, "\n"));)
		log_event(LOG_ERROR, NULL, "certificates not reloaded", "cause=%s effect=\"the old ones stay\"", fault);
	return CSSL_E_CONFIG;
}

int agent_reload(struct agent *a)
{
	char faults[TLS_FAULTS_MAX];
	const int of_log = log_reopen();
	struct tls_contexts *contexts =
		tls_contexts_create(a->conf, cluster_session_source(a->cluster), faults, sizeof faults);

	if (!contexts)
		return not_reloaded(faults);
	for (unsigned i = 0; i < a->worker_count; i++) {
		struct agent_worker *home = &a->workers[i];
		tls_contexts_unref(atomic_exchange(&home->reloaded, tls_contexts_ref(contexts)));
		worker_post(home->worker, on_reloaded, home);
	}
	tls_contexts_unref(a->contexts);
	a->contexts = contexts;
	log_event(LOG_INFO, NULL, "certificates reloaded", NULL);
	return of_log;
}

/* --- stop --- */

static void agent_on_leaving(struct worker *w, void *arg)
{
	struct agent_worker *home = arg;

	carrier_home_leave(&home->carriers);
}

static void on_close_worker(struct worker *w, void *arg)
{
	agent_worker_close(arg);
	worker_stop(w);
}

static void on_count(struct worker *w, void *arg)
{
	struct agent_worker *home = arg;

	direct_finish(&home->carriers, DIRECT_IDLE);
	atomic_store_explicit(&home->connection_count, (uint32_t)home->connections.table.count, memory_order_relaxed);
	atomic_store_explicit(&home->lingering_count, direct_lingering(&home->carriers), memory_order_relaxed);
	atomic_store_explicit(&home->preamble_count, home->carriers.preambles.count, memory_order_relaxed);
	atomic_store_explicit(&home->link_count, carrier_home_links(&home->carriers), memory_order_relaxed);
}

static void on_last_words(struct worker *w, void *arg)
{
	struct agent_worker *home = arg;

	direct_finish(&home->carriers, DIRECT_ALL);
}

static void on_cluster_closed(void *ctx)
{
	struct agent *a = ctx;

	signals_destroy(a->signals);
	a->signals = NULL;
	worker_stop(a->main);
}

static void on_acceptor_closed(void *ctx)
{
	struct agent *a = ctx;

	for (unsigned i = 0; i < a->worker_count; i++)
		worker_post(a->workers[i].worker, on_close_worker, &a->workers[i]);
	for (unsigned i = 0; i < a->worker_count; i++) {
		worker_destroy(a->workers[i].worker);
		a->workers[i].worker = NULL; /* answers to this worker may still be on their way */
		agent_worker_release(&a->workers[i]);
	}
	a->worker_count = 0;
	cluster_close(a->cluster, on_cluster_closed, a);
}

static void agent_stop(struct agent *a)
{
	if (a->state == AGENT_STOPPING)
		return;
	a->state = AGENT_STOPPING;
	timer_stop(a->watch);
	timer_stop(a->gauges);
	a->watch = a->gauges = NULL;
	listings_close(a->listings);
	link_acceptor_close(a->acceptor, on_acceptor_closed, a);
}

/* RAgent moves its connections away, or ends them when the time for the drain is over. */
static uint64_t patience_ms(const struct agent *a, uint32_t links)
{
	uint32_t drain_ms = a->conf->moves.drain_timeout_ms;

	if (links == 0)
		return AGENT_GRACE_MS;
	for (size_t i = 0; i < a->conf->ragent_count; i++) {
		if (a->conf->ragents[i].moves.drain_timeout_ms > drain_ms)
			drain_ms = a->conf->ragents[i].moves.drain_timeout_ms;
	}
	return (uint64_t)drain_ms + AGENT_GRACE_MS;
}

static void agent_on_watch(void *ctx)
{
	struct agent *a = ctx;
	uint32_t left = 0, links = 0;
	uint64_t waited = worker_now_ms(a->main) - a->leaving_since_ms;

	for (unsigned i = 0; i < a->worker_count; i++) {
		left += atomic_load_explicit(&a->workers[i].connection_count, memory_order_relaxed);
		left += atomic_load_explicit(&a->workers[i].lingering_count, memory_order_relaxed);
		left += atomic_load_explicit(&a->workers[i].preamble_count, memory_order_relaxed);
		links += atomic_load_explicit(&a->workers[i].link_count, memory_order_relaxed);
	}
	uint64_t patience = patience_ms(a, links);
	if (waited >= 2 * WATCH_MS && (left == 0 || waited >= patience + AGENT_LAST_WORDS_MS)) {
		log_event(LOG_INFO, NULL, "stopping", "connections_left=%u waited_ms=%u", left, (unsigned)waited);
		agent_stop(a);
		return;
	}
	for (unsigned i = 0; i < a->worker_count; i++) {
		if (waited >= patience)
			worker_post(a->workers[i].worker, on_last_words, &a->workers[i]);
		worker_post(a->workers[i].worker, on_count, &a->workers[i]);
	}
}

static void agent_leave(struct agent *a)
{
	if (a->state != AGENT_SERVING) {
		agent_stop(a); /* the second request */
		return;
	}
	a->state = AGENT_LEAVING;
	a->leaving_since_ms = worker_now_ms(a->main);
	log_event(LOG_INFO, NULL, "leaving", NULL);
	for (unsigned i = 0; i < a->worker_count; i++)
		worker_post(a->workers[i].worker, agent_on_leaving, &a->workers[i]);
	a->watch = timer_start(a->main, agent_on_watch, a, WATCH_MS, WATCH_MS);
	if (!a->watch)
		agent_stop(a);
}

static void agent_on_signal(void *ctx, int signum)
{
	struct agent *a = ctx;

	if (signum == SIGHUP)
		agent_reload(a);
	else
		agent_leave(a);
}

/* --- start --- */

static int start_worker(struct worker *w, void *arg)
{
	struct agent_worker *home = arg;

	counters_use(counters_of(home->agent->counters, worker_index(w) + 1));
	int r = agent_worker_open(home);
	if (r < 0)
		agent_worker_close(home);
	return r;
}

static int agent_start_workers(struct agent *a)
{
	a->workers = calloc(a->self->workers, sizeof *a->workers);
	if (!a->workers)
		return CSSL_E_NO_MEMORY;
	for (unsigned i = 0; i < a->self->workers; i++) {
		struct agent_worker *home = &a->workers[i];
		agent_worker_init(a, i);
		if (!home->worker)
			return CSSL_E_NO_MEMORY;
		a->worker_count = i + 1;
		int r = worker_start(home->worker, start_worker, home);
		if (r != 0)
			return r;
	}
	return 0;
}

static void on_serving(struct worker *w, void *arg)
{
	direct_accept(&((struct agent_worker *)arg)->carriers);
}

static int read_files(struct agent *a)
{
	char message[TLS_FAULTS_MAX];

	a->agents_key = conf_read_key(a->conf->agents_key, message, sizeof message);
	if (a->agents_key)
		a->link_key = conf_read_key(a->conf->link_key, message, sizeof message);
	if (a->link_key)
		a->cluster = cluster_create(a->main, a->conf, a->self, a->agents_key, message, sizeof message);
	if (a->cluster)
		a->contexts = tls_contexts_create(a->conf, cluster_session_source(a->cluster), message, sizeof message);
	if (a->contexts)
		return 0;
	fprintf(stderr, "sslagent: %s\n", message);
	return CSSL_E_CONFIG;
}

/* After a burst of handshakes, give unused memory back to the system. */
static void watch_tide(struct agent *a)
{
	uint32_t handshakes = 0, peak = 0;

	for (unsigned i = 0; i < a->worker_count; i++) {
		struct agent_worker *w = &a->workers[i];
		uint32_t now = atomic_load_explicit(&w->connections.handshake_count, memory_order_relaxed);
		handshakes += now;
		peak += atomic_exchange_explicit(&w->connections.handshake_peak, now, memory_order_relaxed);
	}
	if (!heap_tide_is_over(&a->tide, peak, handshakes, worker_now_ms(a->main)))
		return;
	uint64_t began_ns = uv_hrtime(), bytes = heap_give_back();
	log_event(LOG_INFO, NULL, "memory given back", "bytes=%llu us=%llu", (unsigned long long)bytes,
		(unsigned long long)(uv_hrtime() - began_ns) / 1000);
}

static void on_gauges(void *ctx)
{
	struct agent *a = ctx;

	watch_tide(a);
	for (unsigned i = 0; i < a->worker_count; i++)
		direct_tell_left_out(&a->workers[i].carriers);
	count_gauge(COUNT_RESIDENT_BYTES, resident_bytes());
	count_gauge(COUNT_LOG_LINES_LOST, log_dropped());
	count_gauge(COUNT_SECRETS_UNLOCKED_BYTES, secret_unlocked_bytes());
	secret_warn_if_unlocked(); /* of OpenSSL's heap; while it is filled there may be no log */
	count_gauge(COUNT_OWN_PROVIDER, tls_contexts_algorithms(a->conf) == TLS_ALGORITHMS_OWN);
}

static struct link_acceptor *listen_for_links(struct agent *a)
{
	return link_acceptor_create(&(struct link_acceptor_home){ .main = a->main,
		.conf = a->conf,
		.self = a->self,
		.link_key = a->link_key,
		.fill_hello = agent_fill_hello,
		.give = agent_give_link,
		.process = a });
}

int agent_become_user(const struct conf *conf, const struct conf_agent *self, char *error, size_t error_cap)
{
	if (geteuid() != 0 || !self->user)
		return 0;
	const int r = user_become(self->user, USER_KEEPS_GROUPS, error, error_cap);
	user_warn_of(conf->log.path, W_OK, USER_SAME_LOG);
	user_warn_of(self->access_log, W_OK, USER_SAME_LOG);
	return r == 0 ? conf_check_files(conf, CONF_FOR_RELOAD, error, error_cap) : r;
}

/* What only root may open is open: become the agent's user. Other agents reach the peer socket as that user. 0;
 * negative: failed (printed). */
static int give_up_root(const struct conf *conf, const struct conf_agent *self)
{
	const char *name = self->user, *socket = self->peer_socket;
	const struct passwd *user = geteuid() == 0 && name && socket ? getpwnam(name) : NULL;
	char message[MESSAGE_MAX] = "peer_socket: something else is in its place";
	int r = user ? listener_give_file(socket, user->pw_uid, user->pw_gid) : 0;

	if (r == 0)
		r = agent_become_user(conf, self, message, sizeof message);
	if (r < 0)
		fprintf(stderr, "sslagent: %s\n", message);
	if (geteuid() == 0)
		log_event(LOG_WARNING, NULL, "runs as root", "remedy=\"key 'user' of it, or User= of its unit\"");
	return r;
}

struct agent *agent_create(struct conf *conf, const struct conf_agent *self)
{
	static const int signums[] = { SIGTERM, SIGINT, SIGHUP };
	struct agent *a = calloc(1, sizeof *a);

	if (!a) {
		conf_destroy(conf);
		return NULL;
	}
	a->conf = conf;
	a->self = self;
	descriptors_raise(memory_descriptors_of_agent(conf, self));
	scheduling_take_turns();
	a->counters = agent_counters_create(self->workers + 1);
	a->admission = admission_create(conf->limits.connections, conf->limits.connections_per_source);
	a->backend_states = calloc(conf->backend_count + 1, sizeof *a->backend_states);
	a->blocked = calloc(conf->ragent_count + 1, sizeof *a->blocked);
	a->main = worker_create(0, "main");
	a->listings = a->main ? listings_create(a->main) : NULL;
	if (!a->counters || !a->admission || !a->backend_states || !a->blocked || !a->listings)
		goto failed;
	counters_use(counters_of(a->counters, 0));
	if (read_files(a) < 0 || agent_start_workers(a) != 0)
		goto failed;
	a->acceptor = listen_for_links(a);
	a->signals = signals_create(a->main, signums, sizeof signums / sizeof signums[0], agent_on_signal, a);
	a->gauges = timer_start(a->main, on_gauges, a, GAUGES_MS, GAUGES_MS);
	if (!a->acceptor || !a->signals || !a->gauges || give_up_root(conf, self) < 0)
		goto failed;
	for (unsigned i = 0; i < a->worker_count; i++)
		if (worker_post(a->workers[i].worker, on_serving, &a->workers[i]) < 0)
			goto failed;
	a->state = AGENT_SERVING;
	log_event(
		LOG_INFO, NULL, "serving", "workers=%u listeners=%u", a->worker_count, (unsigned)conf->listener_count);
	return a;
failed:
	/* a process that cannot start ends at once, and the system frees all it holds */
	log_event(LOG_ERROR, NULL, "not started", NULL);
	return NULL;
}

int agent_run(struct agent *a)
{
	return worker_run(a->main);
}

void agent_destroy(struct agent *a)
{
	if (!a)
		return;
	link_acceptor_destroy(a->acceptor);
	admission_destroy(a->admission);
	listings_destroy(a->listings);
	cluster_destroy(a->cluster);
	tls_contexts_unref(a->contexts);
	worker_destroy(a->main);
	free(a->workers);
	free(a->backend_states);
	free(a->blocked);
	agent_counters_destroy(a->counters);
	sodium_free(a->link_key);
	sodium_free(a->agents_key);
	conf_destroy(a->conf);
	free(a);
}
