/* ragent.h: the root object of the process: the parts that workers share, the workers, the control socket, signals. */
#pragma once

#include <stddef.h>

#include "conf/conf.h"
#include "ragent/keeper/leftovers.h"

#define RAGENT_STOP_LIMIT_MS 10000u /* after SIGTERM: connections that have not ended by then are reset */

struct ragent;

enum ragent_start {
	RAGENT_STARTS,
	RAGENT_REPLACES,    /* takes over everything from the running process of the same name */
	RAGENT_STARTS_AGAIN /* after a death: with the sockets of the process that died */
};

/* All of it has to outlive the root object. */
struct ragent_params {
	const struct conf *conf;
	const struct conf_ragent *self;
	const struct key_ring *link_key;
	enum ragent_start start;
	struct notes *notes;               /* NULL: there is no keeper */
	const struct leftovers *leftovers; /* for RAGENT_STARTS_AGAIN only */
};

/* Bind everything, drop privileges, start the workers. NULL with @error. If RAGENT_STARTS_AGAIN fails, sockets may
 * stay open for the next attempt: the process should end by _exit(2). */
struct ragent *ragent_create(const struct ragent_params *p, char *error, size_t error_cap);

/* Runs until SIGTERM or SIGINT, or until another process has replaced this one. 0, or negative: an error ended it,
 * or it could not replace the running process. */
int ragent_run(struct ragent *r);
void ragent_destroy(struct ragent *r);
