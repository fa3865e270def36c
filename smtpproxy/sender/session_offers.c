/* session_offers.c: the extensions for a sender, and whether a connection to the receiver has those that the sender
 * uses. One address may have several servers with different extensions. */
#include "smtpproxy/sender/session_offers.h"

#include <inttypes.h>
#include <stdio.h>

#include "smtp/params.h"
#include "smtpproxy/sender/session_filter.h"
#include "smtpproxy/sender/session_lease.h"
#include "smtpproxy/sender/session_life.h"
#include "smtpproxy/sender/session_store.h"

#define OFFERS_MAX 2048u

/* Offered only if the receiver offers it, and only if it is understood here. STARTTLS toward senders is the
 * cluster's work. AUTH is of no use toward a receiver of mail. We cannot promise REQUIRETLS for the way after us. */
#define OFFERED                                                                                                        \
	(SMTP_CAP_BIT(SMTP_CAP_PIPELINING) | SMTP_CAP_BIT(SMTP_CAP_SIZE) | SMTP_CAP_BIT(SMTP_CAP_8BITMIME) |           \
		SMTP_CAP_BIT(SMTP_CAP_SMTPUTF8) | SMTP_CAP_BIT(SMTP_CAP_DSN) | SMTP_CAP_BIT(SMTP_CAP_ENHANCED) |       \
		SMTP_CAP_BIT(SMTP_CAP_CHUNKING) | SMTP_CAP_BIT(SMTP_CAP_BINARYMIME) |                                  \
		SMTP_CAP_BIT(SMTP_CAP_PRIORITY) | SMTP_CAP_BIT(SMTP_CAP_DELIVERBY) | SMTP_CAP_BIT(SMTP_CAP_RRVS))

/* Hooks judge the content of DATA. */
#define CHUNKS (SMTP_CAP_BIT(SMTP_CAP_CHUNKING) | SMTP_CAP_BIT(SMTP_CAP_BINARYMIME))

/* A milter of its listener gets the whole message. */
static bool keeps_messages(const struct session *s)
{
	for (size_t i = 0; i < s->listener->hook_count; i++) {
		const struct hook *k = hooks_find(&s->home->hooks, s->listener->hooks[i]);
		if (k->conf && k->conf->type == SMTPPROXY_HOOK_MILTER)
			return true;
	}
	return false;
}

uint64_t session_size_max(const struct session *s)
{
	const struct conf_smtpproxy *c = s->home->conf;
	const uint64_t stored = s->home->queue ? c->queue.message_size : UINT64_MAX;
	return keeps_messages(s) && c->limits.held_message < stored ? c->limits.held_message : stored;
}

/* No larger SIZE than we can take. */
static void bound_size(const struct session *s, struct smtp_ehlo *set)
{
	const uint64_t most = session_size_max(s), size = smtp_ehlo_size(set);
	char line[32];
	if (!smtp_ehlo_has(set, SMTP_CAP_SIZE) || most == UINT64_MAX || (size > 0 && size <= most))
		return;
	smtp_ehlo_keep(set, ~SMTP_CAP_BIT(SMTP_CAP_SIZE));
	snprintf(line, sizeof line, "SIZE %" PRIu64, most);
	smtp_ehlo_add(set, smtp_span_of(line));
}

/* 0: there is no reply. */
static size_t write_offers(struct session *s, uint8_t *out, size_t cap)
{
	struct wire_writer w = wire_writer(out, cap);
	char line[SMTP_TX_ENTRY_MAX + 16];
	struct smtp_ehlo set;
	if (s->home->queue)
		session_store_offers(s, &set);
	else
		set = *destination_offers(s->destination);
	smtp_ehlo_keep(&set, session_is_filtered(s) ? OFFERED & ~CHUNKS : OFFERED);
	bound_size(s, &set);
	if (s->named.entry) { /* the cluster may name its transactions */
		snprintf(line, sizeof line, "XCSSLTX %s", s->named.entry->key);
		smtp_ehlo_add(&set, smtp_span_of(line));
	}
	s->told = set.has;
	smtp_ehlo_write(&w, s->home->conf->name, &set);
	const ptrdiff_t len = wire_writer_len(&w);
	if (len < 0)
		session_end(s, SMTP_OWN_BACKEND_BROKEN);
	return len < 0 ? 0 : (size_t)len;
}

void session_say_offers(struct session *s)
{
	uint8_t out[OFFERS_MAX];
	session_write(s, (const char *)out, write_offers(s, out, sizeof out));
}

void session_answer_offers(struct session *s)
{
	uint8_t out[OFFERS_MAX];
	session_answer(s, (const char *)out, write_offers(s, out, sizeof out));
}

/* Uses */

enum smtp_own session_lack(const struct session *s, const struct smtp_command *c)
{
	const uint32_t hidden = session_is_filtered(s) ? CHUNKS : 0;
	const uint32_t offered = s->onward ? s->onward->greeting.has : UINT32_MAX; /* the queue takes all */
	const uint32_t used = c->verb == SMTP_VERB_BDAT ? SMTP_CAP_BIT(SMTP_CAP_CHUNKING) : smtp_params_extensions(c);
	const uint32_t lacking = used & OFFERED & (~offered | hidden);
	if (s->onward && s->record.sender_tls.version[0] && onward_is_too_clear(s->onward))
		return SMTP_OWN_BACKEND_NO_TLS;
	if (lacking & s->told)
		return SMTP_OWN_BACKEND_CHANGED;
	return lacking & SMTP_CAP_BIT(SMTP_CAP_CHUNKING) ? SMTP_OWN_NOT_IMPLEMENTED : SMTP_OWN_NONE;
}
