/* milter_peer.h: the test as a milter. */
#pragma once

#include "hook_peer.h"
#include "smtpproxy/hooks/call.h"

/* The next packet of peer @n, which has that letter. Macros are not told: what they say is added to `macros`. */
extern struct packet {
	char letter;
	uint32_t len;
	char content[MILTER_CHUNK_MAX + 1];
} packet, macros;
void peer_hears(unsigned n, char letter);

void peer_says(unsigned n, char letter, const void *content, size_t len);
void peer_says_options(unsigned n, uint32_t version, uint32_t actions, uint32_t flags);

/* Check's, instead of hooks_setup(). */
void milter_setup(void);

/* Its wishes; zero at first. */
extern uint32_t milter_flags;
/* The flags by which it does not hear a part, or does not reply to it. */
extern const struct milter_wishes {
	char letter;
	enum filter_step step;
	uint32_t no, silent;
} milter_parts[MILTER_PARTS];

/* The next question of a transaction, about a message with one field: "A: 1", an empty line and "body". */
void ask_step(enum filter_step step);

/* A transaction with hook "a", about which all is forgotten. The milter agrees to all parts before @part, and has heard
 * @part. */
void begin_until(enum milter_part part);
