/* conversation.c: a connection's conversation with its backend. It begins when a request's head is complete, or with
 * the first byte if the service follows no requests; and with a PROXY header if the cluster file says so. At
 * checkpoints the backend connection goes back to the pool. For a move it is described and restored.
 *
 * A client that says its request byte by byte would else keep a backend connection for as long as it likes. So until a
 * head is complete, its bytes are kept here. For the rest of the connection they count as given to a backend that has
 * not taken them.
 */
#include "sslagent/connection/conversation.h"

#include <string.h>

#include "proto/error.h"
#include "sslagent/backend/backend_pool.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/connection/connection_life.h"
#include "sslagent/counters.h"
#include "sslagent/tls/client_certificate.h"

bool conversation_at_checkpoint(const struct connection *c)
{
	return c->state != CONNECTION_RECOVERING && service_place(&c->service) == SERVICE_CHECKPOINT &&
	       c->to_backend == c->written;
}

void conversation_drop_asked(struct connection *c)
{
	kept_bytes_wipe(&c->asked);
	c->backend_age = BACKEND_NEW;
}

void conversation_reach_checkpoint(struct connection *c)
{
	c->delivered = DELIVERED_NOTHING;
	conversation_drop_asked(c);
	if (service_traits_now(&c->service)->sharing == SERVICE_SHARES_BACKENDS) /* any other can go on from here */
		c->backend_age = BACKEND_KEPT;
	service_at_checkpoint(&c->service);
}

/* A service that is not followed has one checkpoint: the point before the first byte. There, a new connection to the
 * backend is as good as the old one. */
bool conversation_backend_may_stay(const struct connection *c)
{
	return conversation_at_checkpoint(c) && (service_traits_now(&c->service)->following == SERVICE_NOT_FOLLOWED ||
							service_backend_reuse(&c->service) != SERVICE_BACKEND_USED_UP);
}

void conversation_count_written(struct connection *c, struct connection_event *e)
{
	if (!service_stands_between(&c->service))
		c->written += e->written;
}

/* --- what the backend learns of the client --- */

static const struct conf_backend *conf_of(const struct connection *c)
{
	return conf_backend_find(c->home->conf, c->backend_name);
}

/* The backend gets the id that a balancer in front gave the connection; our own id is in our logs. But a service that
 * stands between names its transactions by the id, and a balancer may give one id to several connections: an agent of
 * a cluster in front does that when it continues a client's session (doc/xcssltx.md). So the backend gets ours then. */
static void fill_unique_id(const struct connection *c, struct proxy_header *h)
{
	const struct endpoints *e = &c->endpoints;
	const bool goes_on = e->unique_id && !service_stands_between(&c->service);

	h->unique_id = goes_on ? e->unique_id : c->id.bytes;
	h->unique_id_len = (uint16_t)(goes_on ? e->unique_id_len : sizeof c->id.bytes);
}

#define SET(header, member, text)                                                                                      \
	do {                                                                                                           \
		(header)->member = (text);                                                                             \
		(header)->member##_len = (uint16_t)strlen((header)->member);                                           \
	} while (0)

static void fill_certificate(const struct sess_obj *o, const struct certificate_words *w, struct proxy_header *h)
{
	h->certificate = o->certificate;
	h->certificate_len = (uint16_t)o->certificate_len;
	SET(h, ssl_cn, w->common_name);
	SET(h, fingerprint, w->fingerprint);
	SET(h, serial, w->serial);
	SET(h, subject, w->subject);
	SET(h, issuer, w->issuer);
}

static void fill_tls(const struct sess_obj *o, char ja4[static JA4_TEXT_MAX], struct proxy_header *h)
{
	const struct session_facts *f = &o->facts;
	const struct cipher_suite *suite = cipher_suite_find(f->cipher_suite);

	SET(h, alpn, f->alpn);
	SET(h, authority, f->server_name);
	h->ssl_flags = PROXY_SSL;
	SET(h, ssl_version, f->protocol_version == TLS13_VERSION_WIRE ? "TLSv1.3" : "TLSv1.2");
	SET(h, ssl_cipher, suite ? suite->name : "");
	SET(h, ja4, ja4_text(&f->ja4, ja4));
	h->ssl_verify = 1;
	if (!o->certificate_len)
		return;
	h->ssl_flags |=
		f->certificate_seen == CERTIFICATE_IN_CONNECTION ? PROXY_CERT_CONN | PROXY_CERT_SESS : PROXY_CERT_SESS;
	h->ssl_verify = f->verify_result == 0 ? 0 : 1;
}

