/* wrong.h: values that a dead process, which can have been attacked, has left: tables of what is wrong in one value,
 * and connections that get it.
 */
#pragma once

#include "tests/unit/ragent/next_life.h"

#define WRONG_MAX 48u

/* One of a table's rows. */
struct wrong {
	const char *what;
	enum { IN_CONNECTION, IN_NOW, IN_IMAGE } in;
	size_t at, len; /* of the member that gets @value */
	uint64_t value;
	void (*write)(struct connection *dead); /* in place of that */
};

#define WRONG(place, type, member, number)                                                                             \
	{                                                                                                              \
		.what = #member " " #number, .in = place, .at = offsetof(type, member),                                \
		.len = sizeof((type *)NULL)->member, .value = (uint64_t)(number)                                       \
	}
#define MEMBER(member, number) WRONG(IN_CONNECTION, struct connection, member, number)
#define NOW(member, number)    WRONG(IN_NOW, struct connection_now, member, number)
#define IMAGE(member, number)  WRONG(IN_IMAGE, struct trail_image, member, number)
#define WRITTEN(function)                                                                                              \
	{                                                                                                              \
		.what = #function, .write = function                                                                   \
	}

/* Each makes the newest connection. An owner has a request, has left the note "note", and has begun its answer. */
void make_owned(struct live_connection *l);
void make_handshake(struct live_connection *l);
void make_hello(struct live_connection *l);    /* a part of it came */
void make_resting(struct live_connection *l);  /* compact */
void make_adopting(struct live_connection *l); /* the adopter was asked */
/* The client does not read; its agent has forgotten the stream. */
void make_lingering(struct live_connection *l);

/* Connections of one process, one for each row, and one owned beside them. It dies, each is wrong as its row says, and
 * the next process begins. */
extern struct live_connection beside, with[WRONG_MAX];
void die_with(void (*make)(struct live_connection *l), const struct wrong *rows, size_t count);
/* Then the one beside them goes on. */
void goes_on_beside(void);
/* All of this; the other ones are reset, and counted as not restored. */
void each_is_reset(void (*make)(struct live_connection *l), const struct wrong *rows, size_t count);
