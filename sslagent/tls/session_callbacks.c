/* session_callbacks.c: converts a SESS_OBJ's resumption part to an SSL_SESSION and back, and seals tickets. OpenSSL
 * believes every session that it gets, so this file first compares everything that binds a resumption: id, listener,
 * server name, version, family. (It compares the session id context itself.)
 *
 * A family as appdata: version (1) | family id (16) | unix time (8) | client's address (0, 4 or 16). The time is
 * rewritten to this agent's clock when a session comes in as SESS_OBJ. Only inside tickets it may be from another
 * agent's clock. */
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "proto/error.h"
#include "proto/wire.h"
#include "sslagent/tls/handshake_internal.h"
#include "sslagent/tls/tls_library.h"

#define APPDATA_VERSION 1u
#define APPDATA_LEN_MAX (1u + FAMILY_ID_LEN + 8u + 16u)
#define TICKET_IV_LEN   16

/* --- families --- */

int session_family_read(SSL_SESSION *session, struct session_family *out)
{
	void *data = NULL;
	size_t len = 0;

	if (SSL_SESSION_get0_ticket_appdata(session, &data, &len) != 1 || !data)
		return CSSL_E_NOT_FOUND;
	struct wire_reader r = wire_reader(data, len);
	uint8_t version = wire_u8(&r);
	const uint8_t *id = wire_bytes(&r, FAMILY_ID_LEN);
	uint64_t since_s = wire_u64(&r);
	size_t client_len = wire_left(&r);
	if (!id || version != APPDATA_VERSION || (client_len != 0 && client_len != 4 && client_len != 16))
		return CSSL_E_NOT_FOUND;
	const uint8_t *client = wire_bytes(&r, client_len);
	if (wire_reader_end(&r) != 0)
		return CSSL_E_NOT_FOUND;
	*out = (struct session_family){ .since_s = since_s, .state = FAMILY_KNOWN, .client.len = (uint8_t)client_len };
	memcpy(out->id, id, FAMILY_ID_LEN);
	memcpy(out->client.bytes, client, client_len);
	return 0;
}

int session_family_write(SSL_SESSION *session, const struct session_family *family)
{
	uint8_t data[APPDATA_LEN_MAX];
	struct wire_writer w = wire_writer(data, sizeof data);

	wire_put_u8(&w, APPDATA_VERSION);
	wire_put_bytes(&w, family->id, FAMILY_ID_LEN);
	wire_put_u64(&w, family->since_s);
	wire_put_bytes(&w, family->client.bytes, family->client.len);
	return SSL_SESSION_set1_ticket_appdata(session, data, (size_t)wire_writer_len(&w)) == 1 ? 0 : CSSL_E_NO_MEMORY;
}

void session_family_begin(struct session_family *out, uint64_t now_s)
{
	*out = (struct session_family){ .since_s = now_s, .state = FAMILY_KNOWN };
	randombytes_buf(out->id, sizeof out->id);
}

void session_family_from_facts(struct session_family *out, const struct session_facts *facts, uint64_t now_s)
{
	*out = (struct session_family){ .client = facts->client, .state = FAMILY_KNOWN };
	memcpy(out->id, facts->family_id, FAMILY_ID_LEN);
	out->since_s = now_s > facts->family_age_s ? now_s - facts->family_age_s : 0;
}

uint32_t session_family_age_s(const struct session_family *family, uint64_t now_s)
{
	uint64_t age = now_s > family->since_s ? now_s - family->since_s : 0;

	return age > UINT32_MAX ? UINT32_MAX : (uint32_t)age;
}

int handshake_join_family(struct handshake *h, SSL_SESSION *session)
{
	int r = session_family_read(session, &h->family);

	if (r == 0)
		return 0;
	if (h->family.state == FAMILY_UNKNOWN) {
		session_family_begin(&h->family, worker_wall_s());
		h->family.client = h->params.client;
	}
	return session_family_write(session, &h->family);
}

/* --- a session comes in --- */

enum session_answer handshake_find_session(struct handshake *h, const uint8_t *id, size_t len)
{
	struct session_source *source = h->listener->source;

	if (h->found.session && len == SESSION_ID_LEN && memcmp(h->found.facts.session_id, id, len) == 0)
		return SESSION_FOUND;
	sess_obj_destroy(&h->found);
	return source->find(source, id, len, &h->found);
}

static bool certificate_stands(struct handshake *h, const SSL_SESSION *session)
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

