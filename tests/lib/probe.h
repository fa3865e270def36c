/* probe.h: tlsprobe's connection: a socket, an OpenSSL client on memory BIOs behind it, and a forge for records that
 * OpenSSL would not write.
 *
 * Everything sent goes through one queue (so that bytes of both stay in order) at the pace that is set; everything
 * received is read at once where there is room. Verbs take a deadline and return when done or when it is reached. */
#pragma once

#include "tests/lib/memory_client.h"
#include "tests/lib/record_forge.h"

struct byte_queue {
	uint8_t *data;
	size_t start, end, cap;
};
void byte_queue_put(struct byte_queue *q, const void *data, size_t len);
void byte_queue_take(struct byte_queue *q, size_t len);
static inline size_t byte_queue_len(const struct byte_queue *q)
{
	return q->end - q->start;
}

/* The first bytes of the queue; never NULL. */
static inline uint8_t *byte_queue_front(const struct byte_queue *q)
{
	static uint8_t nothing[1];

	return q->data ? q->data + q->start : nothing;
}

struct probe {
	int fd; /* -1: none */
	enum { TCP_NONE, TCP_OPEN, TCP_FIN, TCP_RST } tcp;
	struct memory_client *tls; /* NULL: plaintext */
	enum { PHASE_HANDSHAKE, PHASE_DATA } phase;
	struct record_forge *forge; /* NULL: OpenSSL writes */
	struct byte_queue out;      /* to be sent */
	struct byte_queue in;       /* plaintext, or raw bytes before the handshake */
	size_t in_max;              /* stop reading the socket above this */
	struct {
		size_t bytes; /* 0: no limit */
		uint64_t every_ms, next_ms;
	} pace;
	uint64_t wire_in, wire_out;
	unsigned records_in; /* of TLS, whole ones */
	struct byte_queue partial;
};

uint64_t probe_now_ms(void);

void probe_start(struct probe *p);
void probe_reset(struct probe *p); /* closes, forgets */

/* "127.0.0.1:443", "[::1]:443". 0 or -errno. */
int probe_connect(struct probe *p, const char *address, const char *source, uint64_t deadline_ms);

/* Move bytes both ways once, waiting until something can be done or @deadline_ms. 1: something happened, 0: the
 * deadline, -1: TCP has ended. */
int probe_turn(struct probe *p, uint64_t deadline_ms);
/* Until all that was queued was sent. 0 or -1. */
int probe_flush(struct probe *p, uint64_t deadline_ms);

/* Say application data: by OpenSSL, or by the forge once it was used; plaintext before the handshake. Queued only. */
void probe_say(struct probe *p, const void *data, size_t len);
void probe_raw(struct probe *p, const void *data, size_t len);
void probe_update_keys(struct probe *p, int request);
void probe_close_notify(struct probe *p);
/* From now on the forge writes. 0 or negative. */
int probe_forge(struct probe *p);
int probe_say_forged(struct probe *p, const struct forged_record *r);
/* Put the bytes that OpenSSL wrote into the queue. */
void probe_collect(struct probe *p);

const char *probe_tcp_name(const struct probe *p);
