/* h2_streams.h: a set of streams of an HTTP/2 connection (RFC 9113 5.1): of those that the client began, and of those
 * that the backend promised. Their number is bounded, and so is their memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define H2_STREAMS_CAP 2048u /* more than the HEADERS of one TLS record; so many take 8 KiB */
#define H2_STREAMS_FEW 8u    /* so many need no memory outside the struct */

/* Begins as all zeros. Must not move in memory. */
struct h2_streams {
	uint32_t *many;               /* NULL: the streams are in @few */
	uint32_t few[H2_STREAMS_FEW]; /* ascending */
	uint16_t count, cap;
};

/* Which half of a stream ends. */
enum h2_half { H2_CLIENT_HALF = 1, H2_BACKEND_HALF = 2 };

/* Open stream @id: both halves if its number is odd, else only the backend's half. 0, also if it was open before;
 * CSSL_E_FULL; CSSL_E_NO_MEMORY. */
int h2_streams_open(struct h2_streams *s, uint32_t id);
/* Ends one half. When both halves have ended, the stream is closed. Does nothing if the stream is not open. */
void h2_streams_end(struct h2_streams *s, uint32_t id, enum h2_half half);
void h2_streams_close(struct h2_streams *s, uint32_t id);
/* Only streams that the client began. */
void h2_streams_close_above(struct h2_streams *s, uint32_t id);
void h2_streams_clear(struct h2_streams *s);

/* Is that stream open, or one half of it? */
bool h2_streams_has(const struct h2_streams *s, uint32_t id);
/* The identifier of the n-th stream. */
uint32_t h2_streams_id(const struct h2_streams *s, unsigned n);

/* The streams as numbers, for a move: the n-th, and back. They have to come in the same order. */
uint32_t h2_streams_get(const struct h2_streams *s, unsigned n);
int h2_streams_put(struct h2_streams *s, uint32_t number); /* 0, CSSL_E_RANGE, CSSL_E_FULL, CSSL_E_NO_MEMORY */
