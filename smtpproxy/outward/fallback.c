/* fallback.c: when mail goes in clear to a receiver that offers TLS, and when it does not any more. */
#include "smtpproxy/outward/fallback.h"

#include <string.h>

#include "net/points/fault.h"
#include "net/report/log_pace.h"

#define CLEAR_MS  (30u * 60u * 1000u)  /* longer than senders take to come again */
#define LOST_MOST 3u                   /* in a row, */
#define LOST_MS   (5u * 60u * 1000u)   /* and longer than receivers restart */
#define KEPT_MS   (6u * 3600u * 1000u) /* queues of senders come again within hours */

static void log_change(const char *event, const char *host, const char *cause)
{
	log_event(LOG_WARNING, NULL, event, "host=%s cause=%s", host[0] ? host : "-", cause);
}

static void fallback_begin(
	struct fallback *f, const struct onward *o, const char *host, const char *cause, uint64_t now_ms)
{
	f->till_ms = now_ms + CLEAR_MS;
	o->home->counters->tls_given_up++;
	log_change("in clear to a receiver", host, cause);
}

/* 1: too many in a row. */
static bool count_lost(struct fallback *f, uint64_t now_ms)
{
	if (f->lost == 0 || now_ms - f->last_ms >= KEPT_MS) {
		f->lost = 0;
		f->first_ms = now_ms;
	}
	f->lost++;
	f->last_ms = now_ms;
	return f->lost >= LOST_MOST &&
	       (now_ms - f->first_ms >= LOST_MS || fault_at("fallback.minutes", NULL, NULL) == FAULT_FAIL);
}

void fallback_note(struct fallback *f, const struct onward *o, const char *host, uint64_t now_ms)
{
	if (o->shake == ONWARD_SHAKE_WORKED)
		f->lost = 0;
	if (o->demand.tls != SMTPPROXY_TLS_MAY)
		return;
	if (o->shake == ONWARD_SHAKE_FAILED)
		fallback_begin(f, o, host, "a handshake failed, and tls is may", now_ms);
	else if (o->shake == ONWARD_SHAKE_LOST && count_lost(f, now_ms))
		fallback_begin(f, o, host, "handshakes are lost for minutes, and tls is may", now_ms);
}

uint64_t fallback_kept_ms(const struct fallback *f, uint64_t now_ms)
{
	const uint64_t lost_till_ms = f->lost > 0 ? f->last_ms + KEPT_MS : 0;
	const uint64_t till_ms = lost_till_ms > f->till_ms ? lost_till_ms : f->till_ms;
	return till_ms > now_ms ? till_ms - now_ms : 0;
}

void fallback_end(struct fallback *f, const char *host)
{
	if (f->till_ms == 0) {
		log_paced(LOG_WARNING, NULL, "a receiver demands TLS and refuses STARTTLS", "host=%s",
			host[0] ? host : "-");
		return;
	}
	*f = (struct fallback){ 0 };
	log_change("no more in clear to a receiver", host, "it demands TLS");
}

void fallback_apply(const struct fallback *f, struct onward_demand *demand, uint64_t now_ms)
{
	if (demand->tls != SMTPPROXY_TLS_MAY || now_ms >= f->till_ms)
		return;
	demand->tls = SMTPPROXY_TLS_NONE;
	demand->clear = ONWARD_CLEAR_BY_FALLBACK;
}

static bool names_tls(struct smtp_span text)
{
	const size_t len = strlen("TLS");
	for (size_t i = 0; i + len <= text.len; i++)
		if (smtp_span_is((struct smtp_span){ text.at + i, len }, "TLS"))
			return true;
	return false;
}

/* RFC 3207 4 has 530. Others say 550 or 554, with the code for encryption (RFC 5248), or in words. */
bool fallback_demands_tls(const struct smtp_reply_line *line)
{
	const struct smtp_enhanced *e = &line->enhanced;
	if (line->code == 530)
		return true;
	return line->code / 100 == 5 && e->status == 5 && e->subject == 7 && (e->detail == 10 || names_tls(line->text));
}

/* The receiver has refused STARTTLS, after it had offered it. */
static bool is_after_refusal(const struct onward *o)
{
	return o->demand.tls == SMTPPROXY_TLS_MAY && !o->tls && o->greeting.has & SMTP_CAP_BIT(SMTP_CAP_STARTTLS);
}

bool fallback_is_refused(const struct onward *o, const struct smtp_reply_line *line)
{
	const bool has_failed = o->demand.clear == ONWARD_CLEAR_BY_FALLBACK || is_after_refusal(o);
	return has_failed && fallback_demands_tls(line);
}
