/* fuzz_live.c: a client with valid keys says anything, the agent seals, updates keys, moves and takes over between.
 * What the record layer hands out must be what was sent, a violation must end the reading with an alert, and all that
 * was sealed must open at the client, in order. */
#include <string.h>

#include "proto/cipher_suite.h"
#include "proto/error.h"
#include "proto/wire.h"
#include "sslagent/tls/live_internal.h"
#include "tests/fuzz/must.h"
#include "tests/lib/live_pair.h"

static struct live_pair pair;
static uint8_t record[FORGED_RECORD_MAX];
static uint64_t now_ms;
static uint64_t client_ms; /* a client of this kind knows no limit on KeyUpdates */

/* The client gets the bytes that the agent sealed. */
static void client_reads(ptrdiff_t len, enum live_content expected, const uint8_t *data, size_t data_len)
{
	struct live_record got;

	MUST(len > 0 && (size_t)len <= TLS_RECORD_MAX);
	client_ms += LIVE_KEY_UPDATE_EVERY_MS;
	MUST(live_open_bytes(pair.reader, record, (size_t)len, client_ms, &got) == 0);
	MUST(got.content == expected);
	if (expected == LIVE_DATA)
		MUST(got.len == data_len && (data_len == 0 || memcmp(got.data, data, data_len) == 0));
}

static void check_opened(int r, const struct live_record *got, const struct forged_record *sent)
{
	struct live_record after;

	if (r < 0) {
		MUST(live_alert_owed(pair.agent) != TLS_ALERT_CLOSE_NOTIFY);
		MUST(live_end_reason(pair.agent) != END_DONE);
		MUST(live_open(pair.agent, &(struct tls_record){ .bytes = record }, now_ms, &after) == CSSL_E_STATE);
		return;
	}
	MUST(got->content <= LIVE_IGNORED);
	if (got->content != LIVE_DATA)
		return;
	MUST(sent && sent->type == TLS_APPLICATION_DATA && got->len == sent->len &&
		got->len <= live_fragment_max(pair.agent));
	MUST(got->len == 0 || memcmp(got->data, sent->content, got->len) == 0);
}

static int has_failed(void)
{
	return pair.agent->reading == READ_FAILED;
}

static void client_forges(struct wire_reader *in)
{
	struct forged_record r = { .type = wire_u8(in), .outer_type = wire_u8(in), .padding = wire_u16(in) };
	uint8_t flags = wire_u8(in);
	size_t len = wire_u16(in);
	struct live_record got;
	uint32_t generation = live_position(pair.agent).read_generation;

	r.tag = flags & 1 ? FORGED_TAG_WRONG : FORGED_TAG_RIGHT;
	r.len = len < wire_left(in) ? len : wire_left(in);
	r.content = wire_bytes(in, r.len);
	ptrdiff_t n = record_forge_seal(pair.client, &r, record, sizeof(record));
	if (n < 0 || has_failed())
		return;
	int open = pair.agent->reading == READ_OPEN;
	struct tls_record_header h;
	if (tls_record_scan(record, (size_t)n, &h) != 0) /* for the carrier to refuse */
		return;
	int result = live_open_bytes(pair.agent, record, (size_t)n, now_ms, &got);
	/* Without a type of its own, the content's last byte is taken for one. */
	if (r.type == 0 && result == 0 && got.content == LIVE_DATA)
		MUST(got.len < r.len && memcmp(got.data, r.content, got.len) == 0);
	else
		check_opened(result, &got, &r);
	MUST(r.tag == FORGED_TAG_RIGHT || result < 0 || !open);
	if (live_position(pair.agent).read_generation != generation)
		MUST(record_forge_step(pair.client) == 0);
}

/* Bytes as they are: without the keys nothing opens. */
static void client_sends_raw(struct wire_reader *in)
{
	size_t len = wire_u16(in);
	struct tls_record_header h;
	struct live_record got;

	len = len < wire_left(in) ? len : wire_left(in);
	const uint8_t *bytes = wire_bytes(in, len);
	if (!bytes || len > sizeof(record) || has_failed())
		return;
	memcpy(record, bytes, len);
	int r = tls_record_scan(record, len, &h);
	if (r != 0)
		return; /* for the carrier to refuse */
	int open = pair.agent->reading == READ_OPEN;
	r = live_open_bytes(pair.agent, record, TLS_RECORD_HEADER_LEN + h.length, now_ms, &got);
	MUST(!open || r < 0);
	check_opened(r, &got, NULL);
}

