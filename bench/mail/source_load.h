/* source_load.h: the sessions of one process of smtp-source, on one worker. It decides which session sends which mail,
 * and when. */
#ifndef CSSL_BENCH_MAIL_SOURCE_LOAD_H
#define CSSL_BENCH_MAIL_SOURCE_LOAD_H

/* Process @index of those of @options (struct source_options), as processes.h wants it: until all its mails are sent,
 * the time is over, or SIGTERM or SIGINT came. @result: struct source_result. It fails if it cannot start, or gave up.
 */
int source_load_run(const void *options, unsigned index, void *result);

#endif
