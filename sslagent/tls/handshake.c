/* handshake.c: drives OpenSSL over a record_bio, one record at a time, and collects the facts of the agreement. The
 * callbacks (hello, session, ticket, export) find their handshake through the SSL's app data. */
#include <assert.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/secret_heap.h"
#include "net/points/fault.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "sslagent/tls/handshake_internal.h"
#include "sslagent/tls/tls_contexts.h"

#define ALERTS_END (SSL_AD_REASON_OFFSET + 256) /* reasons from SSL_AD_REASON_OFFSET on are received alerts */
#define PULLS_MAX  2u                           /* of one handshake */

#define TO(s) (1u << (s))
static const unsigned may_move_to[] = {
	[HANDSHAKE_FEEDING] = TO(HANDSHAKE_IS_PARKED) | TO(HANDSHAKE_COMPLETE) | TO(HANDSHAKE_FAILED),
	[HANDSHAKE_IS_PARKED] = TO(HANDSHAKE_FEEDING) | TO(HANDSHAKE_FAILED),
	[HANDSHAKE_COMPLETE] = TO(HANDSHAKE_EXPORTED) | TO(HANDSHAKE_FAILED),
	[HANDSHAKE_EXPORTED] = 0,
	[HANDSHAKE_FAILED] = 0,
};

void handshake_move(struct handshake *h, enum handshake_state to)
{
	assert(may_move_to[h->state] & TO(to));
	h->state = to;
}

struct handshake *handshake_create(
	struct tls_contexts *contexts, const struct tls_listener *listener, const struct handshake_params *params)
{
	struct handshake *h = secret_heap_zalloc(sizeof *h);
	BIO *bio;

	if (!h)
		return NULL;
	h->contexts = tls_contexts_ref(contexts);
	h->listener = listener;
	h->params = *params;
	h->ssl = SSL_new(tls_listener_default(listener));
	bio = record_bio_create(&h->bio);
	if (!h->ssl || !bio) {
		BIO_free(bio);
		handshake_destroy(h);
		return NULL;
	}
	SSL_set_bio(h->ssl, bio, bio); /* takes one reference for both */
	SSL_set_app_data(h->ssl, h);
	SSL_set_accept_state(h->ssl);
	return h;
}

