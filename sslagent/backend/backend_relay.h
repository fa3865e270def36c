/* backend_relay.h: what a backend connection has where its user is a client of mail: smtp/relay.h between the two. The
 * user's bytes wait here until the server's replies allow them to go on; what is for the user waits until it reads.
 * For backend.c only.
 */
#ifndef CSSL_SSLAGENT_BACKEND_RELAY_H
#define CSSL_SSLAGENT_BACKEND_RELAY_H

#include "net/stream.h"
#include "sslagent/backend/backend.h"

struct backend_relay;

/* @wake comes at the end of a turn in which something changed for the user. NULL: out of memory. */
struct backend_relay *backend_relay_create(struct worker *w, struct stream *out, const struct backend_mail *mail,
	void (*wake)(struct backend *b), struct backend *b);
void backend_relay_destroy(struct backend_relay *r); /* NULL is legal */

/* The user's bytes. 0 or CSSL_E_NO_MEMORY. */
int backend_relay_write(struct backend_relay *r, const uint8_t *data, size_t len);
/* Behind all of them, the user ends. */
void backend_relay_shutdown(struct backend_relay *r);
/* The server's bytes; it ended. */
void backend_relay_read(struct backend_relay *r, const uint8_t *data, size_t len);
void backend_relay_ended(struct backend_relay *r);

/* Wake the user at the end of this turn. */
void backend_relay_look(struct backend_relay *r);
/* Of the user's bytes, those that went on since it was asked last. */
size_t backend_relay_taken(struct backend_relay *r);
/* What is for the user; 0: nothing. */
size_t backend_relay_answer(const struct backend_relay *r, uint8_t **data);
void backend_relay_answer_used(struct backend_relay *r, size_t len);
/* Nothing more comes for the user: STREAM_EOF, or STREAM_RESET where it has got a part of a reply; -1: more may come.
 */
int backend_relay_over(const struct backend_relay *r);

#endif
