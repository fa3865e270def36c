/* sink_mail.h: a mail that smtp-sink is receiving: its envelope, its content so far, and the decision about it. */
#pragma once

#include <stdio.h>

#include "bench/mail/mail_mark.h"
#include "bench/mail/sink_options.h"
#include "bench/mail/sink_result.h"
#include "smtp/data.h"
#include "smtp/reply_write.h"

struct sink_mail {
	uint64_t recipients;
	uint8_t too_big;
	uint32_t refuses; /* SMTP_DATA_BIT()s; checked when the mail is complete */
	uint8_t tail_len; /* of DATA: bytes that may turn out to be the end */
	char tail[3];
	struct smtp_data data;
	struct smtp_bdat bdat;
	struct smtp_dots dots;
	struct mail_check check;
	uint64_t len; /* of the mail itself so far */
	FILE *dump;   /* memory that collects it, or NULL */
	char *dumped;
	size_t dumped_len;
	size_t sender_len;
	char sender[];
};

/* NULL: out of memory. */
struct sink_mail *sink_mail_create(struct smtp_span sender, const struct sink_options *o);

/* NULL is legal. */
void sink_mail_destroy(struct sink_mail *m);

void sink_mail_recipient(struct sink_mail *m, struct smtp_span command);
void sink_mail_begin_data(struct sink_mail *m, const struct sink_options *o);

/* Bytes of DATA; @taken is how many. 1: the end was among them. */
bool sink_mail_data(struct sink_mail *m, const struct sink_options *o, const char *in, size_t len, size_t *taken);

/* Bytes of a chunk; returns how many were taken. */
size_t sink_mail_chunk(struct sink_mail *m, const struct sink_options *o, const char *in, size_t len);

/* The reply that refuses the complete mail, or NONE. */
enum smtp_own sink_mail_refusal(const struct sink_mail *m, struct sink_result *r);

/* The mail is accepted: counted, compared, and written to @dump if that is not NULL. */
void sink_mail_take(struct sink_mail *m, struct sink_result *r, FILE *dump, uint64_t now_ns);