static void agent_seals(struct wire_reader *in)
{
	size_t max = live_fragment_max(pair.agent), len = wire_u16(in);
	enum live_due due = live_due(pair.agent);
	int ended = live_ends(pair.agent) & LIVE_WRITE_CLOSED;

	len = len < wire_left(in) ? len : wire_left(in);
	len = len < max ? len : max;
	const uint8_t *data = wire_bytes(in, len);
	ptrdiff_t n = live_seal(pair.agent, data, data ? len : 0, record);
	if (due != LIVE_NOTHING_DUE || ended)
		MUST(n == CSSL_E_STATE);
	else
		client_reads(n, LIVE_DATA, data, data ? len : 0);
}

static void agent_does_what_is_due(struct wire_reader *in)
{
	enum live_due due = live_due(pair.agent);
	struct live_part before, after;

	if (due == LIVE_WAITS_FOR_COMMIT) {
		MUST(live_seal_alert(pair.agent, TLS_ALERT_FATAL, TLS_ALERT_INTERNAL_ERROR, record) == CSSL_E_STATE);
		live_committed(pair.agent, live_position(pair.agent).write_generation);
		MUST(live_due(pair.agent) != LIVE_WAITS_FOR_COMMIT);
	} else if (due == LIVE_KEY_UPDATE_DUE) {
		live_describe(pair.agent, LIVE_AFTER_KEY_UPDATE, &before);
		client_reads(live_seal_key_update(pair.agent, record), LIVE_KEY_UPDATED, NULL, 0);
		live_describe(pair.agent, LIVE_NOW, &after);
		MUST(before.write_generation == after.write_generation && after.write_sequence == 0);
	} else if (due == LIVE_WARNING_DUE) {
		client_reads(live_seal_alert(pair.agent, TLS_ALERT_WARNING, TLS_ALERT_NO_RENEGOTIATION, record),
			LIVE_IGNORED, NULL, 0);
	}
}

static void agent_moves(struct wire_reader *in)
{
	enum live_start how = wire_u8(in) & 1 ? LIVE_TAKES_OVER : LIVE_CONTINUES;
	uint16_t epoch = (uint16_t)(pair.agent->epoch + 1);
	struct live_part part;
	struct live *next;
	unsigned ends = live_ends(pair.agent);

	if (epoch == 0 || pair.agent->reading == READ_FAILED || pair.agent->hello_left > 0 ||
		live_unfinished(pair.agent) > 0)
		return;
	live_freeze(pair.agent, &part);
	MUST(live_seal(pair.agent, NULL, 0, record) == CSSL_E_STATE);
	struct live_position at = live_part_position(&part);
	int r = live_create(pair.pool, &part, pair.suite->id, &at, epoch, how, &next);
	if (r < 0) {
		MUST(r == CSSL_E_UNSAFE && how == LIVE_TAKES_OVER);
		MUST(live_create(pair.pool, &part, pair.suite->id, &at, epoch, LIVE_CONTINUES, &next) == 0);
	}
	live_destroy(pair.agent);
	pair.agent = next;
	live_restore_ends(next, ends);
}

static void agent_closes(struct wire_reader *in)
{
	ptrdiff_t n = live_seal_alert(pair.agent, TLS_ALERT_WARNING, TLS_ALERT_CLOSE_NOTIFY, record);

	MUST(n > 0 || n == CSSL_E_STATE);
	if (n > 0)
		MUST(live_ends(pair.agent) & LIVE_WRITE_CLOSED);
}

static void time_passes(struct wire_reader *in)
{
	now_ms += wire_u16(in);
}

static void (*const operations[])(struct wire_reader *in) = {
	client_forges,
	client_sends_raw,
	agent_seals,
	agent_does_what_is_due,
	agent_moves,
	agent_closes,
	time_passes,
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct wire_reader in = wire_reader(bytes, len);
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);
	static const uint16_t fragments[] = { 0, 512, 1024, 64 };
	uint16_t suite = suites[wire_u8(&in) % count].id;
	uint8_t settings = wire_u8(&in);

	now_ms = client_ms = 0;
	MUST(live_pair_start(&pair, suite, fragments[settings & 3]) == 0);
	if (settings & 4)
		pair.pool->limit = 3;
	while (wire_left(&in) > 0)
		operations[wire_u8(&in) % (sizeof(operations) / sizeof(operations[0]))](&in);
	live_pair_stop(&pair);
	return 0;
}
