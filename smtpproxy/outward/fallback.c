/* fallback.c: when mail goes in clear to a receiver that offers TLS, and when it does not any more. */
#include "smtpproxy/outward/fallback.h"

#include <string.h>

#include "net/log_pace.h"

#define CLEAR_MS (30u * 60u * 1000u) /* longer than senders take to come again */

static void log_change(const char *event, const char *host, const char *cause)
{
	log_event(LOG_WARNING, NULL, event, "host=%s cause=%s", host[0] ? host : "-", cause);
}

void fallback_begin(struct fallback *f, const struct onward *o, const char *host)
{
	if (o->demand.tls != SMTPPROXY_TLS_MAY || !o->tls || onward_tls_state(o->tls) != ONWARD_TLS_FAILED)
		return;
	f->till_ms = worker_now_ms(o->home->worker) + CLEAR_MS;
	o->home->counters->tls_given_up++;
	log_change("in clear to a receiver", host, "a handshake failed, and tls is may");
}

void fallback_end(struct fallback *f, const char *host)
{
	if (f->till_ms == 0) {
		log_paced(LOG_WARNING, NULL, "a receiver demands TLS and refuses STARTTLS", "host=%s",
			host[0] ? host : "-");
		return;
	}
	f->till_ms = 0;
	log_change("no more in clear to a receiver", host, "it demands TLS");
}

void fallback_apply(const struct fallback *f, struct onward_demand *demand, uint64_t now_ms)
{
	if (demand->tls != SMTPPROXY_TLS_MAY || now_ms >= f->till_ms)
		return;
	demand->tls = SMTPPROXY_TLS_NONE;
	demand->clear = ONWARD_CLEAR_BY_FALLBACK;
}

static int names_tls(struct smtp_span text)
{
	const size_t len = strlen("TLS");
	for (size_t i = 0; i + len <= text.len; i++) {
		if (smtp_span_is((struct smtp_span){ text.at + i, len }, "TLS"))
			return 1;
	}
	return 0;
}

/* RFC 3207 4 has 530. Others say 550 or 554, with the code for encryption (RFC 5248), or in words. */
int fallback_demands_tls(const struct smtp_reply_line *line)
{
	const struct smtp_enhanced *e = &line->enhanced;
	if (line->code == 530)
		return 1;
	return line->code / 100 == 5 && e->status == 5 && e->subject == 7 && (e->detail == 10 || names_tls(line->text));
}

/* The receiver has refused STARTTLS, after it had offered it. */
static int is_after_refusal(const struct onward *o)
{
	return o->demand.tls == SMTPPROXY_TLS_MAY && !o->tls && o->greeting.has & SMTP_CAP_BIT(SMTP_CAP_STARTTLS);
}

int fallback_is_refused(const struct onward *o, const struct smtp_reply_line *line)
{
	const int has_failed = o->demand.clear == ONWARD_CLEAR_BY_FALLBACK || is_after_refusal(o);
	return has_failed && fallback_demands_tls(line);
}
