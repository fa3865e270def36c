/* recipient_rules.c: looks through the lists of the listener. */
#include "smtpproxy/policy/recipient_rules.h"

#include <string.h>

enum recipient_sender recipient_rules_sender(const struct smtpproxy_listener *l, const struct sockaddr *from)
{
	return address_nets_have(l->clients, l->client_count, from) ? RECIPIENT_OF_CLIENT : RECIPIENT_OF_STRANGER;
}

/* "user%other.example@ours.example": the server behind, which trusts us, may pass it on (Postfix refuses it from
 * strangers, too: allow_untrusted_routing). */
static int names_a_route(struct smtp_span local)
{
	for (size_t i = 0; i < local.len; i++) {
		if (local.at[i] && strchr("%!@", local.at[i]))
			return 1;
	}
	return 0;
}

enum smtp_own recipient_rules_judge(
	const struct smtpproxy_listener *l, enum recipient_sender sender, const struct smtp_path *to)
{
	if (sender == RECIPIENT_OF_CLIENT || to->kind == SMTP_PATH_POSTMASTER)
		return SMTP_OWN_NONE;
	for (size_t i = 0; i < l->accept_count && !names_a_route(to->local); i++) {
		if (smtp_domain_is_in(to->domain, l->accept[i]))
			return SMTP_OWN_NONE;
	}
	return SMTP_OWN_RELAY_DENIED;
}
