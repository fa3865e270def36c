/* page.h: the first connections of a worker by id, described in memory of their own, and the merge of all workers'
 * pages.
 */
#ifndef CSSL_RAGENT_PAGE_H
#define CSSL_RAGENT_PAGE_H

#include "ragent/control/control.h"
#include "ragent/control/gather.h"

struct page_query {
	const struct connection_id *after; /* NULL: from the start */
	const struct connection_id *exact; /* NULL: any */
	const char *agent, *listener;      /* NULL: any */
	const struct address_net *client;  /* NULL: any */
	unsigned limit;
	/* the data of the pointers above */
	struct connection_id id;
	struct address_net net;
	char *names;
};

/* Copies the data that @q points to. 0 or CSSL_E_NO_MEMORY. */
int page_query_set(struct page_query *p, const struct control_query *q);
void page_query_clear(struct page_query *p);
int page_matches(const struct connection *c, const struct page_query *q); /* 1 or 0 */

struct page {
	size_t count;
	enum control_more more;
	struct connection_description rows[]; /* by id */
};

/* On the worker's thread. NULL: out of memory. */
struct page *page_create(const struct ragent_worker *rw, const struct page_query *q);
/* Merge the results of all parts, and destroy them. NULL: out of memory, here or in a worker. */
struct page *page_merge(struct gather *g, unsigned limit);
void page_destroy(struct page *p);

#endif
