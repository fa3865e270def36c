/* destination_rules.h: decides which destinations are allowed. So smtpproxy is no open proxy into its own host, and
 * mail does not come back to it.
 */
#pragma once

#include "conf/smtpproxy.h"
#include "smtp/path.h"
#include "smtp/reply_write.h"

struct destination_rules;

/* @conf has to outlive it. NULL: out of memory. */
struct destination_rules *destination_rules_create(const struct conf_smtpproxy *conf);
void destination_rules_destroy(struct destination_rules *r); /* NULL is legal */

/* From now on @conf counts. */
void destination_rules_follow(struct destination_rules *r, const struct conf_smtpproxy *conf);

enum destination_verdict {
	DESTINATION_ALLOWED,
	DESTINATION_BAD_PORT,
	DESTINATION_OURSELVES, /* one of our listeners: mail would go in a circle */
	DESTINATION_LOCAL,     /* an address of this host */
	DESTINATION_NOWHERE,   /* no address, or not the address of a single host */
};

/* Reads the addresses of this host again if the last time was 10 s before @now_ms. */
enum destination_verdict destination_rules_judge(
	struct destination_rules *r, const struct sockaddr *to, uint64_t now_ms);

/* For logs. */
const char *destination_verdict_text(enum destination_verdict v);

/* deliver: queue: for whom a listener takes mail. Its clients may send to anybody, everybody else to the domains of the
 * file (Postfix: mynetworks, relay_domains). */

enum recipient_sender { RECIPIENT_OF_STRANGER, RECIPIENT_OF_CLIENT };

enum recipient_sender recipient_rules_sender(const struct smtpproxy_listener *l, const struct sockaddr *from);

/* NONE, or the reply that refuses the recipient. <postmaster> without a domain is taken from everybody (RFC 5321
 * 4.5.1). */
enum smtp_own recipient_rules_judge(
	const struct smtpproxy_listener *l, enum recipient_sender sender, const struct smtp_path *to);
