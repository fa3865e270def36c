/* export.c: an established connection leaves OpenSSL, through public API only.
 *
 * TLS 1.3: the key schedule gives the traffic secrets. The server's secret is derived directly after our Finished, when
 * the write sequence is 0. Each record header that OpenSSL writes after that adds one (a ticket may take several
 * records). TLS 1.2: the PRF gives the key block. Our Finished is one record. The client's Finished
 * may take several (RFC 5246 6.2.1). The explicit nonce of our Finished is R (live.h), found in the output.
 */
#include <openssl/err.h>
#include <sodium.h>
#include <string.h>

#include "net/points/audit.h"
#include "net/points/mutant.h"
#include "proto/cipher_suite.h"
#include "proto/error.h"
#include "proto/tls_record.h"
#include "sslagent/tls/handshake_internal.h"
#include "sslagent/tls/live_internal.h"

#define MASTER_SECRET_LEN 48u

/* --- while the handshake runs --- */

static void on_derived(void *ctx, enum own_derived what, const uint8_t *bytes, size_t len)
{
	struct handshake *h = ctx;
	struct derived *to = &h->derived[what];

	if (len > sizeof to->bytes)
		len = what == OWN_KEY_BLOCK ? sizeof to->bytes : 0;
	memcpy(to->bytes, bytes, len);
	to->len = (uint8_t)len;
	if (what == OWN_SERVER_TRAFFIC)
		h->records_after_finished = 0;
}

/* OpenSSL's own key schedule gives its secrets only as lines of text: label, client random and secret, in hexadecimal
 * digits. It wipes the line. */
static void on_keylog(const SSL *ssl, const char *line)
{
	static const char *const labels[] = {
		[OWN_CLIENT_TRAFFIC] = "CLIENT_TRAFFIC_SECRET_0 ", [OWN_SERVER_TRAFFIC] = "SERVER_TRAFFIC_SECRET_0 "
	};
	uint8_t secret[TRAFFIC_SECRET_MAX];
	const char *digits = strrchr(line, ' '), *end;
	size_t len = 0;

	for (unsigned i = 0; digits && i < sizeof labels / sizeof labels[0]; i++) {
		if (strncmp(line, labels[i], strlen(labels[i])) != 0)
			continue;
		digits++;
		if (sodium_hex2bin(secret, sizeof secret, digits, strlen(digits), NULL, &len, &end) == 0 && !*end)
			on_derived(handshake_of(ssl), (enum own_derived)i, secret, len);
		break;
	}
	OPENSSL_cleanse(secret, sizeof secret);
}

void export_watch(struct handshake *h)
{
	own_derivations_watch(h ? on_derived : NULL, h);
}

static void export_on_message(int is_out, int version, int type, const void *buf, size_t len, SSL *ssl, void *arg)
{
	if (is_out && type == SSL3_RT_HEADER)
		handshake_of(ssl)->records_after_finished++;
	if (!is_out && type == SSL3_RT_HANDSHAKE)
		hello_read(handshake_of(ssl), buf, len);
}

void export_callbacks_set(SSL_CTX *ctx, enum tls_algorithms a)
{
	SSL_CTX_set_msg_callback(ctx, export_on_message);
	if (a == TLS_ALGORITHMS_OPENSSL)
		SSL_CTX_set_keylog_callback(ctx, on_keylog);
}

void export_watch_output(struct handshake *h)
{
	const struct record_bio *b = &h->bio;

	if (SSL_version(h->ssl) != TLS1_2_VERSION)
		return;
	while (h->nonce != NONCE_SEEN && b->out_end - h->scanned >= TLS_RECORD_HEADER_LEN) {
		struct tls_record_header r;
		if (tls_record_scan(b->out + h->scanned, b->out_end - h->scanned, &r) != 0)
			return;
		if (h->nonce == NONCE_NEXT && r.type == TLS_HANDSHAKE && r.length >= sizeof h->finished_nonce) {
			/* OpenSSL counts its explicit nonces from this one; those of owners keep clear of them (law 1)
			 */
			memcpy(h->finished_nonce, b->out + h->scanned + TLS_RECORD_HEADER_LEN,
				sizeof h->finished_nonce);
			h->nonce = NONCE_SEEN;
		} else if (r.type == TLS_CHANGE_CIPHER_SPEC) {
			h->nonce = NONCE_NEXT;
		}
		h->scanned += TLS_RECORD_HEADER_LEN + r.length;
	}
}

/* --- at its end --- */

static int take_secret(const struct derived *from, const struct cipher_suite *suite, struct direction_keys *out)
{
	if (from->len != suite->hash_len)
		return CSSL_E_STATE;
	memcpy(out->secret, from->bytes, from->len);
	out->secret_len = from->len;
	return 0;
}

static int export_tls13(struct handshake *h, const struct cipher_suite *suite)
{
	struct live_part *part = &h->part;
	int r = take_secret(&h->derived[OWN_CLIENT_TRAFFIC], suite, &part->client_write);

	part->read_sequence = 0;
	part->write_sequence = h->records_after_finished;
	return r < 0 ? r : take_secret(&h->derived[OWN_SERVER_TRAFFIC], suite, &part->server_write);
}

