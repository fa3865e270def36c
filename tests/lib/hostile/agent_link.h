/* agent_link.h: a link of the hostile RAgent to one agent: opened with the true link.key, and from then on whatever its
 * user likes to send. Opened again when the agent ends it. One worker, no threads.
 */
#pragma once

#include "conf/conf.h"
#include "net/loop/worker.h"
#include "proto/frame.h"
#include "proto/link.pb-c.h"

struct agent_link;

#define AGENT_LINK_BOOT_ID 666u /* of the hostile RAgent, in its openings */

/* A listener for the frames of a stream. Embedded in its owner. */
struct hearer {
	void (*on_frame)(struct hearer *h, struct agent_link *l, const struct frame *f);
	void (*on_lost)(struct hearer *h); /* the link ended, and with it the stream */
};

/* @name: what the RAgent calls itself. Pointers outlive it. Exits where it cannot. */
struct agent_link *agent_link_create(
	struct worker *w, const struct key_ring *ring, const struct conf_agent *agent, const char *name);
const char *agent_link_name(const struct agent_link *l);
int agent_link_is_up(const struct agent_link *l);
/* How often it was up. */
unsigned agent_link_times(const struct agent_link *l);

/* A new stream, or a forged one: any number. */
uint32_t agent_link_begin(struct agent_link *l, struct hearer *h);
/* From now on the frames of this stream go to @h. */
void agent_link_hand(struct agent_link *l, uint32_t stream, struct hearer *h);
void agent_link_send(
	struct agent_link *l, uint32_t stream, enum frame_type type, uint8_t flags, const void *payload, size_t len);
void agent_link_say(struct agent_link *l, uint32_t stream, enum frame_type type, const ProtobufCMessage *m);

/* Show @proof (FRAME_PROOF_LEN bytes), now and on every later link to the agent: streams that begin from now on outlive
 * their link. */
void agent_link_prove(struct agent_link *l, const uint8_t *proof);
/* End the link. The next one is opened by itself. */
void agent_link_drop(struct agent_link *l);

/* Write @count random bytes at random places of the memory that the link's bytes go through; 0: there is none. */
unsigned agent_link_scribble(struct agent_link *l, unsigned count);
/* 1: what comes on this link may have been changed by this process itself; else 0. */
int agent_link_is_scribbled(const struct agent_link *l);

/* Connect and say the first message of an opening, sealed under the key, and no other; the descriptor, or -1. */
int agent_link_half_open(const struct key_ring *ring, const struct conf_agent *agent, const char *name);
