/* source_load.h: the sessions of one process of smtp-source, on one worker. It decides which session sends which mail,
 * and when. */
#ifndef CSSL_BENCH_MAIL_SOURCE_LOAD_H
#define CSSL_BENCH_MAIL_SOURCE_LOAD_H

#include "bench/mail/source_mail.h"
#include "bench/mail/source_options.h"
#include "bench/mail/source_result.h"

struct source_load;

/* The part of process @index of @o->processes. All three outlive it. Complains on standard error: NULL. */
struct source_load *source_load_create(
	const struct source_options *o, unsigned index, struct source_mail *mail, struct source_result *result);

/* Until all mails are sent, the time is over, or SIGTERM or SIGINT came. */
void source_load_run(struct source_load *l);
void source_load_destroy(struct source_load *l);

#endif
