/* probe.h: asks the receiver of a recipient by MAIL and RCPT whether it takes mail for the recipient, before a message
 * for it is accepted (Postfix: reject_unverified_recipient). So nobody gets a notice about an address that does not
 * exist. A courier without a message asks. Answers are remembered for some time. A receiver that gives no clear answer
 * within 10 s says nothing against a recipient: a queue takes mail while the receiver is away. If it was not asked,
 * because others had its connections, nothing is known, and the recipient is put off.
 *
 * The sender of the mail is not named: what is remembered has to be true for the next one, too. The empty sender would
 * be refused by hosts that take notices only about mail which they sent.
 */
#pragma once

#include <sys/queue.h>

#include "smtp/span.h"
#include "smtpproxy/delivery/delivery.h"

/* Embedded in who waits for an answer; all zero but for on_known before use. */
struct probe_wait {
	struct probe *of; /* NULL: it waits for none */
	LIST_ENTRY(probe_wait) next;
	void (*on_known)(struct probe_wait *w); /* ask again: it is known now, or it puts off */
};

/* @parts live longer. NULL: out of memory. */
struct probes *probes_create(const struct delivery_parts *parts);
/* Remembered answers are forgotten. */
void probes_forget(struct probes *p);
void probes_destroy(struct probes *p); /* NULL is legal; no probe is under way */

enum probe_answer { PROBE_TAKES, PROBE_REFUSES, PROBE_PUTS_OFF, PROBE_ASKS };
/* @line: of the queue, that of @mailbox. REFUSES: *reply is the receiver's, with CRLF, valid until the next call. ASKS:
 * on_known comes, and not before this returns. PUTS_OFF: no memory; or no turn or place at the receiver; or as many
 * probes are under way as there may be sessions: some are for senders who have left. */
enum probe_answer probes_ask(
	struct probes *p, const char *line, struct smtp_span mailbox, struct probe_wait *w, const char **reply);
/* on_known does not come. In any state. */
void probe_forget(struct probe_wait *w);
