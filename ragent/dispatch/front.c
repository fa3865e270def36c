/* front.c: a listener's settings and policies. */
#include "ragent/dispatch/front.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

int front_init(struct front *f, size_t index, const struct conf *all)
{
	const struct conf_listener *conf = &all->listeners[index];

	f->index = index;
	f->beyond = conf_is_control(all, conf) ? CONF_CONTROL_PLACES : 0;
	f->conf = conf;
	f->handshake = policy_create(conf->handshake, conf->affinity_bound);
	f->resumption = policy_create(conf->resumption, conf->affinity_bound);
	f->preamble = policy_create(conf->handshake, conf->affinity_bound);
	atomic_init(&f->connections, 0);
	f->bound_count = conf->listen.count;
	f->bound = calloc(f->bound_count ? f->bound_count : 1, sizeof *f->bound);
	if (!f->handshake || !f->resumption || !f->preamble || !f->bound)
		return CSSL_E_NO_MEMORY;
	if (f->bound_count)
		memcpy(f->bound, conf->listen.at, f->bound_count * sizeof *f->bound);
	return 0;
}

void front_clear(struct front *f)
{
	policy_destroy(f->handshake);
	policy_destroy(f->resumption);
	policy_destroy(f->preamble);
	free(f->bound);
	f->handshake = f->resumption = f->preamble = NULL;
	f->bound = NULL;
	f->bound_count = 0;
}

int front_moves(const struct front *f)
{
	return f->conf->migration == CONF_MIGRATION_ON;
}

int front_hands_off(const struct front *f)
{
	return f->conf->mode == CONF_SF && front_moves(f);
}
