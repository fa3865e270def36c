/* own_reply.c: the table of own_reply.h. */
#include "smtp/own_reply.h"

#include <stdio.h>

#include "smtp/reply_write.h"

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

const char *smtp_own_text(enum smtp_own which, const char *said, char out[static SMTP_OWN_TEXT_MAX])
{
	const char *text = smtp_own_reply(which)->text;
	snprintf(out, SMTP_OWN_TEXT_MAX, said[0] ? "%s; it said: %s" : "%s", text, said);
	return out;
}
