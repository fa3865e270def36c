/* own_reply.c: the table of own_reply.h. */
#include "smtp/own_reply.h"

#include <stdio.h>
#include <string.h>

static const struct smtp_own_reply rows[SMTP_OWN_COUNT] = { [SMTP_OWN_NONE] = { "none", "", "", 0 },
#define X(name, code, enhanced, text) [SMTP_OWN_##name] = { #name, enhanced, text, code },
	SMTP_OWN_REPLIES(X)
#undef X
};

const struct smtp_own_reply *smtp_own_reply(enum smtp_own which)
{
	return &rows[which < SMTP_OWN_COUNT ? which : SMTP_OWN_NONE];
}

void smtp_own_write(struct wire_writer *w, enum smtp_own which)
{
	const struct smtp_own_reply *row = smtp_own_reply(which);
	if (row->code)
		smtp_reply_write(w, row->code, row->enhanced, smtp_span_of(row->text));
}

size_t smtp_own_line(enum smtp_own which, const char *said, char out[static SMTP_REPLY_LINE_MAX])
{
	const struct smtp_own_reply *row = smtp_own_reply(which);
	const char *gap = row->enhanced[0] ? " " : "", *cause = said[0] ? "; it said: " : "";
	snprintf(out, SMTP_REPLY_LINE_MAX, "%u %s%s%s%s%s", row->code, row->enhanced, gap, row->text, cause, said);
	return strlen(out);
}
