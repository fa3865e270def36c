/* ragent.h: the root object of the process: what workers share, the workers, the control socket, signals. */
#ifndef CSSL_RAGENT_RAGENT_H
#define CSSL_RAGENT_RAGENT_H

#include <stddef.h>

#include "conf/conf.h"

#define RAGENT_STOP_LIMIT_MS 10000u /* SIGTERM: what has not ended by then is reset */

struct ragent;

enum ragent_start {
	RAGENT_STARTS,
	RAGENT_REPLACES /* the running process of the same name: takes over everything it has */
};

/* Read the key, bind everything, drop privileges, start the workers. @conf outlives it. NULL with @error. */
struct ragent *ragent_create(const struct conf *conf, const struct conf_ragent *self, enum ragent_start start,
	char *error, size_t error_cap);

/* Until SIGTERM or SIGINT, or until another process has replaced this one. 0, or negative: it broke, or could not
 * replace the running process. */
int ragent_run(struct ragent *r);
void ragent_destroy(struct ragent *r);

#endif
