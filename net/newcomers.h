/* newcomers.h: connections whose other side has not proven yet who it is, and which of them gives way when there is no
 * room for a new one. Anybody may connect and say nothing; who has the key or a token has to get through all the same,
 * so one that has proven nothing makes room: the oldest of the source that has most of them. A source is a user of this
 * host or an address. No clock, and nothing is closed here: the owner does that.
 *
 *   SILENT --> PROVEN     or what looks so: a replayed message
 */
#ifndef CSSL_NET_NEWCOMERS_H
#define CSSL_NET_NEWCOMERS_H

#include <stdint.h>
#include <sys/socket.h>

#define NEWCOMER_SOURCES 256u       /* sources share these places by chance; a shared one costs fairness only */
#define NEWCOMERS_NO_END UINT64_MAX /* of stalled_ms: who has proven itself never gives way */
#define NEWCOMER_TURNS   2u         /* in its first turns of the loop nobody could read what it says: it stays */

enum newcomer_stage { NEWCOMER_SILENT, NEWCOMER_PROVEN };

/* Embedded in its owner; zero is outside. */
struct newcomer {
	struct newcomer *next, *prev; /* NULL: outside */
	uint64_t began_ms;            /* its stage */
	uint32_t turn;                /* of the loop, when it came */
	uint8_t source;
	uint8_t stage; /* enum newcomer_stage */
};

struct newcomers_limits {
	unsigned count;      /* of all */
	unsigned of_source;  /* at most 65535 */
	uint64_t stalled_ms; /* a PROVEN one gives way too, so long after it proved itself */
};

struct newcomers {
	struct newcomers_limits limits;
	struct newcomer ring; /* the oldest is next */
	unsigned count;
	uint16_t of_source[NEWCOMER_SOURCES];
	uint8_t key[16]; /* so that nobody can choose whose place to share */
};

void newcomers_init(struct newcomers *n, const struct newcomers_limits *limits);

/* Who is at the other end of @fd: the user behind a UNIX socket, else the address @peer. */
uint8_t newcomers_source(const struct newcomers *n, int fd, const struct sockaddr *peer);

/* Is there no room for one more of @source? */
int newcomers_full(const struct newcomers *n, uint8_t source);
/* The one that gives way then: SILENT ones before PROVEN ones, of @source itself where that has its share. NULL: there
 * is room, or nobody gives way. */
struct newcomer *newcomers_victim(struct newcomers *n, uint8_t source, uint64_t now_ms, uint32_t turn);

void newcomers_add(struct newcomers *n, struct newcomer *c, uint8_t source, uint64_t now_ms, uint32_t turn);
void newcomer_proven(struct newcomer *c, uint64_t now_ms);
/* Nothing happens where it is outside. */
void newcomers_remove(struct newcomers *n, struct newcomer *c);

#endif