void handshake_destroy(struct handshake *h)
{
	if (!h)
		return;
	/* Set shutdown on both sides: without it OpenSSL marks the session bad. */
	if (h->ssl)
		SSL_set_shutdown(h->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(h->ssl);
	record_bio_clear(&h->bio);
	sess_obj_destroy(&h->found);
	OPENSSL_free(h->certificate);
	tls_contexts_unref(h->contexts);
	secret_heap_free(h);
}

/* OpenSSL answers a hello of legacy version 1.3 with an alert in a record of version 1.3, which no client accepts. */
static void mend_alert(struct record_bio *b)
{
	uint8_t *record = b->out + b->out_start;

	if (b->out_end - b->out_start == TLS_RECORD_HEADER_LEN + 2 && record[0] == TLS_ALERT && record[1] != 3)
		tls_record_header_write(record, TLS_ALERT, TLS12_VERSION_WIRE, 2);
}

static const struct {
	int reason;
	enum refusal refusal;
} reasons[] = {
	{ SSL_R_UNSUPPORTED_PROTOCOL, REFUSAL_VERSION },
	{ SSL_R_UNKNOWN_PROTOCOL, REFUSAL_VERSION },
	{ SSL_R_VERSION_TOO_LOW, REFUSAL_VERSION },
	{ SSL_R_VERSION_TOO_HIGH, REFUSAL_VERSION },
	{ SSL_R_BAD_LEGACY_VERSION, REFUSAL_VERSION },
	{ SSL_R_INAPPROPRIATE_FALLBACK, REFUSAL_VERSION },
	{ SSL_R_NO_SHARED_CIPHER, REFUSAL_CIPHER },
	{ SSL_R_NO_SUITABLE_KEY_SHARE, REFUSAL_CIPHER },
	{ SSL_R_NO_SUITABLE_GROUPS, REFUSAL_CIPHER },
	{ SSL_R_NO_SHARED_GROUPS, REFUSAL_CIPHER },
	{ SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, REFUSAL_CIPHER },
	{ SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS, REFUSAL_CIPHER },
	{ SSL_R_UNSUPPORTED_ELLIPTIC_CURVE, REFUSAL_CIPHER },
	{ SSL_R_NO_APPLICATION_PROTOCOL, REFUSAL_ALPN },
	{ SSL_R_CERTIFICATE_VERIFY_FAILED, REFUSAL_CERTIFICATE },
	{ SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, REFUSAL_CERTIFICATE },
	{ SSL_R_BAD_SIGNATURE, REFUSAL_CERTIFICATE },
};

/* @error is of OpenSSL's queue; 0: the queue was empty. Several of OpenSSL's reasons mean the same to an operator. */
static enum refusal refusal_of_error(unsigned long error)
{
	const int reason = ERR_GET_REASON(error);

	if (error == 0 || ERR_GET_LIB(error) != ERR_LIB_SSL)
		return REFUSAL_OTHER;
	if (reason >= SSL_AD_REASON_OFFSET && reason < ALERTS_END)
		return REFUSAL_ALERT;
	for (unsigned i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
		if (reasons[i].reason == reason)
			return reasons[i].refusal;
	return REFUSAL_MESSAGE;
}

static int handshake_fail(struct handshake *h, const char *cause)
{
	unsigned long error = ERR_peek_error();
	const char *reason = error ? ERR_reason_error_string(error) : NULL;

	if (h->bio.out)
		mend_alert(&h->bio);
	if (cause || !h->error[0]) /* handshake_on_verify() knows more than OpenSSL's queue */
		snprintf(h->error, sizeof h->error, "%s", cause ? cause : reason ? reason : "failed");
	h->refusal = cause ? REFUSAL_OTHER : refusal_of_error(error);
	ERR_clear_error();
	handshake_move(h, HANDSHAKE_FAILED);
	return CSSL_E_AUTH;
}

int handshake_on_verify(int ok, X509_STORE_CTX *store)
{
	struct handshake *h = handshake_of(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
	const char *cause = X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));

	if (ok)
		return ok;
	char *subject = certificate_name_text(X509_get_subject_name(X509_STORE_CTX_get0_cert(store)));
	snprintf(h->error, sizeof h->error, "client certificate refused: %s", cause);
	log_paced(LOG_INFO, &h->params.connection, "client certificate refused", "cause=%s subject=%.300s%s", cause,
		subject ? subject : "", subject && strlen(subject) > 300 ? "..." : "");
	free(subject);
	return ok;
}

static int handshake_done(struct handshake *h)
{
	size_t certificate_len;

	if (h->bio.in_len > 0 || SSL_has_pending(h->ssl))
		return handshake_fail(h, "bytes behind the client's Finished in its record");
	handshake_certificate(h, &certificate_len);
	/* Such a connection could never move: the certificate that the backend knows must move with it. */
	if (certificate_len > CERTIFICATE_MAX)
		return handshake_fail(h, "the client's certificate is too large for a SESS_OBJ");
	handshake_move(h, HANDSHAKE_COMPLETE);
	return HANDSHAKE_DONE;
}

static int handshake_go(struct handshake *h)
{
	ERR_clear_error();
	export_watch(h);
	int r = SSL_do_handshake(h->ssl);
	export_watch(NULL);
	export_watch_output(h);
	if (r == 1)
		return handshake_done(h);
	h->bio.in_len = 0; /* the caller frees its record; OpenSSL has read it, or failed */

	switch (SSL_get_error(h->ssl, r)) {
	case SSL_ERROR_WANT_READ: return HANDSHAKE_MORE;
	case SSL_ERROR_WANT_CLIENT_HELLO_CB: handshake_move(h, HANDSHAKE_IS_PARKED); return HANDSHAKE_PARKED;
	default: return handshake_fail(h, NULL);
	}
}

struct handshake_place *handshake_place(struct handshake *h)
{
	return &h->place;
}

bool handshake_is_parked(const struct handshake *h)
{
	return h->state == HANDSHAKE_IS_PARKED;
}

struct turn_waiter *handshake_waiter(struct handshake *h)
{
	return &h->waiter;
}

/* As OpenSSL answers a message above its own bound. Hellos are in the clear, and so is this. */
static int refuse_hello(struct handshake *h)
{
	static const uint8_t alert[] = { TLS_ALERT, 3, 3, 0, 2, TLS_ALERT_FATAL, TLS_ALERT_ILLEGAL_PARAMETER };

	BIO_write(SSL_get_wbio(h->ssl), alert, sizeof alert);
	int r = handshake_fail(h, "the hello claims too many bytes");
	h->refusal = REFUSAL_HELLO;
	return r;
}

/* While it waits for the second hello, it has to skip early data (RFC 8446 4.2.10). Since release 3.2, OpenSSL refuses
 * such a record there if it is longer than plaintext may be. */
static bool is_early_data_too_long(const struct handshake *h, const uint8_t *record, size_t len)
{
	return record[0] == TLS_APPLICATION_DATA && len > TLS_RECORD_HEADER_LEN + TLS_PLAINTEXT_MAX &&
	       SSL_version(h->ssl) == TLS1_3_VERSION && h->derived[OWN_SERVER_TRAFFIC].len == 0;
}

static int step_with(struct handshake *h, const uint8_t *record, size_t len)
{
	h->bio.in = record;
	h->bio.in_len = len;
	return handshake_go(h);
}

/* Nobody reads what is skipped, so it may as well be shorter. */
static int step_with_less(struct handshake *h, const uint8_t *record)
{
	uint8_t less[TLS_RECORD_HEADER_LEN + TLS_PLAINTEXT_MAX];

	memcpy(less, record, sizeof less);
	tls_record_header_write(less, record[0], TLS12_VERSION_WIRE, TLS_PLAINTEXT_MAX);
	return step_with(h, less, sizeof less);
}

int handshake_feed(struct handshake *h, const uint8_t *record, size_t len)
{
	if (h->state != HANDSHAKE_FEEDING)
		return CSSL_E_STATE;
	const char *point = h->records++ == 0 ? "handshake.hello" : "handshake.before_finished";
	if (fault_at(point, NULL, NULL) == FAULT_FAIL)
		return handshake_fail(h, "fault point");
	/* In TLS 1.3 it means nothing, and the second hello comes behind it (RFC 8446 D.4). */
	if (record[0] == TLS_CHANGE_CIPHER_SPEC && SSL_version(h->ssl) < TLS1_3_VERSION)
		client_hello_watch_end(&h->watch);
	if (record[0] == TLS_HANDSHAKE && len > TLS_RECORD_HEADER_LEN &&
		client_hello_watch(&h->watch, record + TLS_RECORD_HEADER_LEN, len - TLS_RECORD_HEADER_LEN) < 0)
		return refuse_hello(h);
	h->sealed_by_client = record[0] == TLS_CHANGE_CIPHER_SPEC ? 0 : h->sealed_by_client + 1;
	return is_early_data_too_long(h, record, len) ? step_with_less(h, record) : step_with(h, record, len);
}

/* OpenSSL chooses the alert, and its keys, if any. */
int handshake_violation(struct handshake *h, const struct tls_record_header *bad)
{
	uint8_t record[TLS_RECORD_HEADER_LEN + 1] = { 0 };
	uint16_t length = bad->length > TLS12_CIPHERTEXT_MAX ? bad->length : 1;

	tls_record_header_write(record, bad->type, bad->version, length);
	int r = handshake_feed(h, record, sizeof record);
	return r > 0 ? handshake_fail(h, "what came is no record") : r;
}

void handshake_pulled(struct handshake *h, enum session_answer answer)
{
	h->pull = answer == SESSION_FOUND && h->pulls < PULLS_MAX ? PULL_NOT_NEEDED : PULL_ENDED;
}

int handshake_continue(struct handshake *h)
{
	if (h->state != HANDSHAKE_IS_PARKED)
		return CSSL_E_STATE;
	handshake_move(h, HANDSHAKE_FEEDING);
	if (h->pull == PULL_WAITS)
		h->pull = PULL_ENDED;
	return handshake_go(h);
}

void handshake_rest(struct handshake *h)
{
	if (h->state == HANDSHAKE_FEEDING)
		SSL_free_buffers(h->ssl); /* not when parked: OpenSSL may have more of a record to read */
}

const uint8_t *handshake_wanted_id(const struct handshake *h)
{
	return h->wanted;
}

const char *handshake_error(const struct handshake *h)
{
	return h->error;
}

enum refusal handshake_refusal(const struct handshake *h)
{
	return h->refusal;
}

void handshake_hello_facts(const struct handshake *h, struct session_facts *out)
{
	out->ja4 = h->ja4;
	memcpy(out->server_name, h->hello.server_name, sizeof out->server_name);
}

enum certificate_standing handshake_offered_certificate(const struct handshake *h)
{
	return h->offered_certificate;
}

size_t handshake_output(struct handshake *h, const uint8_t **data)
{
	size_t len = h->bio.out_end - h->bio.out_start;

	*data = len > 0 ? h->bio.out + h->bio.out_start : NULL;
	return len;
}

int handshake_output_run(struct handshake *h, size_t max, const uint8_t **data, struct tls_record_run *run)
{
	struct tls_record_header bad;
	const size_t len = handshake_output(h, data);

	*run = (struct tls_record_run){ 0 };
	if (len == 0)
		return 0;
	return tls_record_scan_run(*data, len, max, run, &bad) < 0 || run->len == 0 ? CSSL_E_CRYPTO : 0;
}

void handshake_output_taken(struct handshake *h, size_t len)
{
	struct record_bio *b = &h->bio;

	assert(len <= b->out_end - b->out_start);
	b->out_start += len;
	if (b->out_start == b->out_end)
		b->out_start = b->out_end = h->scanned = 0;
}

const uint8_t *handshake_certificate(struct handshake *h, size_t *len)
{
	const X509 *leaf = h->certificate ? NULL : SSL_get0_peer_certificate(h->ssl);

	if (leaf)
		h->certificate_len = i2d_X509(leaf, &h->certificate);
	*len = h->certificate && h->certificate_len > 0 ? (size_t)h->certificate_len : 0;
	return h->certificate;
}

static void fact_copy(char *out, size_t cap, const void *name, size_t len)
{
	if (len >= cap || memchr(name, '\0', len))
		len = 0;
	memcpy(out, name, len);
	out[len] = '\0';
}

int handshake_fill_facts(struct handshake *h, SSL_SESSION *session, struct session_facts *out)
{
	const struct tls_listener *l = h->listener;
	const unsigned char *alpn = NULL, *id, *context;
	unsigned alpn_len = 0, id_len = 0, context_len = 0;
	int r = handshake_join_family(h, session);

	if (r < 0)
		return r;
	SSL_get0_alpn_selected(h->ssl, &alpn, &alpn_len);
	id = SSL_SESSION_get_id(session, &id_len);
	context = SSL_SESSION_get0_id_context(session, &context_len);
	*out = (struct session_facts){ .protocol_version = (uint16_t)SSL_version(h->ssl),
		.cipher_suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(h->ssl)),
		.family_age_s = session_family_age_s(&h->family, worker_wall_s()),
		.client = h->params.client,
		.verify_result = SSL_get_verify_result(h->ssl),
		.context_len = (uint8_t)context_len };
	memcpy(out->family_id, h->family.id, FAMILY_ID_LEN);
	memcpy(out->context, context, context_len); /* at most 32 */
	/* With a TLS 1.2 ticket the client has invented the id. */
	if (id_len == SESSION_ID_LEN && h->accepted != OFFER_TICKET) {
		memcpy(out->session_id, id, id_len);
		out->session_id_len = SESSION_ID_LEN;
	}
	if (l->source->origin)
		fact_copy(out->origin, sizeof out->origin, l->source->origin, strlen(l->source->origin));
	fact_copy(out->listener, sizeof out->listener, l->conf->name, strlen(l->conf->name));
	fact_copy(out->server_name, sizeof out->server_name, h->hello.server_name, strlen(h->hello.server_name));
	if (alpn)
		fact_copy(out->alpn, sizeof out->alpn, alpn, alpn_len);
	return 0;
}
