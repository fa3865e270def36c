/* fake_agent.h: an agent that does what the test says: it makes the opening of a link for real, answers pings while it
 * has manners, keeps every frame it gets, and sends what it is told. On the test's own loop; one link at a time.
 */
#pragma once

#include "proto/frame.h"
#include "proto/link.pb-c.h"
#include "proto/opening.h"

struct fake_agent;

struct fake_frame {
	struct fake_frame *next;
	uint32_t stream;
	uint8_t type, flags;
	uint16_t len;
	uint8_t payload[];
};

struct fake_agent *fake_agent_start(
	const char *name, const char *path, const struct key_ring *ring, enum link_protection protection);
/* Just behind it: the bytes of its links go through memory, which RAgent has to bring. */
void fake_agent_share(struct fake_agent *a);
/* The same: it sends a pidfd of its process, which is this one. */
void fake_agent_name_itself(struct fake_agent *a);
/* Close everything and free; turns the loop until that is done. */
void fake_agent_stop(struct fake_agent *a);

/* How it behaves from now on. */
void fake_agent_ready(struct fake_agent *a, int ready); /* in its LOADs; from the start it is ready */
void fake_agent_silent(struct fake_agent *a);           /* answers no ping any more */
void fake_agent_cut(struct fake_agent *a);              /* closes its link; a new one is welcome */
void fake_agent_die(struct fake_agent *a);              /* closes its link and listens no more */
int fake_agent_linked(const struct fake_agent *a);
unsigned fake_agent_links(const struct fake_agent *a); /* openings completed so far */

/* The first frame of that type, removed; free() it. NULL: none came yet. */
struct fake_frame *fake_agent_take(struct fake_agent *a, enum frame_type type);
unsigned fake_agent_count(const struct fake_agent *a, enum frame_type type);
/* Bytes of DATA that came on @stream, or on any (0), since they were last taken. */
size_t fake_agent_data_len(const struct fake_agent *a, uint32_t stream);
/* Remove all DATA of @stream and give its bytes. */
size_t fake_agent_take_data(struct fake_agent *a, uint32_t stream, uint8_t *out, size_t cap);

void fake_agent_send(
	struct fake_agent *a, uint32_t stream, enum frame_type type, uint8_t flags, const void *payload, size_t len);
void fake_agent_say(struct fake_agent *a, uint32_t stream, enum frame_type type, const ProtobufCMessage *message);
void fake_agent_consumed(struct fake_agent *a, uint32_t stream, const struct frame_consumed *consumed, uint8_t flags);
void fake_agent_end(struct fake_agent *a, uint32_t stream, uint8_t reason, uint8_t flags);
