/* held_command.h: a command that waits, as it was read: for the sender's turn, for hooks, for an answer about its
 * recipient. It is a part of its own because it needs no session: bytes in, the same command out.
 */
#pragma once

#include "smtp/transaction.h"

/* Embedded; zero: no command waits. */
struct held_command {
	char *text; /* with its end */
	uint16_t len;
};

/* 0 or -1: out of memory, and none waits. */
int held_command_keep(struct held_command *h, const struct smtp_client_event *e);
/* The event that it came as; it points into @h. @parse: the rules of the session (smtp_command_parse()). */
struct smtp_client_event held_command_event(const struct held_command *h, unsigned parse);
/* No command waits any more. */
void held_command_free(struct held_command *h);
