/* live_open.c: open a record and judge its content. Each violation has its alert (RFC 8446 5 and 6.2, RFC 5246 6.2 and
 * 7.2). The first violation ends the reading for ever. After authentication both versions use one table: content type
 * -> judge. */
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"
#include "sslagent/tls/live.h"
#include "sslagent/tls/live_internal.h"

#define HANDSHAKE_HEADER_LEN      4u
#define HANDSHAKE_CLIENT_HELLO    1u
#define HANDSHAKE_KEY_UPDATE      24u
#define RENEGOTIATION_HELLO_MAX   65535u
#define ALERT_USER_CANCELED       90u
#define TLS13_INNER_PLAINTEXT_MAX (TLS_PLAINTEXT_MAX + 1u)

static int fail_for(struct live *l, enum tls_alert alert, enum end_reason reason, int error)
{
	l->reading = READ_FAILED;
	l->alert_owed = (uint8_t)alert;
	l->end_reason = (uint8_t)reason;
	return error;
}

static int live_fail(struct live *l, enum tls_alert alert, int error)
{
	return fail_for(l, alert, END_RECORD_VIOLATION, error);
}

static void rate_turn(struct live_rate *r, uint64_t now_ms)
{
	if (now_ms - r->since_ms < 1000)
		return;
	r->since_ms = now_ms;
	r->dataless = 0;
}

/* A token bucket, stored as the time up to which its tokens are spent. */
uint64_t live_key_update_wait_ms(const struct live *l, uint64_t now_ms)
{
	const uint64_t free_ms = now_ms + LIVE_KEY_UPDATES_AT_ONCE * LIVE_KEY_UPDATE_EVERY_MS;

	return l->rate.key_updates_paid_ms > free_ms ? l->rate.key_updates_paid_ms - free_ms : 0;
}

/* false: the client had to wait, or too many in a row made it wait. A short wait shows only that one was opened late.
 */
static bool takes_key_update(struct live *l, uint64_t now_ms)
{
	struct live_rate *r = &l->rate;
	const uint64_t from_ms = r->key_updates_paid_ms > now_ms ? r->key_updates_paid_ms : now_ms;

	if (live_key_update_wait_ms(l, now_ms) > 0)
		return false;
	r->key_updates_paid_ms = from_ms + LIVE_KEY_UPDATE_EVERY_MS;
	r->key_updates_paced =
		live_key_update_wait_ms(l, now_ms) > LIVE_KEY_UPDATE_EVERY_MS / 2 ? r->key_updates_paced + 1 : 0;
	return r->key_updates_paced <= LIVE_KEY_UPDATES_PACED + l->connection.bytes[0] % LIVE_KEY_UPDATES_PACED_MORE;
}

static int count_dataless(struct live *l)
{
	if (++l->rate.dataless > LIVE_DATALESS_RECORDS_PER_S)
		return live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_EXHAUSTED);
	return 0;
}

/* Content of one record, authenticated. */
struct content {
	uint8_t type;
	uint8_t *data;
	size_t len;
	size_t record_len; /* header, padding and tag, too */
	uint64_t now_ms;
};

static int judge_data(struct live *l, const struct content *c, struct live_record *out)
{
	/* No other type stands between the records of a message (RFC 8446 5.1, RFC 5246 6.2.1). */
	if (l->hello_left > 0 || l->begun_len > 0)
		return live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_TYPE);
	*out = (struct live_record){ .content = LIVE_DATA, .data = c->data, .len = c->len };
	return c->len == 0 ? count_dataless(l) : 0;
}

static int alert_closes(struct live *l, struct live_record *out)
{
	l->reading = READ_CLOSED;
	out->content = LIVE_CLOSE_NOTIFY;
	return 0;
}

static int alert_kills(struct live *l, uint8_t description, struct live_record *out)
{
	l->reading = READ_FAILED;
	l->end_reason = END_ALERT_RECEIVED;
	*out = (struct live_record){ .content = LIVE_ALERT, .alert = description };
	return 0;
}

/* Which alerts are warnings: by level in TLS 1.2; in TLS 1.3 the level means nothing, and only these two are (RFC 8446
 * 6). */
static int judge_alert(struct live *l, const struct content *c, struct live_record *out)
{
	if (c->len != 2) /* neither fragmented nor coalesced (RFC 8446 5.1); OpenSSL and others never did in TLS 1.2 */
		return live_fail(l, TLS_ALERT_DECODE_ERROR, CSSL_E_RANGE);

	uint8_t level = c->data[0], description = c->data[1];
	out->content = LIVE_IGNORED;
	if (live_is_tls13(l)) {
		if (l->begun_len > 0 && (description == TLS_ALERT_CLOSE_NOTIFY || description == ALERT_USER_CANCELED))
			return live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_TYPE); /* as judge_data() */
		if (description == TLS_ALERT_CLOSE_NOTIFY)
			return alert_closes(l, out);
		return description == ALERT_USER_CANCELED ? count_dataless(l) : alert_kills(l, description, out);
	}
	if (level != TLS_ALERT_WARNING && level != TLS_ALERT_FATAL)
		return live_fail(l, TLS_ALERT_ILLEGAL_PARAMETER, CSSL_E_RANGE);
	if (level == TLS_ALERT_FATAL)
		return alert_kills(l, description, out);
	return description == TLS_ALERT_CLOSE_NOTIFY ? alert_closes(l, out) : count_dataless(l);
}

