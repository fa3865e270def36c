/* session_merge.h: one page out of those that several agents gave. Each is in the order of ids and says whether its
 * agent has more; an agent may hold what others hold, too.
 */
#ifndef CSSL_RAGENT_SESSION_MERGE_H
#define CSSL_RAGENT_SESSION_MERGE_H

#include "proto/link.pb-c.h"

/* A session of which one or more agents told. */
struct merged_session {
	const Cssl__Session *session; /* what one of them said; theirs */
	uint32_t hits;                /* of all of them */
	uint32_t expires_s;           /* the longest */
};

/* The first @limit of them, each once, in the order of ids: no further than every agent has told. @out has room for
 * @limit. *@more: there are further ones behind the last. Returns how many. Sessions without an id are left out. */
enum merged_more { MERGED_ALL, MERGED_GOES_ON };
size_t session_merge(const Cssl__LinkResponse__Sessions *const *pages, size_t page_count, size_t limit,
	struct merged_session *out, enum merged_more *more);

#endif
