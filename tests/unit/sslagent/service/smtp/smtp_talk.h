/* smtp_talk.h: service smtp between a client and a server that the test plays: what each of them says and hears, and
 * what a successor does that has only the note of a lost owner. */
#pragma once

#include "conf/conf.h"
#include "sslagent/service/service.h"

#define OFFERS  "250-backend\r\n250-SIZE 1000\r\n250-PIPELINING\r\n250-CHUNKING\r\n250 XCSSLTX 5f\r\n"
#define SHOWN   "250-mx.example\r\n250-SIZE 1000\r\n250-PIPELINING\r\n250 CHUNKING\r\n"
#define MAIL    "MAIL FROM:<a@x.example>"
#define LOST    "421 4.3.2 This server was lost and another took over, try again\r\n"
#define CHANGED "421 4.3.2 The mail server behind has changed, try again\r\n"

/* The owner that is lost, and its successor. */
struct owner {
	struct service s;
	uint64_t record;
	unsigned sealed; /* replies since the checkpoint, as RAgent counts them */
	uint8_t note[SERVICE_NOTE_MAX];
	size_t note_len;
};
extern struct owner a, b;

extern struct service_blocks blocks;
extern struct conf_listener listener; /* offers STARTTLS; setup() makes it */
extern struct conf_backend backend;   /* its backend; setup() makes it */

/* Of each test. */
void setup(void);
void teardown(void);

/* Begin as a new owner. */
void own(struct owner *o, uint16_t epoch);
/* The same, up to the client's EHLO and the reply to it. */
void greeted(struct owner *o);
/* The same, and MAIL in record 2, RCPT, DATA, and the content up to its dot. */
void in_content(struct owner *o);

/* One record of the client. */
void client_says(struct owner *o, const char *words);
void server_says(struct owner *o, const char *words);
/* All that is for the server is exactly that. */
void server_heard(struct owner *o, const char *words);
void server_heard_group(struct owner *o, const char *first, const char *others);
/* The next record to the client is that. */
void client_heard(struct owner *o, const char *words);
void client_heard_nothing(struct owner *o);

/* MAIL with the name that it has in that epoch, when it begins @from bytes behind the beginning of record @record.
 * Valid until the next call. */
const char *named_at(uint16_t epoch, uint64_t record, size_t from);
/* The first one of record @record. */
const char *named(const char *command, uint16_t epoch, uint64_t record);
/* The question about that mail. Valid until the next call. */
const char *question_at(uint16_t epoch, uint64_t record, size_t from);
/* About the first mail of record 2. */
const char *question(uint16_t epoch);

/* @to continues what @from left: records from 2 on, as many as there are in @said. @how: of struct service_resumption.
 * Returns the result of service_resume(). */
int resume_at(struct owner *to, const struct owner *from, uint16_t epoch, int how, const char *const *said);
/* The same after a loss, in epoch 2, without a fault. */
void resume(struct owner *to, const struct owner *from, const char *const *said);
/* The server of a successor, up to its reply to EHLO. */
void server_begins(struct owner *o, const char *offers);
