/* memory_source.h: a session source without a cluster: sessions as the bytes that would travel. What one stored another
 * can be given, so two of them are two agents. */
#pragma once

#include "sslagent/tls/session_source.h"

#define MEMORY_SOURCE_MAX 64u

struct memory_session {
	uint8_t id[SESSION_ID_LEN];
	uint8_t *bytes;
	size_t len;
	enum { MEMORY_HERE, MEMORY_ELSEWHERE } place;
};

struct memory_source {
	struct session_source source; /* first */
	struct memory_session sessions[MEMORY_SOURCE_MAX];
	size_t count;
	uint32_t family_age_max_s; /* 0: any */
	uint8_t revoked[FAMILY_ID_LEN];
	enum { NOTHING_REVOKED, FAMILY_REVOKED } revocation;
	uint8_t ticket_secret; /* makes the cluster's ticket key */
	unsigned finds, shares, refused;
	enum { SHARE_ACCEPTS, SHARE_REFUSES } sharing;
};

void memory_source_start(struct memory_source *s, const char *origin);
void memory_source_stop(struct memory_source *s);

/* Copy all sessions of @from to @to, by their bytes. */
void memory_source_copy(struct memory_source *to, const struct memory_source *from);
/* From now on the sessions are at that place: known to exist, but not here yet; or here again. */
void memory_source_place(struct memory_source *s, int place);
void memory_source_age(struct memory_source *s, uint32_t family_age_s, uint32_t remaining_s);
