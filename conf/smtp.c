/* smtp.c: the words of a listener of service smtp before TLS: the capabilities in its reply to EHLO, as the keys
 * under `smtp` set them.
 */
#include "proto/error.h"

#include "conf/conf.h"
#include "conf/rules.h"

bool conf_has_preamble(const struct conf_listener *l)
{
	return service_traits[l->service].start == SERVICE_MAY_START_AS_SMTP && l->smtp.starttls != SMTP_TLS_IMPLICIT;
}

void conf_smtp_offers(const struct conf_smtp *smtp, struct smtp_ehlo *out)
{
	static const char *const usual[] = { CONF_SMTP_CAPABILITIES };

	smtp_ehlo_clear(out);
	for (size_t i = 0; i < smtp->capability_count; i++)
		smtp_ehlo_add(out, smtp_span_of(smtp->capabilities[i]));
	for (size_t i = 0; smtp->capability_count == 0 && i < sizeof usual / sizeof usual[0]; i++)
		smtp_ehlo_add(out, smtp_span_of(usual[i]));
	smtp_ehlo_keep(out, SMTP_CAP_ALL & ~conf_smtp_hidden(smtp)); /* a client in clear could not use them */
}

uint32_t conf_smtp_hidden(const struct conf_smtp *smtp)
{
	struct smtp_ehlo set;

	smtp_ehlo_clear(&set);
	for (size_t i = 0; i < smtp->hide_count; i++)
		smtp_ehlo_add(&set, smtp_span_of(smtp->hide[i]));
	return SMTP_CAPS_HIDDEN | set.has;
}

/* Extensions that the file must not list, with the reason. */
static const struct {
	enum smtp_cap cap;
	const char *expected;
} refused[] = {
	{ SMTP_CAP_STARTTLS, "nothing, as STARTTLS is added by key 'starttls'" },
	{ SMTP_CAP_AUTH, "nothing, as AUTH is offered behind TLS only" },
	{ SMTP_CAP_REQUIRETLS, "nothing, as REQUIRETLS is offered behind TLS only" }, /* RFC 8689 2 */
	{ SMTP_CAP_XCLIENT, "nothing, as it is no client's" },
	{ SMTP_CAP_XFORWARD, "nothing, as it is no client's" },
	{ SMTP_CAP_XCSSLTX, "nothing, as it is no client's" },
	{ SMTP_CAP_FOREIGN, "nothing, as agents do not know its commands" },
};

static const char *why_not(int added, const struct smtp_ehlo *set)
{
	if (added == CSSL_E_FULL)
		return "less in all";
	if (added < 0)
		return "a keyword of letters, digits and '-', and its parameters (RFC 5321 4.1.1.1)";
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		if (smtp_ehlo_has(set, refused[i].cap))
			return refused[i].expected;
	return NULL;
}

static void check_capabilities(struct complaints *c, const struct node *map, const struct conf_smtp *s)
{
	struct smtp_ehlo all, one;

	smtp_ehlo_clear(&all);
	const struct node *n = s->capability_count ? node_child(map, "capabilities")->first : NULL;
	for (; n; n = n->next) {
		smtp_ehlo_clear(&one);
		int r = smtp_ehlo_add(&one, smtp_span_of(n->text));
		if (r == 0)
			r = smtp_ehlo_add(&all, smtp_span_of(n->text));
		const char *expected = why_not(r, &one);
		if (expected)
			complain_value(c, n->line, "capabilities", n->text, "%s", expected);
	}
}

/* A keyword that the code does not know would hide all others that it does not know. */
static void check_hidden(struct complaints *c, const struct node *map, const struct conf_smtp *s)
{
	struct smtp_ehlo one;

	const struct node *n = s->hide_count ? node_child(map, "hide")->first : NULL;
	for (; n; n = n->next) {
		smtp_ehlo_clear(&one);
		if (smtp_ehlo_add(&one, smtp_span_of(n->text)) < 0 || smtp_ehlo_has(&one, SMTP_CAP_OTHER) ||
			one.text_len != one.lines[0].keyword_len)
			complain_value(c, n->line, "hide", n->text, "the keyword of a known extension, as CHUNKING");
	}
}

void rules_smtp(struct complaints *c, const struct node *map, const void *object)
{
	const struct conf_smtp *s = object;
	const unsigned line = node_line(map, "hostname");

	if (s->hostname && !smtp_domain_is_greeting(smtp_span_of(s->hostname), 0))
		complain_value(c, line, "hostname", s->hostname, "a host name, as mx.example.org");
	if (s->banner && smtp_span_of(s->banner).len > SMTP_BANNER_MAX)
		complain_value(c, node_line(map, "banner"), "banner", s->banner, "at most %u bytes", SMTP_BANNER_MAX);
	check_capabilities(c, map, s);
	check_hidden(c, map, s);
}
