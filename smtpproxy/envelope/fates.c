/* fates.c: the fates of recipients, in memory and as a note. */
#include "smtpproxy/envelope/fates.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

/* 0 if @note has exactly so many recipients. */
static int read_note(struct fates *f, struct smtp_span note)
{
	for (unsigned i = 0; i < f->count; i++) {
		const char *end = note.len ? memchr(note.at, '\0', note.len) : NULL;

		if (!end || end == note.at || !strchr("odf", note.at[0]))
			return CSSL_E_RANGE;
		fates_set(f, i, (enum fate)note.at[0], (struct smtp_span){ note.at + 1, (size_t)(end - note.at) - 1 });
		note = (struct smtp_span){ end + 1, note.len - (size_t)(end - note.at) - 1 };
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

void fates_set(struct fates *f, unsigned at, enum fate fate, struct smtp_span reply)
{
	size_t len = reply.len < FATE_REPLY_MAX ? reply.len : FATE_REPLY_MAX;

	f->at[at].fate = (char)fate;
	if (len)
		memcpy(f->at[at].reply, reply.at, len);
	f->at[at].reply[len] = '\0';
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

char *fates_note(const struct fates *f, size_t *len)
{
	size_t room = 0, at = 0;
	char *note;

	for (unsigned i = 0; i < f->count; i++)
		room += 2 + strlen(f->at[i].reply);
	note = malloc(room);
	for (unsigned i = 0; note && i < f->count; i++) {
		size_t text = strlen(f->at[i].reply) + 1;

		note[at] = f->at[i].fate;
		memcpy(note + at + 1, f->at[i].reply, text);
		at += 1 + text;
	}
	*len = room;
	return note;
}
