/* live_owners.h: an invented connection, what its two sides say, and owners that adopt it. */
#pragma once

#include <check.h>
#include <stdlib.h>

#include "sslagent/tls/live_internal.h"
#include "tests/lib/live_pair.h"

extern struct live_pair pair;
extern uint8_t record[FORGED_RECORD_MAX], plain[TLS_PLAINTEXT_MAX]; /* start() fills @plain */

/* The exit status. The facts of @each run for each cipher suite, of which suite_at(_i) is one. */
int live_suite_run(
	const char *name, const TTest *const *each, size_t each_count, const TTest *const *one, size_t one_count);
const struct cipher_suite *suite_at(int i);
/* Begin @pair with that cipher suite. */
void start(uint16_t suite);
int is_tls13(const struct live_pair *p);

/* The agent says @len bytes of @plain; the client reads them. */
void agent_says(struct live *from, size_t len);
void client_says(struct live *to, size_t len);
/* The result of live_open(). */
int client_sends(struct live *to, const struct forged_record *r, struct live_record *got);
void client_updates_keys(struct live *to, uint8_t request);
/* The KeyUpdate is committed. */
void agent_updates_keys(struct live *from);

/* The part continued at its own position by an owner of @epoch. The caller destroys it. */
struct live *adopt(struct live_pool *pool, const struct live_part *part, uint16_t epoch, enum live_start how);
/* The result of live_create() for it. */
int adopt_result(const struct live_part *part, uint16_t epoch, enum live_start how);