static struct backend *connect_with_header(struct connection *c, const struct conf_backend *conf)
{
	struct proxy_header header = { 0 };
	struct sess_obj facts;
	struct certificate_words words;
	char ja4[JA4_TEXT_MAX];

	if (kept_facts_read(&c->facts, &facts) < 0)
		return NULL;
	endpoints_to_proxy(&c->endpoints, &header);
	fill_unique_id(c, &header);
	fill_tls(&facts, ja4, &header);
	if (certificate_words_read(facts.certificate, facts.certificate_len, &words) == 0)
		fill_certificate(&facts, &words, &header);
	struct backend *b = backend_connect(&c->home->backend_home, conf, &header, c->home->up->backend, c);
	certificate_words_clear(&words);
	sess_obj_destroy(&facts);
	return b;
}

void conversation_id(const struct connection *c, const uint8_t **id, size_t *len)
{
	const struct conf_backend *conf = conf_of(c);
	struct proxy_header h;

	*len = 0;
	if (!conf || conf->proxy_v2 != CONF_ON)
		return;
	fill_unique_id(c, &h);
	*id = h.unique_id;
	*len = h.unique_id_len;
}

/* --- a backend connection: from the pool, or a new one --- */

/* With a PROXY header a backend connection speaks for its client only. */
static bool shares_backend(const struct connection *c, const struct conf_backend *conf)
{
	return conf->reuse == CONF_ON && conf->proxy_v2 == CONF_OFF &&
	       service_traits[c->service.kind].sharing == SERVICE_SHARES_BACKENDS;
}

static int connect_backend(struct connection *c, const struct conf_backend *conf)
{
	c->backend_age = BACKEND_NEW;
	c->backend = conf->proxy_v2 == CONF_ON
			     ? connect_with_header(c, conf)
			     : backend_connect(&c->home->backend_home, conf, NULL, c->home->up->backend, c);
	if (!c->backend)
		return CSSL_E_SYSTEM;
	count(COUNT_BACKEND_CONNECTS);
	return service_stands_between(&c->service) ? service_backend_begins(&c->service) : 0;
}

/* From the pool, or a new one. */
static int get_backend(struct connection *c)
{
	const struct conf_backend *conf = conf_of(c);

	c->backend = shares_backend(c, conf)
			     ? backend_pool_get(c->home->backends, conf, (enum conf_service)c->service.kind)
			     : NULL;
	if (!c->backend)
		return connect_backend(c, conf);
	backend_bind(c->backend, c->home->up->backend, c);
	c->backend_age = BACKEND_KEPT;
	count(COUNT_BACKEND_REUSED);
	return 0;
}

/* --- the bytes for it --- */

/* RAgent must not stop first: it reads while one more record has room in a window. */
static_assert(HEAD_KEPT_MAX + TLS_RECORD_MAX <= CONF_WINDOW_MIN, "a head would wait for RAgent, and RAgent for it");

/* The request under way is the only one: nobody has to answer anything before the client says more. */
static bool conversation_head_waits(const struct connection *c)
{
	/* without a time limit, nothing would end a client that says empty lines only, and it could never rest */
	const bool may_wait =
		c->home->conf->limits.request_head_timeout_ms || service_place(&c->service) != SERVICE_CHECKPOINT;

	return may_wait && !c->backend && c->from_client == HALF_OPEN &&
	       (c->state == CONNECTION_OWNER || c->state == CONNECTION_RECOVERING) &&
	       service_head_under_way(&c->service) && service_outstanding(&c->service) <= 1;
}

/* They are kept for another backend connection if this one has answered before, and no more than a head. */
static void conversation_keep_asked(struct connection *c, const uint8_t *data, size_t len)
{
	const size_t all = len + (c->asked ? c->asked->len : 0);

	if (c->backend_age == BACKEND_NEW)
		return;
	if (!connection_serves(c) || all > HEAD_KEPT_MAX || kept_bytes_add(&c->asked, data, len) < 0)
		conversation_drop_asked(c);
}

