/* peer_way.h: how another agent is reached: by its UNIX socket when that is on this host, else by TCP. Only a UNIX link
 * passes backend sockets. It is a part of its own because it only looks at files: no link, no clock. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "conf/conf.h"

enum peer_way_kind { PEER_BY_UNIX, PEER_BY_TCP };

/* A socket's file. After a new bind it is another file. */
struct socket_seen {
	uint64_t inode; /* 0: there was none */
	int64_t changed_ns;
};

struct peer_way {
	uint8_t kind;            /* enum peer_way_kind of the next or current attempt */
	uint8_t is_proved;       /* the agent has answered behind the file that was @seen */
	uint8_t is_asked_again;  /* TCP has answered since that file was seen */
	unsigned doubts;         /* attempts at that file that ended, and proved nothing */
	struct socket_seen seen; /* at the last try of the UNIX socket */
};

/* Where to connect now. */
void peer_way_address(
	struct peer_way *w, const struct conf_agent *self, const struct conf_agent *peer, struct sockaddr_storage *out);

/* The agent has proved its name on this way. */
static inline void peer_way_proved(struct peer_way *w)
{
	w->is_proved = w->kind == PEER_BY_UNIX;
}

/* That attempt failed. 1 when the other way is worth a try at once, 0 when both were tried. */
bool peer_way_failed(struct peer_way *w, int uv_error);

/* TCP answered. 1 when the UNIX socket is to be tried now: it was bound meanwhile, or, once for each file, it may have
 * been bound and did not listen yet. A starting agent listens there first; without this check the link by TCP would
 * stay. */
bool peer_way_is_longer(struct peer_way *w, const struct conf_agent *self, const struct conf_agent *peer);
