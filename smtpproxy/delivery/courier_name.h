/* courier_name.h: names of deliveries, for a next hop that speaks XCSSLTX (doc/xcssltx.md). A part of its own, because
 * everything about names can be left out: then a message in doubt is sent again. */
#pragma once

#include "smtpproxy/delivery/courier.h"

enum courier_next { COURIER_NEXT_MAIL, COURIER_NEXT_ASK, COURIER_NEXT_SETTLE };

/* Before a receiver is tried: decides whether the message has a name there, and sets goal->unique_id then. Only the
 * configured next hop learns names. */
void courier_name_begin(struct courier *c, struct destination_goal *goal);
/* Its turn has come: MAIL or ASK. */
enum courier_next courier_name_begins(struct courier *c);
/* The parameter of MAIL, with a blank in front. Returns its length; 0: it has no name. */
int courier_name_write(const struct courier *c, char *out, size_t cap);
/* The question, a line with its end. Returns its length. */
size_t courier_name_ask(struct courier *c, uint8_t *out, size_t cap);
/* MAIL got 503: another process used the number. MAIL or ASK. */
enum courier_next courier_name_refused(struct courier *c);
/* The question was answered. SETTLE: @decided is the reply to the end. MAIL: it has the next number. */
enum courier_next courier_name_answered(
	struct courier *c, const struct smtp_reply_line *line, struct smtp_reply_line *decided);
