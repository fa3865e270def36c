/* session_callbacks.c: converts a SESS_OBJ's resumption part to an SSL_SESSION and back. OpenSSL believes every session
 * that it gets, so this file first compares everything that binds a resumption: id, listener, server name, version,
 * family. (It compares the session id context itself.) */
#include "sslagent/tls/session_callbacks.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "proto/error.h"

/* --- a session comes in --- */

enum session_answer handshake_find_session(struct handshake *h, const uint8_t *id, size_t len)
{
	struct session_source *source = h->listener->source;

	if (h->found.session && len == SESSION_ID_LEN && memcmp(h->found.facts.session_id, id, len) == 0)
		return SESSION_FOUND;
	sess_obj_destroy(&h->found);
	return source->find(source, id, len, &h->found);
}

static int certificate_stands(struct handshake *h, const SSL_SESSION *session)
{
	/* The getter takes no pointer to const, and only reads. */
	const X509 *leaf = SSL_SESSION_get0_peer((SSL_SESSION *)session);

	h->offered_certificate = client_certificate_standing(leaf, h->listener->crls, worker_wall_s());
	return h->offered_certificate == CERTIFICATE_STANDS;
}

/* The facts of @session that revocations check. @hash gets the hash of the client certificate. */
static void describe_session(
	const SSL_SESSION *session, uint8_t hash[static EVP_MAX_MD_SIZE], struct offered_family *out)
{
	const SSL_CIPHER *cipher = SSL_SESSION_get0_cipher(session);
	const X509 *leaf = SSL_SESSION_get0_peer((SSL_SESSION *)session);
	uint64_t now_s = worker_wall_s();
	long made_s = SSL_SESSION_get_time(session);
	unsigned len = 0;

	out->protocol_version = (uint16_t)SSL_SESSION_get_protocol_version(session);
	out->cipher_suite = cipher ? SSL_CIPHER_get_protocol_id(cipher) : 0;
	out->session_age_s = made_s > 0 && (uint64_t)made_s < now_s ? (uint32_t)(now_s - (uint64_t)made_s) : 0;
	if (leaf && X509_digest(leaf, EVP_sha256(), hash, &len) == 1)
		out->client_certificate = hash;
}

int handshake_may_resume(
	struct handshake *h, const SSL_SESSION *session, const struct session_family *family, const char *server_name)
{
	struct session_source *source = h->listener->source;
	uint8_t hash[EVP_MAX_MD_SIZE];
	struct offered_family offered = { .id = family->id,
		.age_s = session_family_age_s(family, worker_wall_s()),
		.server_name = server_name,
		.client = &family->client,
		.carried = h->found.session ? OFFERED_FROM_STORE : OFFERED_IN_TICKET };

	if (strcasecmp(server_name ? server_name : "", h->hello.server_name) != 0)
		return 0;
	describe_session(session, hash, &offered);
	return source->family_revoked(source, &offered) == 0 && certificate_stands(h, session);
}

int handshake_makes_resumable(const struct handshake *h)
{
	return h->hello.ems == HELLO_WITH_EMS || SSL_version(h->ssl) != TLS1_2_VERSION ||
	       h->listener->conf->tls.extended_master_secret == CONF_EMS_OPTIONAL;
}

/* 1 when the decoded session and the facts of the object agree, else 0. */
static int session_matches(const struct handshake *h, const SSL_SESSION *session, const uint8_t *id, size_t len)
{
	unsigned own_len = 0;
	const uint8_t *own = SSL_SESSION_get_id(session, &own_len);

	return own_len == len && memcmp(own, id, len) == 0 &&
	       SSL_SESSION_get_protocol_version(session) == SSL_version(h->ssl);
}

/* The clock of the agent that made it means nothing here: the remaining lifetime counts from now on this agent's
 * clock. */
static int session_rebase(SSL_SESSION *session, const struct sess_obj *obj, struct session_family *family)
{
	session_family_from_facts(family, &obj->facts, worker_wall_s());
	SSL_SESSION_set_time(session, (long)time(NULL));
	SSL_SESSION_set_timeout(session, (long)obj->session_remaining_s);
	return session_family_write(session, family);
}

static SSL_SESSION *session_import(struct handshake *h, const struct sess_obj *obj, const uint8_t *id, size_t len)
{
	const unsigned char *at = obj->session;
	struct session_family family;
	SSL_SESSION *session;

	if (strcmp(obj->facts.listener, h->listener->conf->name) != 0 || obj->facts.session_id_len != len ||
		memcmp(obj->facts.session_id, id, len) != 0)
		return NULL;
	session = d2i_SSL_SESSION(NULL, &at, (long)obj->session_len);
	if (session && at == obj->session + obj->session_len && session_matches(h, session, id, len) &&
		session_rebase(session, obj, &family) == 0 &&
		handshake_may_resume(h, session, &family, obj->facts.server_name))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static SSL_SESSION *on_get_session(SSL *ssl, const unsigned char *id, int len, int *copy)
{
	struct handshake *h = handshake_of(ssl);

	*copy = 0;
	if (handshake_find_session(h, id, (size_t)len) != SESSION_FOUND || !h->found.session)
		return NULL;
	SSL_SESSION *session = session_import(h, &h->found, id, (size_t)len);
	if (session)
		h->accepted = h->hello.version == HELLO_TLS13 ? OFFER_PSK : OFFER_ID;
	return session;
}

/* --- a session goes out --- */

static int on_session_id(SSL *ssl, unsigned char *id, unsigned *len)
{
	struct session_source *source = handshake_of(ssl)->listener->source;

	if (*len < SESSION_ID_LEN)
		return 0;
	source->make_id(source, id);
	*len = SESSION_ID_LEN;
	return 1;
}

static int share(struct handshake *h, SSL_SESSION *session)
{
	struct session_source *source = h->listener->source;
	struct sess_obj obj = { .session_remaining_s = (uint32_t)SSL_SESSION_get_timeout(session) };
	unsigned char *der = NULL;
	int r = handshake_fill_facts(h, session, &obj.facts);

	if (r < 0)
		return r;
	int len = i2d_SSL_SESSION(session, &der);
	if (len <= 0)
		return CSSL_E_NO_MEMORY;
	obj.session = der;
	obj.session_len = (size_t)len;
	obj.certificate = handshake_certificate(h, &obj.certificate_len);
	r = source->share(source, h->params.worker, &obj);
	OPENSSL_clear_free(der, (size_t)len);
	return r;
}

/* TLS 1.3: before the NewSessionTicket is written. TLS 1.2: after our last flight was written, while it is still in the
 * BIO. So in both cases peers get the session before the client. */
static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
	struct handshake *h = handshake_of(ssl);

	if (!handshake_makes_resumable(h))
		h->sessions_without_ems++;
	else if (share(h, session) < 0)
		h->sessions_refused++;
	return 0; /* this callback keeps no reference */
}

void session_callbacks_set(SSL_CTX *ctx, const struct tls_listener *l)
{
	SSL_CTX_set_session_cache_mode(
		ctx, SSL_SESS_CACHE_SERVER | SSL_SESS_CACHE_NO_INTERNAL | SSL_SESS_CACHE_NO_AUTO_CLEAR);
	SSL_CTX_set_timeout(ctx, (long)l->conf->tls.session_lifetime_s);
	SSL_CTX_set_num_tickets(ctx, l->conf->tls.tickets);
	SSL_CTX_set_generate_session_id(ctx, on_session_id);
	SSL_CTX_sess_set_new_cb(ctx, on_new_session);
	SSL_CTX_sess_set_get_cb(ctx, on_get_session);
}
