/* hops.c: compares the beginning of each line of the header with the field's name. */
#include "smtpproxy/policy/hops.h"

static const char name[] = "received:";

static void begin_line(struct hops *h, char byte)
{
	h->matched = 0;
	if (byte == '\r')
		return; /* an empty line, if LF follows */
	h->state = byte == '\n' ? HOPS_IN_BODY : HOPS_MATCHES;
}

static void hops_match(struct hops *h, char byte)
{
	const char small = byte >= 'A' && byte <= 'Z' ? (char)(byte + ('a' - 'A')) : byte;
	if (small != name[h->matched]) {
		h->state = HOPS_WITHIN_LINE;
		return;
	}
	if (name[++h->matched] != '\0')
		return;
	h->count++;
	h->state = HOPS_WITHIN_LINE;
}

uint32_t hops_follow(struct hops *h, const char *in, size_t len)
{
	for (size_t i = 0; i < len && h->state != HOPS_IN_BODY; i++) {
		if (h->state == HOPS_LINE_BEGINS)
			begin_line(h, in[i]);
		if (h->state == HOPS_MATCHES)
			hops_match(h, in[i]);
		if (h->state == HOPS_WITHIN_LINE && in[i] == '\n')
			h->state = HOPS_LINE_BEGINS;
	}
	return h->count;
}
