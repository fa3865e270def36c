/* line_name.c: names of lines, made and read. Domains have no port; that tells them from addresses. */
#include "smtpproxy/envelope/line_name.h"

#include <stdio.h>

#include "net/address.h"
#include "proto/error.h"
#include "smtp/domain.h"
#include "smtpproxy/envelope/envelope.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

int line_name_of(const struct smtpproxy_queue *conf, struct smtp_span mailbox, char out[static LINE_NAME_MAX + 1])
{
	const struct smtp_span domain = envelope_domain(mailbox);
	char address[ADDRESS_TEXT_MAX];
	const int r = smtp_span_copy(domain, out, LINE_NAME_MAX + 1);
	for (char *c = out; *c; c++)
		*c = lower(*c);
	if (conf->next_hop.ss_family != AF_UNSPEC && !line_name_domain(conf, out)) {
		snprintf(out, LINE_NAME_MAX + 1, "%s",
			address_format((const struct sockaddr *)&conf->next_hop, address));
		return 0;
	}
	return domain.len == 0 ? CSSL_E_NOT_FOUND : r;
}

int line_name_address(const char *name, struct sockaddr_storage *out)
{
	const int is_address = address_parse(name, out) == 0 && out->ss_family != AF_UNIX &&
			       address_port((const struct sockaddr *)out) > 0;
	return is_address ? 0 : CSSL_E_NOT_FOUND;
}

const struct smtpproxy_domain *line_name_domain(const struct smtpproxy_queue *conf, const char *name)
{
	for (size_t i = 0; i < conf->domain_count; i++) {
		if (smtp_domain_is_in(smtp_span_of(name), conf->domains[i].domain))
			return &conf->domains[i];
	}
	return NULL;
}