static int conversation_give_asked(struct connection *c)
{
	struct kept_bytes *asked = c->asked;

	c->asked = NULL;
	c->written = c->to_backend - asked->len;
	int r = backend_write(c->backend, asked->bytes, asked->len);
	kept_bytes_wipe(&asked);
	return r;
}

static int conversation_give_head(struct connection *c)
{
	int r = 0;

	if (c->head) {
		count_by(COUNT_BYTES_TO_BACKEND, c->head->len);
		conversation_keep_asked(c, c->head->bytes, c->head->len);
		r = backend_write(c->backend, c->head->bytes, c->head->len);
	}
	kept_bytes_wipe(&c->head);
	return r;
}

int conversation_ask_anew(struct connection *c)
{
	int r = connect_backend(c, conf_of(c));

	if (r < 0)
		return r;
	count(COUNT_BACKEND_ASKED_AGAIN);
	r = conversation_give_asked(c);
	if (r == 0 && c->from_client == HALF_CLOSED)
		backend_shutdown(c->backend);
	return r;
}

int conversation_ensure(struct connection *c)
{
	if (c->backend)
		return 0;
	int r = get_backend(c);
	return r < 0 ? r : conversation_give_head(c);
}

int conversation_write(struct connection *c, const uint8_t *data, size_t len)
{
	const bool waits = conversation_head_waits(c);
	int r = waits ? kept_bytes_add(&c->head, data, len) : conversation_ensure(c);

	if (r < 0)
		return r;
	c->to_backend += len;
	if (waits)
		return 0;
	count_by(COUNT_BYTES_TO_BACKEND, len);
	conversation_keep_asked(c, data, len);
	return backend_write(c->backend, data, len);
}

/* --- its end, or its way to another agent --- */

void conversation_release(struct connection *c, enum end_reason reason)
{
	if (!c->backend)
		return;
	if (c->state == CONNECTION_FROZEN)
		backend_close_quietly(c->backend); /* the successor has it */
	else if (reason == END_DONE)
		backend_close(c->backend);
	else
		backend_reset(c->backend);
	c->backend = NULL;
}

void conversation_reuse(struct connection *c)
{
	if (!c->backend || !shares_backend(c, backend_conf(c->backend)) || !conversation_at_checkpoint(c))
		return;
	switch (service_backend_reuse(&c->service)) {
	case SERVICE_BACKEND_USED_UP:
	case SERVICE_BACKEND_TIED: return;
	case SERVICE_BACKEND_FOR_CLIENT: count(COUNT_BACKEND_NOT_SHARED); return;
	case SERVICE_BACKEND_FOR_ALL:
		backend_pool_put(c->home->backends, c->backend, (enum conf_service)c->service.kind);
		c->backend = NULL;
		return;
	}
}

int conversation_describe(struct connection *c, struct passed_backend *out)
{
	struct backend_half half;

	memset(out, 0, sizeof *out);
	out->fd = -1;
	out->connection = c->id;
	strncpy(out->backend, backend_conf(c->backend)->name, sizeof out->backend - 1);
	out->to_state = c->from_client == HALF_CLOSED ? BACKEND_SHUT : BACKEND_WRITING;
	int r = service_save(&c->service, &out->service_state, &out->service_state_len);
	if (r == 0)
		r = backend_take_half(c->backend, &half);
	if (r < 0) {
		passed_backend_destroy(out);
		return r;
	}
	out->fd = half.fd;
	out->from_backend = half.unread;
	out->from_backend_len = half.unread_len;
	return 0;
}

int conversation_restore(struct connection *c, struct passed_backend *p)
{
	const struct conf_backend *conf = conf_backend_find(c->home->conf, p->backend);
	int fd = p->fd;

	if (!conf)
		return CSSL_E_MISMATCH;
	p->fd = -1;
	c->backend = backend_open_fd(&c->home->backend_home, conf, fd, c->home->up->backend, c);
	if (!c->backend)
		return CSSL_E_SYSTEM;
	enum conf_service kind = c->service.kind;
	const bool stands_between = service_stands_between(&c->service);
	service_destroy(&c->service);
	service_restore(&c->service, kind, &c->home->service_blocks, p->service_state, p->service_state_len);
	if (stands_between && !service_stands_between(&c->service)) /* nobody would keep the client's words apart */
		return CSSL_E_MISMATCH;
	return backend_give_unread(c->backend, p->from_backend, p->from_backend_len);
}
