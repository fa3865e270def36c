/* newcomers.h: connections whose other side has not yet proved who it is, and which of them gives way to a new one.
 * Anybody may connect and send nothing, and must not keep out a client with the key or a token. So when there is no
 * room, the source with most connections loses its oldest one. A source is a user of this host or an address. There is
 * no clock here, and the owner closes connections.
 *
 *   SILENT --> PROVEN     (a replayed message may be enough)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define NEWCOMER_SOURCES 256u       /* sources are hashed to so many; two with one hash share a limit */
#define NEWCOMERS_NO_END UINT64_MAX /* of stalled_ms: a PROVEN one never gives way */
#define NEWCOMER_TURNS   2u         /* it stays in its first turns of the loop, before its bytes could be read */

enum newcomer_stage { NEWCOMER_SILENT, NEWCOMER_PROVEN };

/* Embedded in its owner. All zero: not in a list. */
struct newcomer {
	struct newcomer *next, *prev; /* NULL: not in a list */
	uint64_t began_ms;            /* its stage */
	uint32_t turn;                /* of the loop, when it came */
	uint8_t source;
	uint8_t stage; /* enum newcomer_stage */
};

struct newcomers_limits {
	unsigned count;      /* of all */
	unsigned of_source;  /* at most 65535 */
	uint64_t stalled_ms; /* a PROVEN one gives way too, this long after it became so */
};

struct newcomers {
	struct newcomers_limits limits;
	struct newcomer ring; /* the oldest is next */
	unsigned count;
	uint16_t of_source[NEWCOMER_SOURCES];
	uint8_t key[16]; /* of the hash, so that no source can choose its place */
};

void newcomers_init(struct newcomers *n, const struct newcomers_limits *limits);

/* The source at the other end of @fd: its user for a UNIX socket, else the address @peer. */
uint8_t newcomers_source(const struct newcomers *n, int fd, const struct sockaddr *peer);

/* Is there no room for one more of @source? */
bool newcomers_full(const struct newcomers *n, uint8_t source);
/* The one that gives way: a SILENT one before a PROVEN one; one of @source if that has its full share. NULL: there is
 * room, or none gives way. */
struct newcomer *newcomers_victim(struct newcomers *n, uint8_t source, uint64_t now_ms, uint32_t turn);

void newcomers_add(struct newcomers *n, struct newcomer *c, uint8_t source, uint64_t now_ms, uint32_t turn);
void newcomer_proven(struct newcomer *c, uint64_t now_ms);
/* Does nothing if @c is not in the list. */
void newcomers_remove(struct newcomers *n, struct newcomer *c);
