/* session_entry.h: the way into a session, to its banner. It is a part of its own because until its destination is
 * known a sender costs no receiver anything. session.c calls it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct session;

/* A connection came. 0: there is a place for it. */
int session_entry_admit(struct session *s);
/* It has its place and its stream: the banner, a wait for its header, or the end. */
void session_entry_begin(struct session *s);
/* HEADER: bytes of a PROXY header. Returns the bytes used; 0: it is not whole yet. */
size_t session_entry_header(struct session *s, const uint8_t *in, size_t len);
