/* smtp_ends.h: why an agent itself ended a client's mail, as its counters and RAgent know it. */
#ifndef CSSL_SSLAGENT_SMTP_ENDS_H
#define CSSL_SSLAGENT_SMTP_ENDS_H

#include "proto/end_reason.h"
#include "smtp/reply_write.h"

/* @why: the last reply. For replies about what the client said it is END_TRACK_LOST; for NONE, BYE, and when the server
 * refused the client in its banner, END_DONE. */
enum end_reason smtp_end_reason(enum smtp_own why);

/* Behind TLS. */
void smtp_end_count(enum smtp_own why);

#endif
