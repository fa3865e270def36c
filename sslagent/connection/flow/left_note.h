/* left_note.h: the notes that an owner leaves with RAgent, sealed, for the case of its loss. It is a part by itself,
 * because the lost owner writes what its successor reads.
 */
#ifndef CSSL_SSLAGENT_CONNECTION_LEFT_NOTE_H
#define CSSL_SSLAGENT_CONNECTION_LEFT_NOTE_H

#include "proto/link.pb-c.h"
#include "sslagent/service/service.h"

struct connection;

/* An answer begins or goes on with [data, data + len), and its first @together bytes are the next frame. If it can
 * continue elsewhere, the carrier gets the note for that (service.h). */
void left_note_leave(struct connection *c, const uint8_t *data, size_t len, size_t together);
/* Leave the note of a service that stands between, if it differs from RAgent's. */
void left_note_word(struct connection *c);
/* Opens the note that RAgent kept. Its bytes; CSSL_E_NOT_FOUND: there is none; or another error. */
ptrdiff_t left_note_open(const struct connection *c, const Cssl__LinkSslId *id, uint8_t out[static SERVICE_NOTE_MAX]);

#endif