/* The message with this record's part of it. 0; or negative. */
static int join_key_update(struct live *l, const struct content *c, struct wire_reader *out)
{
	const size_t room = KEY_UPDATE_LEN - l->begun_len, len = c->len < room ? c->len : room;

	memcpy(l->begun + l->begun_len, c->data, len);
	l->begun_len += (uint8_t)len;
	*out = wire_reader(l->begun, l->begun_len);
	if (l->begun[0] != HANDSHAKE_KEY_UPDATE)
		return live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_TYPE);
	wire_u8(out);
	if (wire_u24(out) != 1 && l->begun_len >= HANDSHAKE_HEADER_LEN)
		return live_fail(l, TLS_ALERT_DECODE_ERROR, CSSL_E_RANGE);
	return c->len > len ? live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_TRAILING) : 0;
}

/* RFC 8446 4.6.3: it ends at a record boundary, because the key changes after it (5.1). All other post-handshake
 * messages come from servers only, or were not offered. */
static int judge_key_update(struct live *l, const struct content *c, struct live_record *out)
{
	struct wire_reader message;
	int r = join_key_update(l, c, &message);

	if (r < 0)
		return r;
	if (l->begun_len < KEY_UPDATE_LEN) {
		l->begun_records++;
		l->begun_bytes += (uint32_t)c->record_len;
		return l->begun_bytes > BEGUN_BYTES_MAX ? live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_TOO_LONG)
							: count_dataless(l);
	}
	const uint8_t request = wire_u8(&message);
	l->begun_bytes = l->begun_len = l->begun_records = 0;
	if (request > 1)
		return live_fail(l, TLS_ALERT_ILLEGAL_PARAMETER, CSSL_E_RANGE);
	if (!takes_key_update(l, c->now_ms) || l->read.generation == UINT32_MAX)
		return fail_for(l, TLS_ALERT_UNEXPECTED_MESSAGE, END_KEY_UPDATE_FLOOD, CSSL_E_EXHAUSTED);
	if (live_step_keys(l, &l->read) < 0)
		return fail_for(l, TLS_ALERT_INTERNAL_ERROR, END_INTERNAL, CSSL_E_CRYPTO);
	if (request == 1)
		l->owed = OWES_KEY_UPDATE;
	l->asked = ASKED_NOTHING;
	out->content = LIVE_KEY_UPDATED;
	return 0;
}

/* TLS 1.2: a ClientHello asks for a renegotiation. The first one gets a warning, and its bytes are skipped. Any other
 * message is a violation, and so is a HelloRequest, which only servers send. */
static int judge_renegotiation(struct live *l, const struct content *c, struct live_record *out)
{
	struct wire_reader r = wire_reader(c->data, c->len);

	if (l->hello_left == 0) {
		uint8_t type = wire_u8(&r);
		uint32_t len = wire_u24(&r);

		if (c->len < HANDSHAKE_HEADER_LEN || type != HANDSHAKE_CLIENT_HELLO)
			return live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_TYPE);
		if (l->renegotiation != HELLO_NONE)
			return fail_for(l, TLS_ALERT_UNEXPECTED_MESSAGE, END_RENEGOTIATION, CSSL_E_STATE);
		if (len > RENEGOTIATION_HELLO_MAX)
			return live_fail(l, TLS_ALERT_DECODE_ERROR, CSSL_E_TOO_LONG);
		l->renegotiation = HELLO_WARNING_DUE;
		l->hello_left = len;
	}
	if (wire_left(&r) > l->hello_left) /* more bytes after the hello in the same record */
		return live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_TRAILING);
	l->hello_left -= (uint32_t)wire_left(&r);
	out->content = LIVE_IGNORED;
	return count_dataless(l);
}

static int live_open_judge(struct live *l, const struct content *c, struct live_record *out)
{
	size_t max = live_fragment_max(l);

	if (c->len > max) /* RFC 6066 4 binds both sides */
		return live_fail(l, TLS_ALERT_RECORD_OVERFLOW, CSSL_E_TOO_LONG);
	if (c->type == TLS_APPLICATION_DATA)
		return judge_data(l, c, out);
	if (c->len == 0) /* RFC 8446 5.4, RFC 5246 6.2.1 */
		return live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_RANGE);
	if (c->type == TLS_ALERT)
		return judge_alert(l, c, out);
	if (c->type == TLS_HANDSHAKE)
		return live_is_tls13(l) ? judge_key_update(l, c, out) : judge_renegotiation(l, c, out);
	return live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_TYPE);
}

