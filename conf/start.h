/* start.h: the first steps of a daemon. Each prints what failed to standard error. */
#pragma once

#include "conf/conf.h"

/* Call it first: no other process may read this one's memory from now on, and libsodium is ready. 0 or -1. */
int start_protected(const char *program);
/* The cluster file, after a look at the files that it names for that tier. The caller frees it by conf_destroy(). NULL:
 * it has faults. */
struct conf *start_load(const char *path, enum conf_reader tier);
/* Open the logs. @node NULL: the program has no names of nodes. @access NULL: no access log of its own. 0 or -1. */
int start_log(const char *program, const char *node, const struct conf_log *log, const char *access);
