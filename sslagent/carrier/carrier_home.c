/* carrier_home.c: a worker's list of links. */
#include "sslagent/carrier/carrier_home.h"

#include "net/blocked.h"
#include "sslagent/carrier/link.h"
#include "sslagent/carrier/link_inside.h"

int carrier_home_open(struct carrier_home *home)
{
	slabs_init(&home->stream_blocks, sizeof(struct link_stream));
	for (unsigned reason = 0; reason < END_REASON_COUNT; reason++)
		home->ended_lines[reason].to = LOG_ACCESS;
	home->preambles.worker = home->connections->worker;
	home->preambles.conf = home->connections->conf;
	home->preambles.backends = &home->connections->backend_home;
	return preamble_home_open(&home->preambles);
}

void carrier_home_release(struct carrier_home *home)
{
	preamble_home_release(&home->preambles);
	slabs_clear(&home->stream_blocks);
}

uint64_t carrier_home_add_link(struct carrier_home *home, struct link *l)
{
	*link_next(l) = home->links;
	home->links = l;
	return ++home->links_begun;
}

static void remove_from(struct link **at, struct link *l)
{
	while (*at && *at != l)
		at = link_next(*at);
	if (*at)
		*at = *link_next(l);
}

void carrier_home_remove_link(struct carrier_home *home, struct link *l)
{
	remove_from(&home->links, l);
	remove_from(&home->parked, l);
}

struct link *carrier_home_find_link(struct carrier_home *home, uint64_t number)
{
	for (struct link *l = home->links; l; l = *link_next(l)) {
		if (link_number(l) == number)
			return l;
	}
	return NULL;
}

const char *link_ragent(const struct link *l, uint64_t *boot_id)
{
	*boot_id = l->peer_boot_id;
	return l->peer;
}

int carrier_home_blocks(const struct carrier_home *home, const struct client_address *client)
{
	const struct connection_home *c = home->connections;
	int found = 0;

	for (size_t i = 0; !found && i < c->conf->ragent_count; i++)
		found = blocked_has(&home->blocked[i], client, worker_now_ms(c->worker));
	return found;
}