static int open_body(struct live *l, const struct record_operation *o)
{
	int r = l->read.sequence == UINT64_MAX ? CSSL_E_AUTH : record_aead_open(l->pool->aead, &l->read.loaded, o);

	if (r == CSSL_E_AUTH)
		return live_fail(l, TLS_ALERT_BAD_RECORD_MAC, r);
	if (r < 0)
		return fail_for(l, TLS_ALERT_INTERNAL_ERROR, END_INTERNAL, r);
	l->read.sequence++;
	return 0;
}

/* RFC 8446 5.2, 5.4. */
static int open_tls13(struct live *l, const struct tls_record *record, struct content *out)
{
	const struct tls_record_header *h = &record->header;
	uint8_t *body = record->bytes + TLS_RECORD_HEADER_LEN;

	if (h->type !=
		TLS_APPLICATION_DATA) /* plaintext, change_cipher_spec included, after the handshake (RFC 8446 5) */
		return live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_TYPE);
	if (h->length > TLS13_CIPHERTEXT_MAX)
		return live_fail(l, TLS_ALERT_RECORD_OVERFLOW, CSSL_E_TOO_LONG);
	if (h->length < RECORD_TAG_LEN)
		return live_fail(l, TLS_ALERT_BAD_RECORD_MAC, CSSL_E_AUTH);

	struct record_operation o = { .ad = record->bytes,
		.ad_len = TLS_RECORD_HEADER_LEN,
		.in = body,
		.len = h->length - RECORD_TAG_LEN,
		.out = body };
	live_nonce_from_sequence(&l->read, o.nonce);
	int r = open_body(l, &o);
	if (r < 0)
		return r;
	if (o.len > TLS13_INNER_PLAINTEXT_MAX)
		return live_fail(l, TLS_ALERT_RECORD_OVERFLOW, CSSL_E_TOO_LONG);

	size_t len = o.len;
	while (len > 0 && body[len - 1] == 0)
		len--;
	if (len == 0)
		return live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_TYPE);
	out->type = body[len - 1];
	out->data = body;
	out->len = len - 1;
	return 0;
}

/* RFC 5246 6.2.3.3, RFC 5288 3, RFC 7905 2. */
static int open_tls12(struct live *l, const struct tls_record *record, struct content *out)
{
	const struct tls_record_header *h = &record->header;
	size_t explicit_len = live_explicit_nonce_len(l);
	uint8_t *body = record->bytes + TLS_RECORD_HEADER_LEN + explicit_len;
	uint8_t ad[TLS12_AD_LEN];

	if (h->version != TLS12_VERSION_WIRE)
		return live_fail(l, TLS_ALERT_PROTOCOL_VERSION, CSSL_E_VERSION);
	if (h->type == TLS_CHANGE_CIPHER_SPEC)
		return live_fail(l, TLS_ALERT_UNEXPECTED_MESSAGE, CSSL_E_TYPE);
	if (h->length < explicit_len + RECORD_TAG_LEN)
		return live_fail(l, TLS_ALERT_BAD_RECORD_MAC, CSSL_E_AUTH);

	struct record_operation o = {
		.ad = ad, .ad_len = sizeof ad, .in = body, .len = h->length - explicit_len - RECORD_TAG_LEN, .out = body
	};
	live_tls12_ad(l->read.sequence, h->type, o.len, ad);
	live_nonce_from_sequence(&l->read, o.nonce);
	if (explicit_len > 0)
		memcpy(o.nonce + l->suite->iv_len, record->bytes + TLS_RECORD_HEADER_LEN, explicit_len);
	out->type = h->type;
	out->data = body;
	out->len = o.len;
	return open_body(l, &o);
}

int live_open(struct live *l, const struct tls_record *record, uint64_t now_ms, struct live_record *out)
{
	struct content c = { .record_len = TLS_RECORD_HEADER_LEN + record->header.length, .now_ms = now_ms };

	if (l->state == LIVE_FROZEN || l->reading == READ_FAILED)
		return CSSL_E_STATE;
	*out = (struct live_record){ .content = LIVE_IGNORED };
	if (l->reading == READ_CLOSED) { /* RFC 8446 6.1: ignored. Counted, so that positions go on */
		l->read.sequence++;
		return 0;
	}
	rate_turn(&l->rate, now_ms);
	int r = live_is_tls13(l) ? open_tls13(l, record, &c) : open_tls12(l, record, &c);
	return r < 0 ? r : live_open_judge(l, &c, out);
}

enum tls_alert live_alert_owed(const struct live *l)
{
	return l->alert_owed;
}

enum end_reason live_end_reason(const struct live *l)
{
	return l->end_reason == END_DONE && live_tls12_limit_reached(l) ? END_KEY_LIMIT : l->end_reason;
}
