/* fates.c: the fates of recipients, in memory and as a note. */
#include "smtpproxy/envelope/fates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define PARTS "\x1f" /* between the parts of a note for one recipient; no reply has it */

static void fates_read_one(struct fates *f, unsigned at, enum fate fate, struct smtp_span parts)
{
	const struct smtp_span reply = smtp_span_until(&parts, *PARTS), from = smtp_span_until(&parts, *PARTS);

	fates_set(f, at, fate, reply);
	fates_set_from(f, at, from, smtp_span_is(parts, "n") ? FATE_REPORTS_NONE : FATE_REPORTS);
}

/* 0 if @note has exactly so many recipients. */
static int read_note(struct fates *f, struct smtp_span note)
{
	for (unsigned i = 0; i < f->count; i++) {
		const struct smtp_span one = smtp_span_until(&note, '\0');

		if (!note.at || !one.len || !strchr("odf", one.at[0]))
			return CSSL_E_RANGE;
		fates_read_one(f, i, (enum fate)one.at[0], (struct smtp_span){ one.at + 1, one.len - 1 });
	}
	return note.len ? CSSL_E_RANGE : 0;
}

int fates_begin(struct fates *f, unsigned count, struct smtp_span note)
{
	*f = (struct fates){ .at = calloc(count, sizeof *f->at), .count = count };
	if (!f->at)
		return CSSL_E_NO_MEMORY;
	for (unsigned i = 0; !note.len && i < count; i++)
		f->at[i].fate = FATE_OPEN;
	if (note.len && read_note(f, note))
		for (unsigned i = 0; i < count; i++)
			f->at[i] = (struct fate_one){ .fate = FATE_OPEN };
	return 0;
}

void fates_free(struct fates *f)
{
	free(f->at);
	*f = (struct fates){ 0 };
}

/* At most @most bytes of @text, as printable ASCII. */
static void fates_copy(char *out, size_t most, struct smtp_span text)
{
	size_t len = text.len < most ? text.len : most;

	for (size_t i = 0; i < len; i++)
		out[i] = text.at[i] >= ' ' && text.at[i] <= '~' ? text.at[i] : '?';
	out[len] = '\0';
}

void fates_set(struct fates *f, unsigned at, enum fate fate, struct smtp_span reply)
{
	f->at[at].fate = (char)fate;
	fates_copy(f->at[at].reply, FATE_REPLY_MAX, reply);
	fates_set_from(f, at, (struct smtp_span){ 0 }, FATE_REPORTS);
}

void fates_set_from(struct fates *f, unsigned at, struct smtp_span from, enum fate_reports reports)
{
	f->at[at].reports = (char)reports;
	fates_copy(f->at[at].from, FATE_FROM_MAX, from);
}

void fates_set_open(struct fates *f, enum fate fate, struct smtp_span reply)
{
	for (unsigned i = 0; i < f->count; i++)
		if (f->at[i].fate == FATE_OPEN)
			fates_set(f, i, fate, reply);
}

unsigned fates_count(const struct fates *f, enum fate fate)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->count; i++)
		n += f->at[i].fate == (char)fate;
	return n;
}

void fates_unsend(struct fates *f)
{
	for (unsigned i = 0; i < f->count; i++)
		if (f->at[i].fate == FATE_SENT)
			f->at[i].fate = FATE_OPEN;
}

/* Its length with NUL; @out NULL: only that. */
static size_t write_one(const struct fate_one *one, char *out, size_t cap)
{
	const bool has_from = one->from[0] != '\0';

	return 1 + (size_t)snprintf(out, cap, "%c%s%s%s%s", one->fate, one->reply, has_from ? PARTS : "", one->from,
			   has_from && one->reports == FATE_REPORTS_NONE ? PARTS "n" : "");
}

char *fates_note(const struct fates *f, size_t *len)
{
	size_t room = 0, at = 0;
	char *note;

	for (unsigned i = 0; i < f->count; i++)
		room += write_one(&f->at[i], NULL, 0);
	note = malloc(room);
	for (unsigned i = 0; note && i < f->count; i++)
		at += write_one(&f->at[i], note + at, room - at);
	*len = room;
	return note;
}
