/* mail_mark.c: reads the head of a mail line by line up to the empty line. All that follows goes into the hash. */
#include "bench/mail/mail_mark.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/error.h"

#define HASH_HEX_LEN (2 * MAIL_MARK_HASH_LEN)

void mail_mark_hash(const void *body, size_t len, uint8_t hash[static MAIL_MARK_HASH_LEN])
{
	crypto_generichash(hash, MAIL_MARK_HASH_LEN, body, len, NULL, 0);
}

size_t mail_mark_write(const struct mail_mark *mark, char out[static MAIL_MARK_LINE_MAX])
{
	char hex[HASH_HEX_LEN + 1];

	sodium_bin2hex(hex, sizeof hex, mark->hash, sizeof mark->hash);
	int len = snprintf(out, MAIL_MARK_LINE_MAX, MAIL_MARK ": %s %" PRIu64 " %s\r\n", mark->id, mark->body_len, hex);
	return (size_t)len;
}

int mail_mark_parse(struct smtp_span value, struct mail_mark *out)
{
	size_t hash_len;
	struct smtp_span id = smtp_span_word(&value), len = smtp_span_word(&value), hash = smtp_span_word(&value);

	if (id.len == 0 || smtp_span_copy(id, out->id, sizeof out->id) < 0 || value.len > 0)
		return CSSL_E_RANGE;
	if (smtp_span_number(len, UINT64_MAX, &out->body_len) < 0 || hash.len != HASH_HEX_LEN)
		return CSSL_E_RANGE;
	if (sodium_hex2bin(out->hash, sizeof out->hash, hash.at, hash.len, NULL, &hash_len, NULL) != 0)
		return CSSL_E_RANGE;
	return hash_len == sizeof out->hash ? 0 : CSSL_E_RANGE;
}

void mail_check_begin(struct mail_check *check)
{
	check->is_marked = check->in_body = check->line_len = 0;
	check->body_len = 0;
	crypto_generichash_init(&check->hash, NULL, 0, MAIL_MARK_HASH_LEN);
}

/* A header line is complete, with its end. */
static void mail_check_take_line(struct mail_check *check)
{
	struct smtp_span line = smtp_span_trim((struct smtp_span){ check->line, check->line_len });

	if (check->line_len <= 2) {
		check->in_body = 1;
		return;
	}
	while (line.len > 0 && (line.at[line.len - 1] == '\n' || line.at[line.len - 1] == '\r'))
		line.len--;
	if (!check->is_marked && smtp_span_is(smtp_span_until(&line, ':'), MAIL_MARK))
		check->is_marked = mail_mark_parse(line, &check->mark) == 0;
}

/* A line that is longer than any mark is not one: its rest is skipped. */
static size_t feed_head(struct mail_check *check, const char *data, size_t len)
{
	const char *lf = memchr(data, '\n', len);
	size_t piece = lf ? (size_t)(lf - data) + 1 : len, room = sizeof check->line - check->line_len;
	size_t kept = piece < room ? piece : room;

	memcpy(check->line + check->line_len, data, kept);
	check->line_len = (uint8_t)(check->line_len + kept);
	if (lf) {
		mail_check_take_line(check);
		check->line_len = 0;
	}
	return piece;
}

void mail_check_feed(struct mail_check *check, const char *data, size_t len)
{
	while (len > 0 && !check->in_body) {
		size_t taken = feed_head(check, data, len);
		data += taken;
		len -= taken;
	}
	if (len == 0)
		return;
	crypto_generichash_update(&check->hash, (const uint8_t *)data, len);
	check->body_len += len;
}

enum mail_verdict mail_check_end(struct mail_check *check)
{
	uint8_t hash[MAIL_MARK_HASH_LEN];

	if (!check->is_marked)
		return MAIL_UNMARKED;
	crypto_generichash_final(&check->hash, hash, sizeof hash);
	if (check->body_len != check->mark.body_len || sodium_memcmp(hash, check->mark.hash, sizeof hash) != 0)
		return MAIL_WRONG;
	return MAIL_RIGHT;
}
