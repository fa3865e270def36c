/* sink_mail.c: content goes, without stuffed dots and without the end, to the comparison and to the dump. */
#include "bench/mail/sink_mail.h"

#include <stdlib.h>
#include <string.h>

struct sink_mail *sink_mail_create(struct smtp_span sender, const struct sink_options *o)
{
	struct sink_mail *m = malloc(sizeof *m + sender.len + 1);
	if (!m)
		return NULL;
	memset(m, 0, sizeof *m);
	m->sender_len = sender.len;
	smtp_span_copy(sender, m->sender, sender.len + 1);
	m->refuses = o->line_ends == SINK_REFUSES_LINE_ENDS
			     ? SMTP_DATA_SMUGGLING | SMTP_DATA_BARE | SMTP_DATA_BIT(SMTP_DATA_NUL)
			     : 0;
	mail_check_begin(&m->check);
	m->dump = o->dump ? open_memstream(&m->dumped, &m->dumped_len) : NULL;
	if (m->dump)
		fprintf(m->dump, "X-Mail-Args: <%s>\n", m->sender);
	return m;
}

void sink_mail_destroy(struct sink_mail *m)
{
	if (!m)
		return;
	if (m->dump)
		fclose(m->dump);
	free(m->dumped);
	free(m);
}

void sink_mail_recipient(struct sink_mail *m, struct smtp_span command)
{
	m->recipients++;
	if (m->dump)
		fprintf(m->dump, "X-Rcpt-Args: %.*s\n", (int)command.len, command.at);
}

/* Bytes of the mail itself. */
static void sink_mail_keep(struct sink_mail *m, const struct sink_options *o, const char *data, size_t len)
{
	m->len += len;
	if (o->max_size && m->len > o->max_size) {
		m->too_big = 1;
		return;
	}
	mail_check_feed(&m->check, data, len);
	if (m->dump)
		fwrite(data, 1, len, m->dump);
}

void sink_mail_begin_data(struct sink_mail *m, const struct sink_options *o)
{
	smtp_data_begin(&m->data, 0);
	m->tail_len = 0;
	m->dots = (struct smtp_dots){ 0 };
}

static void take_stuffed(struct sink_mail *m, const struct sink_options *o, const char *in, size_t len)
{
	char out[4096];
	while (len > 0) {
		size_t piece = len < sizeof out ? len : sizeof out, plain = smtp_dots_remove(&m->dots, in, piece, out);
		sink_mail_keep(m, o, out, plain);
		in += piece;
		len -= piece;
	}
}

/* Hold back the last three bytes: at the end they are the dot and its CRLF, which do not belong to the mail. */
static void take_but_tail(struct sink_mail *m, const struct sink_options *o, const char *in, size_t len)
{
	char joined[2 * sizeof m->tail];
	if (len >= sizeof m->tail) {
		take_stuffed(m, o, m->tail, m->tail_len);
		take_stuffed(m, o, in, len - sizeof m->tail);
		memcpy(m->tail, in + len - sizeof m->tail, sizeof m->tail);
		m->tail_len = sizeof m->tail;
		return;
	}
	memcpy(joined, m->tail, m->tail_len);
	memcpy(joined + m->tail_len, in, len);
	size_t all = m->tail_len + len, over = all > sizeof m->tail ? all - sizeof m->tail : 0;
	take_stuffed(m, o, joined, over);
	m->tail_len = (uint8_t)(all - over);
	memcpy(m->tail, joined + over, m->tail_len);
}

bool sink_mail_data(struct sink_mail *m, const struct sink_options *o, const char *in, size_t len, size_t *taken)
{
	bool is_end = smtp_data_follow(&m->data, in, len, taken) == SMTP_DATA_END;
	take_but_tail(m, o, in, *taken);
	return is_end;
}

size_t sink_mail_chunk(struct sink_mail *m, const struct sink_options *o, const char *in, size_t len)
{
	size_t taken = smtp_bdat_follow(&m->bdat, len);
	sink_mail_keep(m, o, in, taken);
	return taken;
}

enum smtp_own sink_mail_refusal(const struct sink_mail *m, struct sink_result *r)
{
	r->counts[SINK_SMUGGLING] += (m->data.flaws & SMTP_DATA_SMUGGLING) != 0;
	r->counts[SINK_BARE] += (m->data.flaws & SMTP_DATA_BARE) != 0;
	r->counts[SINK_TOO_BIG] += m->too_big;
	if (m->too_big)
		return SMTP_OWN_TOO_BIG;
	return m->data.flaws & m->refuses ? SMTP_OWN_SMUGGLING : SMTP_OWN_NONE;
}

void sink_mail_take(struct sink_mail *m, struct sink_result *r, FILE *dump, uint64_t now_ns)
{
	enum mail_verdict verdict = mail_check_end(&m->check);
	struct smtp_span sender = { m->sender, m->sender_len };
	sink_result_mail(r, sender, m->len, m->recipients, verdict, m->check.is_marked ? &m->check.mark : NULL, now_ns);
	if (!dump || !m->dump)
		return;
	fflush(m->dump);
	fwrite(m->dumped, 1, m->dumped_len, dump);
	fputc('\n', dump);
}
