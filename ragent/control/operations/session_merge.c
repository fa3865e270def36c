/* session_merge.c: compares the heads of all pages. When a page is used up but its agent has more, the merged page
 * ends: the agent's next session may come before any other head. */
#include "ragent/control/operations/session_merge.h"

#include <assert.h>

#include "proto/session_id.h"
#include "ragent/dispatch/agents.h"

struct merge_heads {
	const Cssl__LinkResponse__Sessions *const *pages;
	size_t count;
	size_t at[AGENTS_MAX]; /* by page */
};

/* NULL: the page is used up. */
static const Cssl__Session *merge_head(struct merge_heads *h, size_t page)
{
	const Cssl__LinkResponse__Sessions *p = h->pages[page];

	while (h->at[page] < p->n_session && p->session[h->at[page]]->session_id.len != SESSION_ID_LEN)
		h->at[page]++;
	return h->at[page] < p->n_session ? p->session[h->at[page]] : NULL;
}

static int merge_compare(const Cssl__Session *a, const Cssl__Session *b)
{
	return session_id_compare(a->session_id.data, b->session_id.data);
}

/* The lowest head. NULL: the next session is unknown, or there is none (*@more tells which). */
static const Cssl__Session *merge_next(struct merge_heads *h, enum merged_more *more)
{
	const Cssl__Session *lowest = NULL;

	*more = MERGED_ALL;
	for (size_t i = 0; i < h->count; i++) {
		const Cssl__Session *s = merge_head(h, i);

		if (!s && h->pages[i]->next.len > 0) {
			*more = MERGED_GOES_ON;
			return NULL;
		}
		if (s && (!lowest || merge_compare(s, lowest) < 0))
			lowest = s;
	}
	if (lowest)
		*more = MERGED_GOES_ON;
	return lowest;
}

/* Take @session from all pages that have it. */
static struct merged_session merge_take(struct merge_heads *h, const Cssl__Session *session)
{
	struct merged_session merged = { .session = session };

	for (size_t i = 0; i < h->count; i++) {
		const Cssl__Session *s = merge_head(h, i);

		if (!s || merge_compare(s, session) != 0)
			continue;
		merged.hits += s->hits;
		if (s->expires_s > merged.expires_s)
			merged.expires_s = s->expires_s;
		h->at[i]++;
	}
	return merged;
}

size_t session_merge(const Cssl__LinkResponse__Sessions *const *pages, size_t page_count, size_t limit,
	struct merged_session *out, enum merged_more *more)
{
	struct merge_heads h = { .pages = pages, .count = page_count };
	const Cssl__Session *session;
	size_t count = 0;

	assert(page_count <= AGENTS_MAX);
	while ((session = merge_next(&h, more)) && count < limit)
		out[count++] = merge_take(&h, session);
	return count;
}