/* OpenSSL's own PRF shows its results to nobody: derive the key block again. */
static int derive_key_block(struct handshake *h, const struct cipher_suite *suite)
{
	struct live_part *part = &h->part;
	uint8_t master[MASTER_SECRET_LEN], client[RANDOM_LEN], server[RANDOM_LEN];
	int r = CSSL_E_STATE;

	if (SSL_SESSION_get_master_key(SSL_get0_session(h->ssl), master, sizeof master) == sizeof master &&
		SSL_get_client_random(h->ssl, client, sizeof client) == sizeof client &&
		SSL_get_server_random(h->ssl, server, sizeof server) == sizeof server)
		r = key_schedule_expand_block(h->listener->algorithms, suite,
			&(struct tls12_secrets){ master, client, server }, &part->client_write, &part->server_write);
	OPENSSL_cleanse(master, sizeof master);
	return r;
}

static int export_tls12(struct handshake *h, const struct cipher_suite *suite)
{
	struct live_part *part = &h->part;
	const struct derived *seen = &h->derived[OWN_KEY_BLOCK];

	if (h->nonce != NONCE_SEEN)
		return CSSL_E_STATE;
	part->read_sequence = h->sealed_by_client;
	part->write_sequence = 1;
	if (cipher_suite_has_record_nonce(suite))
		memcpy(part->record_nonce, h->finished_nonce, sizeof part->record_nonce);
	if (seen->len < key_schedule_block_len(suite))
		return derive_key_block(h, suite);
	key_schedule_cut_block(suite, seen->bytes, &part->client_write, &part->server_write);
	return 0;
}

/* Test builds: OpenSSL used the first numbers of the server's keys, for tickets or for its Finished. */
static void audit_first_records(const struct handshake *h, const struct cipher_suite *suite)
{
	struct live_direction d = { .keys = h->part.server_write };
	EVP_KDF_CTX *schedule = audit_active() ? key_schedule_create(TLS_ALGORITHMS_OPENSSL) : NULL;
	uint8_t nonce[AEAD_IV_LEN];
	const struct audit_sealing s = { .connection = h->part.connection.bytes,
		.epoch = 1,
		.suite = suite->id,
		.type = TLS_HANDSHAKE,
		.key = d.keys.key,
		.key_len = suite->key_len,
		.nonce = nonce };

	if (schedule && d.keys.secret_len)
		key_schedule_derive(schedule, suite, &d.keys);
	for (; schedule && d.sequence < h->part.write_sequence; d.sequence++) {
		live_nonce_from_sequence(&d, nonce);
		if (cipher_suite_has_record_nonce(suite))
			memcpy(nonce + suite->iv_len, h->finished_nonce, sizeof h->finished_nonce);
		audit_sealed_by_openssl(&s, (const uint8_t *)&d.sequence, sizeof d.sequence);
	}
	EVP_KDF_CTX_free(schedule);
	OPENSSL_cleanse(&d, sizeof d);
}

static int export_part(struct handshake *h)
{
	const SSL_CIPHER *cipher = SSL_get_current_cipher(h->ssl);
	const struct cipher_suite *suite = cipher ? cipher_suite_find(SSL_CIPHER_get_protocol_id(cipher)) : NULL;
	uint8_t code = SSL_SESSION_get_max_fragment_length(SSL_get0_session(h->ssl));

	if (!suite || suite->protocol_version != SSL_version(h->ssl))
		return CSSL_E_STATE;
	h->part = (struct live_part){ .connection = h->params.connection,
		.epoch = 1,
		.max_fragment = (uint16_t)(code ? 256u << code : 0), /* RFC 6066 4 */
		.remaining_s = SESSION_LIFETIME_MAX_S };
	int r = suite->protocol_version == TLS13_VERSION_WIRE ? export_tls13(h, suite) : export_tls12(h, suite);
	audit_first_records(h, suite);
	/* law 1: OpenSSL sealed the tickets with these keys; the owner begins behind them */
	if (mutant("tickets-uncounted"))
		h->part.write_sequence = 0;
	return r;
}

static void fill_handshake_facts(struct handshake *h, struct handshake_facts *out)
{
	int resumed = SSL_session_reused(h->ssl);

	*out = (struct handshake_facts){ .kind = resumed ? HANDSHAKE_RESUMED : HANDSHAKE_FULL,
		.by = RESUMED_NOT,
		.early_data = SSL_get_early_data_status(h->ssl) == SSL_EARLY_DATA_REJECTED ? EARLY_DATA_SKIPPED
											   : EARLY_DATA_NONE,
		.sessions_refused = h->sessions_refused,
		.sessions_without_ems = h->sessions_without_ems };
	if (resumed)
		out->by = h->accepted == OFFER_TICKET ? RESUMED_BY_TICKET
			  : h->accepted == OFFER_PSK  ? RESUMED_BY_PSK
						      : RESUMED_BY_ID;
}

int handshake_export(struct handshake *h, struct sess_obj *out, struct handshake_facts *facts)
{
	struct sess_obj obj = { .live = &h->part };

	if (h->state != HANDSHAKE_COMPLETE || h->bio.out_start != h->bio.out_end || SSL_has_pending(h->ssl))
		return CSSL_E_STATE;
	handshake_move(h, HANDSHAKE_EXPORTED);
	ERR_clear_error();
	int r = export_part(h);
	if (r == 0)
		r = handshake_fill_facts(h, SSL_get_session(h->ssl), &obj.facts);
	if (r < 0)
		return r;
	obj.facts.ja4 = h->ja4;
	obj.certificate = handshake_certificate(h, &obj.certificate_len);
	fill_handshake_facts(h, facts);
	*out = obj;
	return 0;
}
