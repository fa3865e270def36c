/* ragent.h: the root object of the process: what workers share, the workers, the control socket, signals. */
#ifndef CSSL_RAGENT_RAGENT_H
#define CSSL_RAGENT_RAGENT_H

#include <stddef.h>

#include "conf/conf.h"

#define RAGENT_STOP_LIMIT_MS 10000u /* SIGTERM: what has not ended by then is reset */

struct ragent;

/* Read the key, bind everything, drop privileges, start the workers. @conf outlives it. NULL with @error. */
struct ragent *ragent_create(const struct conf *conf, const struct conf_ragent *self, char *error, size_t error_cap);

/* Until SIGTERM or SIGINT. 0 or negative. */
int ragent_run(struct ragent *r);
void ragent_destroy(struct ragent *r);

#endif
