/* root_object.h: the root object of a RAgent in the test's own process, with one listener "sf" and one agent, which
 * does not answer. */
#pragma once

#include "net/socket/address.h"
#include "ragent/process/ragent.h"
#include "ragent/process/ragent_internal.h"
#include "tests/unit/net/fixture.h"

extern struct ragent_params params; /* may be changed before starts() */
extern struct ragent *ragent;
extern char error[8192], control[128]; /* control: the path of with_control() */

/* @keys: further keys of this RAgent in the file. */
void read_file(const char *listen, const char *keys);
/* Two workers and a control socket. */
const char *with_control(void);
/* Reads the file, and starts. */
void starts(const char *listen, const char *keys);
/* By SIGTERM, in order. */
void ends(void);

/* A descriptor, or -1. */
int connect_to(const struct sockaddr *to);
int connect_to_text(const char *text);
int connect_to_path(const char *path);

/* Where the listener listens. */
struct sockaddr_storage bound(void);
const char *bound_text(void);
/* Of 127.0.0.1; a moment ago nobody had it. */
const char *free_port(void);

int root_object_suite_run(const char *name, const TTest *const *facts, size_t count);
