/* sink_result.c: counting and both reports. */
#include "bench/mail/sink_result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure/count_table.h"
#include "bench/measure/report.h"

static const struct report_name counts[] = {
#define X(name, key, sentence) [SINK_##name] = { key, sentence },
	SINK_COUNTS(X)
#undef X
};

#define SLOTS (sizeof(((struct sink_result *)0)->senders) / sizeof(struct sink_sender))

struct sink_result *sink_result_create(void)
{
	struct sink_result *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->ids = count_table_create();
	if (!r->ids) {
		free(r);
		return NULL;
	}
	return r;
}

void sink_result_destroy(struct sink_result *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < SLOTS; i++)
		free(r->senders[i].name);
	count_table_destroy(r->ids);
	free(r);
}

/* FNV-1a, without regard to the case of ASCII letters. */
static uint32_t command_hash(struct smtp_span text)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < text.len; i++)
		h = (h ^ (uint8_t)(text.at[i] | 0x20)) * 16777619u;
	return h;
}

/* The slot of @name, or the empty one where it goes. */
static struct sink_sender *find_slot(struct sink_result *r, struct smtp_span name)
{
	uint32_t at = command_hash(name);
	while (r->senders[at % SLOTS].name && !smtp_span_is(name, r->senders[at % SLOTS].name))
		at++;
	return &r->senders[at % SLOTS];
}

static struct sink_sender *sender_of(struct sink_result *r, struct smtp_span name)
{
	struct sink_sender *s = find_slot(r, name);
	if (s->name)
		return s;
	if (r->sender_count + 1 >= SINK_SENDERS_MAX) { /* the last place is for all others */
		name = smtp_span_of("others");
		s = find_slot(r, name);
	}
	if (!s->name) {
		s->name = strndup(name.at ? name.at : "", name.len);
		r->sender_count++;
	}
	return s->name ? s : NULL;
}

static void note_sender(struct sink_result *r, struct smtp_span sender, uint64_t bytes, uint64_t now_ns)
{
	struct sink_sender *s = sender_of(r, sender);
	if (!s)
		return;
	s->mails++;
	s->bytes += bytes;
	s->last_ns = now_ns;
	s->first_ns = s->first_ns ? s->first_ns : now_ns;
}

void sink_result_mail(struct sink_result *r, struct smtp_span sender, uint64_t bytes, uint64_t recipients,
	enum mail_verdict verdict, const struct mail_mark *mark, uint64_t now_ns)
{
	static const enum sink_count verdicts[] = {
		[MAIL_UNMARKED] = SINK_UNMARKED,
		[MAIL_RIGHT] = SINK_RIGHT,
		[MAIL_WRONG] = SINK_WRONG,
	};
	r->counts[SINK_MAILS]++;
	r->counts[SINK_BYTES] += bytes;
	r->counts[SINK_RECIPIENTS] += recipients;
	r->counts[verdicts[verdict]]++;
	if (mark && count_table_add(r->ids, mark->id) > 1)
		r->counts[SINK_DUPLICATES]++;
	r->first_ns = r->first_ns ? r->first_ns : now_ns;
	r->last_ns = now_ns;
	note_sender(r, sender, bytes, now_ns);
}

static double seconds_of(const struct sink_result *r)
{
	return (double)(r->last_ns - r->first_ns) / 1e9;
}

static double since_begin(const struct sink_result *r, uint64_t ns)
{
	return ns > r->begin_ns ? (double)(ns - r->begin_ns) / 1e9 : 0;
}

void sink_result_text(const struct sink_result *r)
{
	printf("%-18s %10.2f  from the first mail to the last\n", "seconds", seconds_of(r));
	printf("%-18s %10" PRIu64 "  most connections at a time\n", "most_open", r->most_open);
	report_counts(counts, r->counts, SINK_COUNT_COUNT);
	report_tally("handshakes", r->suites, TALLY_SUITES_MAX);
	report_tally("replies", r->replies, SINK_REPLIES_MAX);
	printf("\n%10s %14s %10s %10s  sender\n", "mails", "bytes", "first, s", "last, s");
	for (unsigned i = 0; i < SLOTS; i++) {
		const struct sink_sender *s = &r->senders[i];
		if (s->name)
			printf("%10" PRIu64 " %14" PRIu64 " %10.3f %10.3f  <%s>\n", s->mails, s->bytes,
				since_begin(r, s->first_ns), since_begin(r, s->last_ns), s->name);
	}
}

static json_t *senders_json(const struct sink_result *r)
{
	json_t *out = json_object();
	for (unsigned i = 0; i < SLOTS; i++) {
		const struct sink_sender *s = &r->senders[i];
		if (s->name)
			json_object_set_new(out, s->name,
				json_pack("{s:I, s:I, s:f, s:f}", "mails", (json_int_t)s->mails, "bytes",
					(json_int_t)s->bytes, "first_s", since_begin(r, s->first_ns), "last_s",
					since_begin(r, s->last_ns)));
	}
	return out;
}

int sink_result_json(const struct sink_result *r)
{
	return report_print_json(json_pack("{s:f, s:I, s:o, s:o, s:o, s:o}", "seconds", seconds_of(r), "most_open",
		(json_int_t)r->most_open, "counts", report_counts_json(counts, r->counts, SINK_COUNT_COUNT), "suites",
		report_tally_json(r->suites, TALLY_SUITES_MAX), "senders", senders_json(r), "replies",
		report_tally_json(r->replies, SINK_REPLIES_MAX)));
}

void sink_result_progress(const struct sink_result *r, uint64_t now_ns)
{
	fprintf(stderr,
		"%6.0f s  %" PRIu64 " connections  %" PRIu64 " mails  %" PRIu64 " wrong  %" PRIu64 " duplicates\n",
		since_begin(r, now_ns), r->open, r->counts[SINK_MAILS], r->counts[SINK_WRONG],
		r->counts[SINK_DUPLICATES]);
}
