/* sink_server.h: the listeners and sessions of smtp-sink on one worker. */
#ifndef CSSL_BENCH_MAIL_SINK_SERVER_H
#define CSSL_BENCH_MAIL_SINK_SERVER_H

#include "bench/mail/sink_options.h"
#include "bench/mail/sink_result.h"

struct sink_server;

/* Listens, and prints each address. Complains on standard error: NULL. Both outlive it. */
struct sink_server *sink_server_create(struct sink_options *o, struct sink_result *result);

/* Until SIGTERM, SIGINT, or --mails. */
void sink_server_run(struct sink_server *s);
void sink_server_destroy(struct sink_server *s);

#endif
