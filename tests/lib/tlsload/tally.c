/* tally.c */
#include "tests/lib/tlsload/tally.h"

#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>

const char *end_name(enum connection_end e)
{
	static const char *const names[] = {
#define X(name, text) [END_##name] = text,
		CONNECTION_ENDS(X)
#undef X
	};
	return names[e];
}

const char *place_name(enum connection_place p)
{
	static const char *const names[] = {
#define X(name, text) [PLACE_##name] = text,
		CONNECTION_PLACES(X)
#undef X
	};
	return names[p];
}

void tally_note(struct tally *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(t->notes[t->noted++ % NOTES_MAX], NOTE_LEN, format, args);
	va_end(args);
}

static void put_count(json_t *to, const char *name, uint64_t count)
{
	if (count > 0)
		json_object_set_new(to, name, json_integer((json_int_t)count));
}

static json_t *ends_json(const struct tally *t)
{
	json_t *all = json_object();

	for (unsigned e = 0; e < END_COUNT; e++) {
		json_t *places = json_object();
		for (unsigned p = 0; p < PLACE_COUNT; p++)
			put_count(places, place_name((enum connection_place)p), t->ends[e][p]);
		if (json_object_size(places) > 0)
			json_object_set(all, end_name((enum connection_end)e), places);
		json_decref(places);
	}
	return all;
}

static json_t *statuses_json(const struct tally *t)
{
	json_t *all = json_object();
	char name[8];

	for (unsigned s = 0; s < STATUSES_MAX; s++) {
		snprintf(name, sizeof(name), "%u", s);
		put_count(all, name, t->statuses[s]);
	}
	return all;
}

static json_t *alerts_json(const struct tally *t)
{
	json_t *all = json_object();

	for (int a = 0; a < (int)ALERTS_MAX; a++)
		put_count(all, SSL_alert_desc_string_long(a), t->alerts[a]);
	return all;
}

static json_t *histogram_json(const struct histogram *h)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "count", (json_int_t)h->count, "p50",
		(json_int_t)histogram_at(h, 500), "p90", (json_int_t)histogram_at(h, 900), "p99",
		(json_int_t)histogram_at(h, 990), "max", (json_int_t)h->max_us);
}

json_t *tally_json(const struct tally *t)
{
	json_t *notes = json_array();

	for (unsigned i = t->noted > NOTES_MAX ? t->noted - NOTES_MAX : 0; i < t->noted; i++)
		json_array_append_new(notes, json_string(t->notes[i % NOTES_MAX]));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o}",
		"connected", (json_int_t)t->connected, "resumed", (json_int_t)t->resumed, "requests",
		(json_int_t)t->requests, "answers", (json_int_t)t->answers, "bytes_in", (json_int_t)t->bytes_in,
		"bytes_out", (json_int_t)t->bytes_out, "key_updates", (json_int_t)t->key_updates, "ends", ends_json(t),
		"statuses", statuses_json(t), "alerts", alerts_json(t), "latency_us", histogram_json(&t->latency),
		"first_us", histogram_json(&t->first), "pause_us", histogram_json(&t->pause), "pause_hit_us",
		histogram_json(&t->pause_hit), "apart_us", histogram_json(&t->apart), "noted", (int)t->noted, "notes",
		notes);
}
