/* session_merge.h: merges the pages of several agents into one. It is a part of its own because it needs no agent, only
 * pages.
 */
#pragma once

#include <stddef.h>

#include "proto/link.pb-c.h"

/* A session in the pages of one or more agents. */
struct merged_session {
	const Cssl__Session *session; /* from one of these pages, which owns it */
	uint32_t hits;                /* the sum of all */
	uint32_t expires_s;           /* the longest */
};

/* Each page is in the order of ids and tells whether its agent has more.
 * Several agents may hold the same session. The first @limit sessions, each once, in the order of ids, as far as the
 * pages of all agents go. @out has room for
 * @limit. *@more: whether more follow. Returns how many. Sessions without an id are left out. */
enum merged_more { MERGED_ALL, MERGED_GOES_ON };
size_t session_merge(const Cssl__LinkResponse__Sessions *const *pages, size_t page_count, size_t limit,
	struct merged_session *out, enum merged_more *more);
