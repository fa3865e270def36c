/* session_probe.h: deliver: queue: which recipients are taken from whom. It is a part of its own because a relay does
 * not judge recipients.
 */
#pragma once

#include <stdbool.h>

struct session;
struct smtp_client_event;

/* RCPT of a stranger. True: it was refused, or waits for the answer of its receiver, and comes to session_transact()
 * again then. False: it goes on. */
bool session_judge_recipient(struct session *s, const struct smtp_client_event *e);
