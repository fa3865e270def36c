/* control_access.h: decides whether a client may make a request. It is a part of its own because it is the only place
 * that grants anything, and can be tested without a socket: a claim comes in, a verdict goes out. The control socket
 * (control.c) asks it once for each request, before the body comes, and for the client's name in the log.
 *
 * On the UNIX socket the file's permission has decided already. Over the network a token or a client certificate
 * decides (control_tokens.h): role read for GET, operate for the rest. A certificate alone changes nothing for a page
 * of another site. Who guesses tokens has to wait (control_guard.h).
 */
#pragma once

#include "ragent/control/access/control_guard.h"
#include "ragent/control/access/control_tokens.h"

/* Embedded; zero: no token file, so nobody comes in over the network. Its owner reads @names. */
struct control_access {
	struct control_tokens *tokens; /* owned */
	enum control_names names;      /* whether a PROXY header may name a certificate */
	struct control_guard guard;
};

/* What a client asks for, and what it shows. Strings are the caller's; a header is NULL if it was not sent. */
struct access_claim {
	const struct sockaddr *source; /* AF_UNIX: a client of the UNIX socket */
	const char *common_name;       /* of its verified certificate; "": none */
	const char *method, *path;
	enum control_role need; /* of the route; NONE: it is for all */
	const char *authorization, *host, *origin, *fetch_site, *content_type;
};

struct access_refusal {
	unsigned status;         /* 401, 403, or 429 to a source that failed too often */
	const char *header_name; /* one more header of the answer; NULL: none */
	char header_value[32];
	char reason[256]; /* for the client */
};

/* PROVEN: the client has shown who it is; OPEN: nobody asked it to. */
enum access_verdict { ACCESS_REFUSED, ACCESS_OPEN, ACCESS_PROVEN };

/* REFUSED: @out says why, and the log has the source, never the offered token. */
enum access_verdict access_judge(
	struct control_access *a, const struct access_claim *c, uint64_t now_ms, struct access_refusal *out);

/* The name of the client, for the log; valid until the tokens are read again. */
const char *access_name(const struct control_access *a, const struct access_claim *c);

/* Read the tokens of that file, at the start or again. 0, or negative with @error: then the old ones stay. */
int access_load(struct control_access *a, const char *path, char *error, size_t error_cap);
