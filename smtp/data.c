/* data.c: a machine over the beginning of a line: it has just begun, it has only a dot, or it has anything else; and
 * whether a CR is pending. "before" is how the line before ended. Inside a line memchr() looks for the next CR or LF.
 *
 *   BEGIN --"."--> DOT --CR--> DOT_CR --LF--> END (when before was CR LF and no NUL was there)
 *     |             |            |
 *     +---others----+------------+---> INSIDE --CR--> INSIDE_CR --LF--> BEGIN
 */
#include "smtp/data.h"

#include <assert.h>
#include <string.h>

#include "proto/error.h"
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

static void smtp_data_note(struct smtp_data *d, enum smtp_data_flaw flaw)
{
	d->flaws |= SMTP_DATA_BIT(flaw);
}

/* The line ends, in any of the ways; @at is the offset after its end. */
static void end_line(struct smtp_data *d, enum ending by, uint64_t at)
{
	if (by == BY_CRLF) {
		d->lines++;
		if (at - d->line_from > SMTP_TEXT_MAX)
			smtp_data_note(d, SMTP_DATA_LONG_LINE);
		d->line_from = at;
	} else {
		smtp_data_note(d, by == BY_LF ? SMTP_DATA_BARE_LF : SMTP_DATA_BARE_CR);
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
		smtp_data_note(d, SMTP_DATA_DOT_NUL);
	if (d->before != BY_CRLF || by != BY_CRLF)
		smtp_data_note(d, lone_dots[d->before][by]);
	end_line(d, by, at);
}

static void smtp_data_end(struct smtp_data *d, enum ending by, uint64_t at)
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
		smtp_data_note(d, SMTP_DATA_NUL);
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

static bool has_cr(const struct smtp_data *d)
{
	return d->state == BEGIN_CR || d->state == DOT_CR || d->state == INSIDE_CR;
}

/* One byte; @at is the offset behind it. */
static void smtp_data_take_char(struct smtp_data *d, char c, uint64_t at)
{
	const uint8_t held = d->held;
	d->held = 0;
	if (c == '\n') {
		smtp_data_end(d, has_cr(d) ? BY_CRLF : BY_LF, at);
		return;
	}
	if (has_cr(d))
		smtp_data_end(d, BY_CR, at - 1);
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
		smtp_data_note(d, SMTP_DATA_NUL);
	return run;
}

static bool smtp_data_is_refused(struct smtp_data *d)
{
	if (d->refused || !(d->flaws & d->refuse))
		return false;
	d->refused = 1;
	return true;
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
		smtp_data_take_char(d, in[at], d->len + at + 1);
		at++;
		event = d->state == OVER ? SMTP_DATA_END : smtp_data_is_refused(d) ? SMTP_DATA_BAD : SMTP_DATA_MORE;
	}
	*taken = at;
	d->len += at;
	return event;
}

/* --- chunks --- */

static const enum smtp_bdat_state behind[] = {
	[SMTP_BDAT_NONE] = SMTP_BDAT_NONE,
	[SMTP_BDAT_CHUNK] = SMTP_BDAT_BETWEEN,
	[SMTP_BDAT_BETWEEN] = SMTP_BDAT_BETWEEN,
	[SMTP_BDAT_LAST] = SMTP_BDAT_OVER,
	[SMTP_BDAT_OVER] = SMTP_BDAT_OVER,
};

int smtp_bdat_begin(struct smtp_bdat *b, uint64_t chunk_len, int is_last)
{
	assert(b->left == 0);
	b->left = chunk_len;
	if (b->state == SMTP_BDAT_OVER)
		return CSSL_E_STATE;
	if (chunk_len > UINT64_MAX - b->len)
		return CSSL_E_EXHAUSTED;
	b->len += chunk_len;
	b->chunks++;
	b->state = is_last ? SMTP_BDAT_LAST : SMTP_BDAT_CHUNK;
	if (chunk_len == 0)
		b->state = behind[b->state];
	return 0;
}

size_t smtp_bdat_follow(struct smtp_bdat *b, size_t len)
{
	size_t taken = len < b->left ? len : (size_t)b->left;
	if (taken == 0)
		return 0;
	b->left -= taken;
	if (b->left == 0)
		b->state = behind[b->state];
	return taken;
}

/* --- dots: bytes pass in runs up to the next LF, and only those after CR LF are examined --- */

static bool at_line_head(const struct smtp_dots *dots)
{
	return !dots->begun || (dots->last[0] == '\r' && dots->last[1] == '\n');
}

static void smtp_dots_remember(struct smtp_dots *dots, const char *piece, size_t len)
{
	if (len >= 2 || !dots->begun)
		dots->last[0] = len >= 2 ? (uint8_t)piece[len - 2] : 0;
	else
		dots->last[0] = dots->last[1];
	dots->last[1] = (uint8_t)piece[len - 1];
	dots->begun = 1;
}

/* The next run: to the LF that ends a line, or all. */
static size_t run_to_lf(const char *in, size_t len)
{
	const char *lf = memchr(in, '\n', len);
	return lf ? (size_t)(lf - in) + 1 : len;
}

size_t smtp_dots_add(struct smtp_dots *dots, const char *in, size_t len, char *out)
{
	char *to = out;
	for (size_t at = 0, run; at < len; at += run) {
		if (in[at] == '.' && at_line_head(dots))
			*to++ = '.';
		run = run_to_lf(in + at, len - at);
		memcpy(to, in + at, run);
		to += run;
		smtp_dots_remember(dots, in + at, run);
	}
	return (size_t)(to - out);
}

struct smtp_span smtp_dots_end(const struct smtp_dots *dots)
{
	return smtp_span_of(at_line_head(dots) ? ".\r\n" : "\r\n.\r\n");
}

size_t smtp_dots_remove(struct smtp_dots *dots, const char *in, size_t len, char *out)
{
	char *to = out;
	for (size_t at = 0, run; at < len; at += run) {
		int added = in[at] == '.' && at_line_head(dots);
		run = run_to_lf(in + at, len - at);
		char tail[2] = { run >= 2 ? in[at + run - 2] : 0, in[at + run - 1] }; /* @out may be @in */
		memmove(to, in + at + added, run - (size_t)added);
		to += run - (size_t)added;
		smtp_dots_remember(dots, run >= 2 ? tail : tail + 1, run >= 2 ? 2 : 1);
	}
	return (size_t)(to - out);
}
