/* count_table.h: counts how often each id was executed, so that a test can check "once, or not at all". */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define COUNT_ID_MAX    64u
#define COUNT_TABLE_MAX (1u << 20) /* ids */

struct count_table;

struct count_totals {
	uint64_t ids, executions;
	uint64_t most; /* of any one id */
};

struct count_table *count_table_create(void);

/* Count one execution. The id's new count, or CSSL_E_FULL, CSSL_E_NO_MEMORY, CSSL_E_RANGE (not 1 to 64 of
 * [A-Za-z0-9._-]). */
int64_t count_table_add(struct count_table *t, const char *id);

/* 0 for an id never seen. */
uint64_t count_table_get(const struct count_table *t, const char *id);
struct count_totals count_table_totals(const struct count_table *t);
void count_table_destroy(struct count_table *t);
