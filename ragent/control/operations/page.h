/* page.h: the first connections of a worker by id, described in memory of their own, and the merge of all workers'
 * pages. It is a part of its own because it needs no request, and its tests no socket.
 */
#pragma once

#include "ragent/connection/connection_description.h"
#include "ragent/control/operations/gather.h"
#include "ragent/control/operations/operations.h"

bool page_matches(const struct connection *c, const struct control_query *q);

struct page {
	size_t count;
	enum { PAGE_IS_LAST, PAGE_GOES_ON } more;
	struct connection_description rows[]; /* by id */
};

/* On the worker's thread. NULL: out of memory. */
struct page *page_create(const struct ragent_worker *rw, const struct control_query *q);
/* Merge the results of all parts, and destroy them. NULL: out of memory, here or in a worker. */
struct page *page_merge(struct gather *g, unsigned limit);
void page_destroy(struct page *p);
