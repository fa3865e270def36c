/* carrier_home.c: what a worker's links and listeners do together. */
#include "sslagent/carrier/carrier_home.h"

#include "net/limits/blocked.h"
#include "sslagent/carrier/link.h"

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

void carrier_home_leave(struct carrier_home *home)
{
	direct_stop_accepting(home);
	for (struct carrier_link *l = home->links; l; l = l->next)
		framed_send(&l->framed, 0, FRAME_LEAVING, 0, NULL, 0);
}

void carrier_home_close(struct carrier_home *home)
{
	direct_close_all(home);
	for (struct carrier_link *l = home->links; l; l = l->next)
		carrier_link_close(l);
	while (home->parked)
		carrier_link_close(home->parked);
}

void carrier_home_release(struct carrier_home *home)
{
	direct_release_all(home);
	preamble_home_release(&home->preambles);
	slabs_clear(&home->stream_blocks);
}

uint64_t carrier_home_add_link(struct carrier_home *home, struct carrier_link *l)
{
	l->next = home->links;
	home->links = l;
	return ++home->links_begun;
}

static void carrier_home_remove_from(struct carrier_link **at, struct carrier_link *l)
{
	while (*at && *at != l)
		at = &(*at)->next;
	if (*at)
		*at = l->next;
}

void carrier_home_remove_link(struct carrier_home *home, struct carrier_link *l)
{
	carrier_home_remove_from(&home->links, l);
	carrier_home_remove_from(&home->parked, l);
}

struct carrier_link *carrier_home_find_link(struct carrier_home *home, uint64_t number)
{
	for (struct carrier_link *l = home->links; l; l = l->next) {
		if (l->number == number)
			return l;
	}
	return NULL;
}

uint32_t carrier_home_links(const struct carrier_home *home)
{
	uint32_t count = 0;

	for (const struct carrier_link *l = home->links; l; l = l->next)
		count++;
	return count;
}

uint64_t carrier_home_queued(const struct carrier_home *home)
{
	uint64_t queued = 0;

	for (const struct carrier_link *l = home->links; l; l = l->next)
		queued += framed_pending(&l->framed);
	return queued;
}

bool carrier_home_blocks(const struct carrier_home *home, const struct client_address *client)
{
	const struct connection_home *c = home->connections;
	bool found = false;

	for (size_t i = 0; !found && i < c->conf->ragent_count; i++)
		found = blocked_has(&home->blocked[i], client, worker_now_ms(c->worker));
	return found;
}
