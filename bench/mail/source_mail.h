/* source_mail.h: the mails that smtp-source sends: each has its own head, and all have one body. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bench/mail/mail_mark.h"
#include "bench/mail/source_options.h"

#define SOURCE_HEAD_MAX 2048u

struct source_mail {
	char *body; /* all after the head, as in the mail; it ends with an end of line */
	size_t body_len;
	char *wire; /* the same with dots stuffed, and the end of DATA (RFC 5321 4.5.2) */
	size_t wire_len;
	int has_8bit;     /* bytes above 127 */
	int has_own_head; /* from a file: the head that we add is only the mark */
	struct mail_mark mark;
	char run[17]; /* ids of this run begin so */
	char *from, *to_local, *to_domain;
};

/* 0, or negative after a complaint on standard error. */
int source_mail_make(struct source_mail *mail, const struct source_options *o);
void source_mail_free(struct source_mail *mail);

/* The head of mail @number, with the empty line unless the body brings it; its length. @made_us: since 1970, for Date;
 * Message-Id, which servers log, has it with its microseconds: <RUN-NUMBER.MICROSECONDS@NAME>. */
size_t source_mail_head(struct source_mail *mail, const struct source_options *o, uint64_t number, uint64_t made_us,
	char out[static SOURCE_HEAD_MAX]);

/* "RCPT TO:<...>" of recipient @index of mail @number, as -r and -N want it; its length with CRLF. */
#define SOURCE_COMMAND_MAX 400u
size_t source_mail_rcpt(const struct source_mail *mail, const struct source_options *o, uint64_t number, uint64_t index,
	char out[static SOURCE_COMMAND_MAX]);
