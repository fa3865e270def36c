/* misuse.h: one SSL_ID with which the hostile RAgent tries to get something that it may not have, and what the agent
 * answers. All that it then gets is noted: the audit sees it.
 */
#pragma once

#include <jansson.h>

#include "tests/lib/hostile/held_client.h"

/* SSL_ID to @link: of @c, as an honest RAgent would say it, but for what @how says (tests/lib/hostile/main.c has the
 * words); @c NULL: of a connection that this RAgent never had. @answered is called once, with what the agent said
 * (owned by the callee). */
void misuse_begin(struct worker *w, struct held_client *c, struct agent_link *link, const json_t *how,
	void (*answered)(json_t *answer));
/* The SSL_ID that was said last, once more and byte for byte, to @link. */
void misuse_replay(struct worker *w, struct agent_link *link, void (*answered)(json_t *answer));
/* REATTACH to @link: of the stream of @c, or of the connection, epoch and stream that @how names. */
void misuse_reattach(struct worker *w, struct held_client *c, struct agent_link *link, const json_t *how,
	void (*answered)(json_t *answer));
