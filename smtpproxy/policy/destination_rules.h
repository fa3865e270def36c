/* destination_rules.h: which destinations are allowed, so that smtpproxy is no open proxy into its own host, and mail
 * does not come back to it.
 */
#ifndef CSSL_SMTPPROXY_DESTINATION_RULES_H
#define CSSL_SMTPPROXY_DESTINATION_RULES_H

#include "conf/smtpproxy.h"

struct destination_rules;

/* @conf lives longer. NULL: out of memory. */
struct destination_rules *destination_rules_create(const struct conf_smtpproxy *conf);
void destination_rules_destroy(struct destination_rules *r); /* NULL is legal */

/* From now on @conf counts. */
void destination_rules_follow(struct destination_rules *r, const struct conf_smtpproxy *conf);

enum destination_verdict {
	DESTINATION_ALLOWED,
	DESTINATION_BAD_PORT,
	DESTINATION_OURSELVES, /* one of our listeners: mail would loop */
	DESTINATION_LOCAL,     /* an address of this host */
	DESTINATION_NOWHERE,   /* no address, or one of no single host */
};

/* The addresses of this host are read again when @now_ms is 10 s behind the last time. */
enum destination_verdict destination_rules_judge(
	struct destination_rules *r, const struct sockaddr *to, uint64_t now_ms);

/* For logs. */
const char *destination_verdict_text(enum destination_verdict v);

#endif
