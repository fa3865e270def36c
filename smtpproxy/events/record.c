/* record.c: builds the JSON of a record while the transaction runs. Bytes from outside become text first. */
#include "smtpproxy/events/record.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "net/report/log_pace.h"

#define TEXT_MAX 512u

/* JSON is UTF-8, and a log line shows no control characters. */
static json_t *record_text_json(struct smtp_span span)
{
	char text[TEXT_MAX];
	const size_t len = span.len < sizeof text ? span.len : sizeof text;
	const int is_utf8 = smtp_span_is_utf8((struct smtp_span){ span.at, len });
	for (size_t i = 0; i < len; i++) {
		const unsigned char byte = (unsigned char)span.at[i];
		text[i] = byte < 0x20 || byte == 0x7f || (byte > 0x7f && !is_utf8) ? '?' : (char)byte;
	}
	return json_stringn(text, len);
}

static json_t *time_text(int64_t wall_ms)
{
	char text[64];
	const time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;
	gmtime_r(&seconds, &tm);
	size_t len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, sizeof text - len, ".%03dZ", (int)(wall_ms % 1000));
	return json_string(text);
}

void record_begin(struct record *r, const struct record_origin *origin, struct smtp_span from)
{
	*r = (struct record){ .recipients = json_array(), .began_ms = origin->now_ms, .turn_ms = origin->now_ms };
	r->fields = json_pack("{s:o,s:I,s:s,s:o,s:s,s:o}", "time", time_text(origin->wall_ms), "connection",
		(json_int_t)origin->connection, "client", origin->client, "ehlo",
		record_text_json(smtp_span_of(origin->ehlo)), "destination", origin->destination, "from",
		record_text_json(from));
}

void record_turn(struct record *r, uint64_t now_ms)
{
	r->turn_ms = now_ms;
}

void record_recipient(struct record *r, struct smtp_span to)
{
	if (json_array_size(r->recipients) == RECORD_RECIPIENTS_MAX) {
		r->more++;
		return;
	}
	json_array_append_new(r->recipients, json_pack("{s:o}", "to", record_text_json(to)));
}

static void set_reply(json_t *object, const struct smtp_reply_line *line)
{
	char enhanced[32];
	json_object_set_new(object, "code", json_integer(line->code));
	if (line->enhanced.status) {
		snprintf(enhanced, sizeof enhanced, "%u.%u.%u", line->enhanced.status, line->enhanced.subject,
			line->enhanced.detail);
		json_object_set_new(object, "enhanced", json_string(enhanced));
	}
	json_object_set_new(object, "text", record_text_json(line->text));
}

void record_recipient_reply(struct record *r, const struct smtp_reply_line *line)
{
	json_t *one = json_array_get(r->recipients, r->answered++);
	if (one)
		set_reply(one, line);
}

void record_reply(struct record *r, const struct smtp_reply_line *line)
{
	json_object_del(r->fields, "enhanced");
	set_reply(r->fields, line);
}

void record_own_reply(struct record *r, enum smtp_own which, const char *said)
{
	char line[SMTP_REPLY_LINE_MAX];
	struct smtp_reply_line parsed;
	const size_t len = smtp_own_line(which, said, line);

	if (smtp_reply_line_parse((struct smtp_span){ line, len }, &parsed) == 0)
		record_reply(r, &parsed);
}

void record_text(struct record *r, const char *key, const char *value)
{
	json_object_set_new(r->fields, key, json_string(value));
}

void record_tls(struct record *r, const char *version, const char *cipher)
{
	json_object_set_new(r->fields, "tls", json_pack("{s:s, s:s}", "version", version, "cipher", cipher));
}

void record_sender_tls(struct record *r, struct smtp_span version, struct smtp_span cipher)
{
	json_object_set_new(r->fields, "sender_tls",
		json_pack("{s:o, s:o}", "version", record_text_json(version), "cipher", record_text_json(cipher)));
}

json_t *record_end(struct record *r, enum record_outcome outcome, uint64_t size, uint64_t now_ms)
{
	static const char *const outcomes[] = {
		[RECORD_ACCEPTED] = "accepted",
		[RECORD_REFUSED] = "refused",
		[RECORD_ABORTED] = "aborted",
		[RECORD_IN_DOUBT] = "in doubt",
		[RECORD_NOT_SERVED] = "not served",
	};
	json_t *out = r->fields;
	json_object_set_new(out, "recipients", r->recipients);
	if (r->more)
		json_object_set_new(out, "more", json_integer((json_int_t)r->more));
	json_object_set_new(out, "size", json_integer((json_int_t)size));
	json_object_set_new(out, "outcome", json_string(outcomes[outcome]));
	const uint64_t turn_ms = outcome == RECORD_NOT_SERVED ? now_ms : r->turn_ms;
	json_object_set_new(out, "wait_ms", json_integer((json_int_t)(turn_ms - r->began_ms)));
	json_object_set_new(out, "ms", json_integer((json_int_t)(now_ms - r->began_ms)));
	*r = (struct record){ 0 };
	return out;
}

static const char *text_in(const json_t *record, const char *key)
{
	const char *text = json_string_value(json_object_get(record, key));
	return text ? text : "";
}

/* Of the record, or of the last recipient that was refused. */
static const json_t *reply_in(const json_t *record)
{
	const json_t *recipients = json_object_get(record, "recipients"), *reply = record;
	for (size_t i = 0; !json_object_get(record, "code") && i < json_array_size(recipients); i++)
		if (json_integer_value(json_object_get(json_array_get(recipients, i), "code")) >= 400)
			reply = json_array_get(recipients, i);
	return reply;
}

void record_tell(const json_t *record)
{
	const json_int_t more = json_integer_value(json_object_get(record, "more"));
	const json_t *reply = reply_in(record);
	log_paced(LOG_INFO, NULL, "mail not accepted",
		"client=%s from=%s recipients=%zu to=%s outcome=%s code=%d text=%s", text_in(record, "client"),
		text_in(record, "from"), json_array_size(json_object_get(record, "recipients")) + (size_t)more,
		text_in(record, "destination"), text_in(record, "outcome"),
		(int)json_integer_value(json_object_get(reply, "code")), text_in(reply, "text"));
}
