/* recipient_rules.h: deliver: queue: for whom a listener takes mail. Its clients may send to anybody, everybody else to
 * the domains of the file (Postfix: mynetworks, relay_domains).
 */
#ifndef CSSL_SMTPPROXY_RECIPIENT_RULES_H
#define CSSL_SMTPPROXY_RECIPIENT_RULES_H

#include "conf/smtpproxy.h"
#include "smtp/own_reply.h"
#include "smtp/path.h"

enum recipient_sender { RECIPIENT_OF_STRANGER, RECIPIENT_OF_CLIENT };

enum recipient_sender recipient_rules_sender(const struct smtpproxy_listener *l, const struct sockaddr *from);

/* NONE, or the reply that refuses the recipient. <postmaster> without a domain is taken from everybody (RFC 5321
 * 4.5.1). */
enum smtp_own recipient_rules_judge(
	const struct smtpproxy_listener *l, enum recipient_sender sender, const struct smtp_path *to);

#endif
