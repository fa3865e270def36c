/* backup.c: the states of a backup. */
#include "smtpproxy/queue/backup/backup_calls.h"

#include <assert.h>

#include "net/report/log.h"

#define TO(state) (1u << BACKUP_##state)

static const struct {
	const char *name;
	unsigned may_move_to;
} states[] = {
	[BACKUP_AWAY] = { "away", TO(AWAY) | TO(SEEN) | TO(REFUSED) },
	[BACKUP_SEEN] = { "seen", TO(AWAY) | TO(SEEN) | TO(CLAIMING) | TO(REFUSED) },
	[BACKUP_CLAIMING] = { "claiming", TO(AWAY) | TO(CLAIMED) | TO(REFUSED) },
	[BACKUP_CLAIMED] = { "claimed", TO(AWAY) | TO(COMPARING) | TO(MARKING) | TO(REFUSED) },
	[BACKUP_COMPARING] = { "comparing", TO(AWAY) | TO(FILLING) | TO(REFUSED) },
	[BACKUP_FILLING] = { "filling", TO(AWAY) | TO(MARKING) | TO(REFUSED) },
	[BACKUP_MARKING] = { "marking", TO(AWAY) | TO(IN_SYNC) | TO(REFUSED) },
	[BACKUP_IN_SYNC] = { "in sync", TO(AWAY) | TO(REFUSED) },
	[BACKUP_REFUSED] = { "refused", TO(AWAY) | TO(SEEN) | TO(REFUSED) },
};

const char *backup_state_name(enum backup_state s)
{
	return states[s].name;
}

void backup_move(struct backup *b, enum backup_state to)
{
	assert(states[b->state].may_move_to & 1u << to);
	if (b->state != to)
		log_event(LOG_DEBUG, NULL, "backup", "backup=%u was=%s is=%s", b->index, states[b->state].name,
			states[to].name);
	b->state = to;
}

/* The state of a backup after it is lost. Its owner is told if the state was more than SEEN. */
void backup_fall(struct backup *b)
{
	enum backup_state was = b->state;

	if (was == BACKUP_REFUSED || was == BACKUP_AWAY)
		return;
	backup_move(b, BACKUP_AWAY);
	b->sight.state = SIGHT_AWAY;
	b->fill_next = NULL;
	b->not_used = NULL;
	b->renewed_ms = 0;
	if (was > BACKUP_SEEN)
		b->shared->ops->on_given_up(b, was);
	change_clear(&b->line);
}

const char backup_begins_again[] = "the recovery begins again";

void backup_give_up(struct backup *b, const char *why)
{
	if (b->state > BACKUP_SEEN && b->state != BACKUP_REFUSED) {
		/* the gateway begins again and again; the cause is told */
		const bool again = why == backup_begins_again || (backup_refuses(b) && !backup_counts(b));
		log_event(again ? LOG_DEBUG : LOG_WARNING, NULL, "backup given up", "backup=%u state=%s cause=%s",
			b->index, states[b->state].name, why);
		b->stats.given_up++;
	}
	for (unsigned i = 0; i < b->conf->path_count; i++)
		redis_link_close(&b->paths[i].link, why);
	backup_fall(b);
}
