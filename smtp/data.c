/* data.c: a machine over the beginning of a line: it has just begun, it has only a dot, or it has anything else; and
 * whether a CR is pending. "before" is how the line before ended. Inside a line memchr() looks for the next CR or LF.
 *
 *   BEGIN --"."--> DOT --CR--> DOT_CR --LF--> END (when before was CR LF and no NUL was there)
 *     |             |            |
 *     +---others----+------------+---> INSIDE --CR--> INSIDE_CR --LF--> BEGIN
 */
#include "smtp/data.h"

#include <string.h>

#include "smtp/line.h"

enum state { BEGIN, BEGIN_CR, DOT, DOT_CR, INSIDE, INSIDE_CR, OVER };
enum ending { BY_LF, BY_CR, BY_CRLF };
enum nul { NUL_NONE, NUL_FIRST, NUL_BEHIND_DOT }; /* at the head of the line, which has at most a dot beside it */

/* A line with only a dot, by the line ends before and after it. The combination that ends the mail has no row. */
static const enum smtp_data_flaw lone_dots[3][3] = {
	[BY_LF] = { [BY_LF] = SMTP_DATA_LF_DOT_LF, [BY_CR] = SMTP_DATA_LF_DOT_CR, [BY_CRLF] = SMTP_DATA_LF_DOT_CRLF },
	[BY_CR] = { [BY_LF] = SMTP_DATA_CR_DOT_LF, [BY_CR] = SMTP_DATA_CR_DOT_CR, [BY_CRLF] = SMTP_DATA_CR_DOT_CRLF },
	[BY_CRLF] = { [BY_LF] = SMTP_DATA_CRLF_DOT_LF, [BY_CR] = SMTP_DATA_CRLF_DOT_CR },
};

void smtp_data_begin(struct smtp_data *d, uint32_t refuse)
{
	*d = (struct smtp_data){ .refuse = refuse, .state = BEGIN, .before = BY_CRLF };
}

uint64_t smtp_data_message_len(const struct smtp_data *d)
{
	return d->state == OVER ? d->len - d->dots - 3 : d->len - d->dots;
}

static void note(struct smtp_data *d, enum smtp_data_flaw flaw)
{
	d->flaws |= SMTP_DATA_BIT(flaw);
}

/* The line ends, in any of the ways; @at is the offset after its end. */
static void end_line(struct smtp_data *d, enum ending by, uint64_t at)
{
	if (by == BY_CRLF) {
		d->lines++;
		if (at - d->line_from > SMTP_TEXT_MAX)
			note(d, SMTP_DATA_LONG_LINE);
		d->line_from = at;
	} else {
		note(d, by == BY_LF ? SMTP_DATA_BARE_LF : SMTP_DATA_BARE_CR);
	}
	d->state = BEGIN;
	d->before = (uint8_t)by;
	d->nul = NUL_NONE;
}

/* A line with a dot alone ends. */
static void end_dot(struct smtp_data *d, enum ending by, uint64_t at)
{
	if (d->before == BY_CRLF && by == BY_CRLF && !d->nul) {
		d->state = OVER;
		d->dots--; /* this one was not added */
		return;
	}
	if (d->nul)
		note(d, SMTP_DATA_DOT_NUL);
	if (d->before != BY_CRLF || by != BY_CRLF)
		note(d, lone_dots[d->before][by]);
	end_line(d, by, at);
}

static void end(struct smtp_data *d, enum ending by, uint64_t at)
{
	if (d->state == DOT || d->state == DOT_CR)
		end_dot(d, by, at);
	else
		end_line(d, by, at);
}

/* Any byte but CR and LF; a CR before it was bare. */
static void take_inner(struct smtp_data *d, char c)
{
	if (c == 0) {
		note(d, SMTP_DATA_NUL);
		if (d->state != INSIDE && d->nul == NUL_NONE) /* a server that drops NUL sees a line without it */
			d->nul = d->state == DOT ? NUL_BEHIND_DOT : NUL_FIRST;
		return;
	}
	if (d->state == BEGIN && c == '.') {
		d->dots += d->before == BY_CRLF && !d->nul;
		d->state = DOT;
		return;
	}
	if (d->state == DOT && c == '.' && d->nul == NUL_BEHIND_DOT) { /* a lone dot, when the first one is removed */
		d->nul = NUL_FIRST;
		return;
	}
	d->state = INSIDE;
	d->nul = NUL_NONE;
}

static const uint8_t pending_cr[] = { [BEGIN] = BEGIN_CR, [DOT] = DOT_CR, [INSIDE] = INSIDE_CR };

static int has_cr(const struct smtp_data *d)
{
	return d->state == BEGIN_CR || d->state == DOT_CR || d->state == INSIDE_CR;
}

/* One byte; @at is the offset behind it. */
static void take(struct smtp_data *d, char c, uint64_t at)
{
	const uint8_t held = d->held;
	d->held = 0;
	if (c == '\n') {
		end(d, has_cr(d) ? BY_CRLF : BY_LF, at);
		return;
	}
	if (has_cr(d))
		end(d, BY_CR, at - 1);
	if (c == '\r') {
		d->state = pending_cr[d->state];
		d->held = d->state == DOT_CR ? held + 1 : 0;
	} else {
		take_inner(d, c);
		d->held = d->state == DOT && c == '.';
	}
}

/* The length of the bytes of @in that change nothing but the length: up to the next CR or LF. */
static size_t run_len(struct smtp_data *d, const char *in, size_t len)
{
	const char *lf = memchr(in, '\n', len);
	size_t run = lf ? (size_t)(lf - in) : len;
	const char *cr = memchr(in, '\r', run);
	run = cr ? (size_t)(cr - in) : run;
	if (!(d->flaws & SMTP_DATA_BIT(SMTP_DATA_NUL)) && memchr(in, 0, run))
		note(d, SMTP_DATA_NUL);
	return run;
}

static int is_refused(struct smtp_data *d)
{
	if (d->refused || !(d->flaws & d->refuse))
		return 0;
	d->refused = 1;
	return 1;
}

enum smtp_data_event smtp_data_follow(struct smtp_data *d, const char *in, size_t len, size_t *taken)
{
	enum smtp_data_event event = d->state == OVER ? SMTP_DATA_END : SMTP_DATA_MORE;
	size_t at = 0;
	while (at < len && event == SMTP_DATA_MORE) {
		if (d->state == INSIDE && !(d->refuse & SMTP_DATA_BIT(SMTP_DATA_NUL)))
			at += run_len(d, in + at, len - at);
		if (at == len)
			break;
		take(d, in[at], d->len + at + 1);
		at++;
		event = d->state == OVER ? SMTP_DATA_END : is_refused(d) ? SMTP_DATA_BAD : SMTP_DATA_MORE;
	}
	*taken = at;
	d->len += at;
	return event;
}
