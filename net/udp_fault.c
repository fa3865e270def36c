/* udp_fault.c: a datagram is dropped, doubled, or copied and given back later. Reordering is a short random delay:
 * later datagrams overtake it. */
#include "net/udp_inside.h"

#ifdef CSSL_TEST_POINTS
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "net/address.h"
#include "net/timer.h"

#define REORDER_MIN_MS  10u
#define REORDER_SPAN_MS 30u

struct udp_delayed {
	struct deadline due; /* first: see on_due() */
	LIST_ENTRY(udp_delayed) in;
	struct udp *udp;
	udp_delayed_fn later;
	struct sockaddr_storage address;
	size_t len;
	uint8_t data[];
};

static void on_due(struct deadline *due)
{
	struct udp_delayed *d = (struct udp_delayed *)due;

	LIST_REMOVE(d, in);
	d->later(d->udp, d->data, d->len, (struct sockaddr *)&d->address);
	free(d);
}

static void delay(struct udp *u, struct udp_delays *delays, uint64_t ms, const uint8_t *data, size_t len,
	const struct sockaddr *address, udp_delayed_fn later)
{
	struct udp_delayed *d = calloc(1, sizeof *d + len);

	if (!d)
		return; /* lost, as a network may lose it */
	d->due.fn = on_due;
	d->udp = u;
	d->later = later;
	memcpy(&d->address, address, address_len(address));
	d->len = len;
	memcpy(d->data, data, len);
	LIST_INSERT_HEAD(delays, d, in);
	deadline_set_in_full(udp_worker(u), &d->due, ms);
}

unsigned udp_fault(struct udp *u, struct udp_delays *delays, const char *point, const uint8_t *data, size_t len,
	const struct sockaddr *address, udp_delayed_fn later)
{
	uint64_t ms = 0;

	switch (fault_at(point, udp_peer_name(u, address), &ms)) {
	case FAULT_DROP: return 0;
	case FAULT_DUPLICATE: return 2;
	case FAULT_REORDER: ms = REORDER_MIN_MS + randombytes_uniform(REORDER_SPAN_MS); /* fall through */
	case FAULT_DELAY: delay(u, delays, ms, data, len, address, later); return 0;
	default: return 1;
	}
}

void udp_delays_drop(struct udp_delays *delays)
{
	struct udp_delayed *d;

	while ((d = LIST_FIRST(delays))) {
		LIST_REMOVE(d, in);
		deadline_cancel(&d->due);
		free(d);
	}
}
#endif
