/* resolver.c: a context of libunbound, whose descriptor the loop watches. */
#include "smtpproxy/dns/resolver.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unbound.h>

#include "net/loop/watch.h"
#include "net/memory/container_of.h"
#include "net/socket/address.h"
#include "smtp/span.h"

#define CLASS_IN      1
#define RCODE_NO_NAME 3

struct resolver {
	struct ub_ctx *ub;
	struct worker *worker;
	struct watch *watch;
	uint32_t timeout_ms;
};

/* Setting up */

static int set_server(struct ub_ctx *ub, const struct sockaddr *server)
{
	const void *bytes = server->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)server)->sin_addr
							 : &((const struct sockaddr_in6 *)server)->sin6_addr;
	char host[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 8];
	inet_ntop(server->sa_family, bytes, host, sizeof host);
	snprintf(text, sizeof text, "%s@%u", host, address_port(server));
	return ub_ctx_set_fwd(ub, text);
}

/* Without servers and without that file, a server of this host (resolv.conf(5)). */
static int set_servers(struct ub_ctx *ub, const struct smtpproxy_dns *conf)
{
	int r = 0;
	if (conf->server_count == 0 && ub_ctx_resolvconf(ub, NULL) != 0)
		r = ub_ctx_set_fwd(ub, "127.0.0.1");
	for (size_t i = 0; i < conf->server_count && r == 0; i++)
		r = set_server(ub, (const struct sockaddr *)&conf->servers[i]);
	return r;
}

/* libunbound does not ask servers on loopback unless it is told that it may. What it writes to stderr is in the answers
 * as well. It says by itself that names for tests and homes do not exist (RFC 6761, RFC 8375), but here a server of
 * one's own may know them. The calls for that make it read the trust anchor now. */
static int set_up(struct ub_ctx *ub, const struct smtpproxy_dns *conf)
{
	int r = ub_ctx_debugout(ub, NULL);
	r = r ? r : ub_ctx_async(ub, 1);
	r = r ? r : ub_ctx_set_option(ub, "do-not-query-localhost:", "no");
	r = r ? r : ub_ctx_set_option(ub, "domain-insecure:", "test."); /* the root has no such name */
	r = r ? r : set_servers(ub, conf);
	if (r == 0 && conf->trust_anchor)
		r = ub_ctx_add_ta_file(ub, conf->trust_anchor);
	r = r ? r : ub_ctx_zone_remove(ub, "test.");
	return r ? r : ub_ctx_zone_remove(ub, "home.arpa.");
}

/* Answers */

static void dns_answer_take_name(struct dns_answer *a, const char *name)
{
	const size_t len = strlen(name), kept = len > 0 && name[len - 1] == '.' ? len - 1 : len;
	if (kept > DNS_NAME_MAX)
		return;
	memcpy(a->name, name, kept);
	a->name[kept] = '\0';
	smtp_lower(a->name);
}

static enum dns_outcome outcome_of(const struct ub_result *result)
{
	if (result->bogus)
		return DNS_BOGUS;
	if (result->havedata)
		return DNS_ANSWERED;
	if (result->rcode == RCODE_NO_NAME)
		return DNS_NO_NAME;
	return result->rcode == 0 ? DNS_NO_RECORDS : DNS_FAILED;
}

static void read_result(struct dns_answer *a, const struct ub_result *result)
{
	a->outcome = outcome_of(result);
	a->trust = result->secure ? DNS_SECURE : DNS_INSECURE;
	a->ttl_s = result->ttl > 0 ? (uint32_t)result->ttl : 0;
	a->why = result->bogus && result->why_bogus ? result->why_bogus : dns_outcome_text(a->outcome);
	if (result->canonname)
		dns_answer_take_name(a, result->canonname);
	for (; result->havedata && result->data[a->count] && a->count < DNS_RECORDS_MAX; a->count++)
		a->records[a->count] =
			(struct dns_record){ (const uint8_t *)result->data[a->count], (size_t)result->len[a->count] };
}

static void dns_question_answer(struct dns_question *q, struct dns_answer *a)
{
	q->state = DNS_QUESTION_IDLE;
	deadline_cancel(&q->deadline);
	q->on_answer(q, a);
}

static void on_result(void *ctx, int error, struct ub_result *result)
{
	struct dns_question *q = ctx;
	struct dns_answer a = { .outcome = DNS_FAILED, .why = error ? ub_strerror(error) : NULL };
	memcpy(a.name, q->name, sizeof a.name);
	if (error == 0)
		read_result(&a, result);
	dns_question_answer(q, &a);
	ub_resolve_free(result);
}

static void on_resolver_readable(void *ctx)
{
	struct resolver *r = ctx;
	ub_process(r->ub);
}

static void on_question_deadline(struct deadline *d)
{
	struct dns_question *q = container_of(d, struct dns_question, deadline);
	struct dns_answer a = { .outcome = q->state == DNS_QUESTION_ASKED ? DNS_TIMED_OUT : DNS_FAILED };
	a.why = dns_outcome_text(a.outcome);
	memcpy(a.name, q->name, sizeof a.name);
	dns_question_forget(q);
	dns_question_answer(q, &a);
}

/* Questions */

void resolver_ask(struct resolver *r, struct dns_question *q, const char *name, enum dns_type type)
{
	const bool fits = snprintf(q->name, sizeof q->name, "%s", name) < (int)sizeof q->name;
	q->resolver = r;
	q->deadline.fn = on_question_deadline;
	q->state = DNS_QUESTION_ASKED;
	if (!fits || ub_resolve_async(r->ub, q->name, type, CLASS_IN, q, on_result, &q->id) != 0)
		q->state = DNS_QUESTION_NOT_ASKED;
	deadline_set(r->worker, &q->deadline, q->state == DNS_QUESTION_ASKED ? r->timeout_ms : 0);
}

void dns_question_forget(struct dns_question *q)
{
	if (q->state == DNS_QUESTION_ASKED)
		ub_cancel(q->resolver->ub, q->id);
	deadline_cancel(&q->deadline);
	q->state = DNS_QUESTION_IDLE;
}

const char *dns_outcome_text(enum dns_outcome o)
{
	static const char *const texts[] = {
		[DNS_ANSWERED] = "answered",
		[DNS_NO_RECORDS] = "there are no such records",
		[DNS_NO_NAME] = "the name does not exist",
		[DNS_BOGUS] = "the signatures do not confirm the answer",
		[DNS_FAILED] = "the servers gave no answer",
		[DNS_TIMED_OUT] = "it took too long",
	};
	return texts[o];
}

/* Life */

struct resolver *resolver_create(struct worker *w, const struct smtpproxy_dns *conf, char *error, size_t cap)
{
	struct resolver *r = calloc(1, sizeof *r);
	int bad = UB_NOMEM;
	if (r) {
		r->worker = w;
		r->timeout_ms = conf->timeout_ms;
		r->ub = ub_ctx_create();
	}
	if (r && r->ub)
		bad = set_up(r->ub, conf);
	if (bad == 0)
		r->watch = watch_start(w, ub_fd(r->ub), on_resolver_readable, r);
	if (bad == 0 && r->watch)
		return r;
	snprintf(error, cap, "dns: %s%s%s", ub_strerror(bad), conf->trust_anchor ? ", with trust_anchor " : "",
		conf->trust_anchor ? conf->trust_anchor : "");
	resolver_destroy(r);
	return NULL;
}

void resolver_destroy(struct resolver *r)
{
	if (!r)
		return;
	watch_stop(r->watch);
	ub_ctx_delete(r->ub);
	free(r);
}