/* May @session, of @family and made for @server_name, be resumed in this handshake? */
static bool may_resume(
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
		return false;
	describe_session(session, hash, &offered);
	return !source->family_revoked(source, &offered) && certificate_stands(h, session);
}

/* Without an extended master secret (RFC 7627) a TLS 1.2 session is not tied to its handshake: an attacker between
 * client and server can make two sessions with the same secrets, and resume one in the place of the other. So such a
 * session is neither shared nor put into a ticket, and no client can resume it. OpenSSL does the rest: in a handshake
 * with the extension it resumes no session that was made without it. A handshake without the extension that offers a
 * session made with it fails. */
static bool makes_resumable(const struct handshake *h)
{
	return h->hello.ems == HELLO_WITH_EMS || SSL_version(h->ssl) != TLS1_2_VERSION ||
	       h->listener->conf->tls.extended_master_secret == CONF_EMS_OPTIONAL;
}

static bool session_matches(const struct handshake *h, const SSL_SESSION *session, const uint8_t *id, size_t len)
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

	/* law 13: the object tells whose session it is, not who sent it or was asked for it */
	if (strcmp(obj->facts.listener, h->listener->conf->name) != 0 || obj->facts.session_id_len != len ||
		memcmp(obj->facts.session_id, id, len) != 0)
		return NULL;
	session = d2i_SSL_SESSION(NULL, &at, (long)obj->session_len);
	if (session && at == obj->session + obj->session_len && session_matches(h, session, id, len) &&
		session_rebase(session, obj, &family) == 0 && may_resume(h, session, &family, obj->facts.server_name))
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

static int session_share(struct handshake *h, SSL_SESSION *session)
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

	if (!makes_resumable(h))
		h->sessions_without_ems++;
	else if (session_share(h, session) < 0)
		h->sessions_refused++;
	return 0; /* this callback keeps no reference */
}

/* --- tickets: the keys are unique per ticket: the source derives them from a cluster key and the ticket's iv --- */

static bool session_use_key(
	const struct ticket_key *key, const unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seal)
{
	EVP_CIPHER *aes = EVP_CIPHER_fetch(tls_library(), "AES-256-CBC", NULL);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key->mac_key, sizeof key->mac_key),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA2-256", 0),
		OSSL_PARAM_construct_end(),
	};

	bool ok = aes && EVP_MAC_CTX_set_params(mac, params) == 1 &&
		  EVP_CipherInit_ex2(cipher, aes, key->cipher_key, iv, seal, NULL) == 1;
	EVP_CIPHER_free(aes);
	return ok;
}

/* 1: go on; 0: no such key, make a full handshake, or with no ticket in it (RFC 5077 3.3); -1: failed. */
static int on_ticket_key(
	SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seal)
{
	struct session_source *source = handshake_of(ssl)->listener->source;
	struct ticket_key key;

	if (seal && !makes_resumable(handshake_of(ssl)))
		return 0;
	if (seal && RAND_bytes_ex(tls_library(), iv, TICKET_IV_LEN, 0) != 1)
		return -1;
	int r = source->ticket_key(source, seal ? NULL : name, iv, &key);
	if (r < 0) /* no key to seal with: this agent has just started, and its peers do not have its key yet */
		return 0;
	if (seal)
		memcpy(name, key.name, sizeof key.name);
	r = session_use_key(&key, iv, cipher, mac, seal) ? 1 : -1;
	OPENSSL_cleanse(&key, sizeof key);
	return r;
}

/* Called before the client learns of a session, stateful sessions included. Each child gets its listener's full
 * lifetime again; the family's age bounds a chain of resumptions. */
static int on_make_ticket(SSL *ssl, void *arg)
{
	struct handshake *h = handshake_of(ssl);
	SSL_SESSION *session = SSL_get_session(ssl);

	SSL_SESSION_set_timeout(session, (long)h->listener->conf->tls.session_lifetime_s);
	return handshake_join_family(h, session) == 0;
}

static SSL_TICKET_RETURN on_open_ticket(
	SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t name_len, SSL_TICKET_STATUS status, void *arg)
{
	struct handshake *h = handshake_of(ssl);
	struct session_family family;

	if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	if (session_family_read(session, &family) < 0 ||
		!may_resume(h, session, &family, SSL_SESSION_get0_hostname(session)))
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	h->accepted = OFFER_TICKET;
	return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
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
	SSL_CTX_set_session_ticket_cb(ctx, on_make_ticket, on_open_ticket, NULL);
	if (l->conf->tls.tls12_tickets == CONF_ON)
		SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket_key);
}
