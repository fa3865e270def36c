/* hooks.c: a hook that failed is left alone for some seconds, so that its time limit holds up no transaction but the
 * first ones. */
#include "smtpproxy/hooks/hooks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "net/loop/worker.h"
#include "net/report/log.h"
#include "proto/error.h"

void hooks_init(struct hooks *h, struct worker *worker, struct smtpproxy_counters *counters)
{
	*h = (struct hooks){ .worker = worker, .counters = counters };
	SLIST_INIT(&h->all);
}

static struct hook *hooks_known(struct hooks *h, const char *name)
{
	struct hook *k;

	SLIST_FOREACH(k, &h->all, next)
	if (!strcmp(k->name, name))
		return k;
	return NULL;
}

struct hook *hooks_find(struct hooks *h, const char *name)
{
	struct hook *k = hooks_known(h, name);

	assert(k);
	return k;
}

static int hooks_add(struct hooks *h, const char *name)
{
	struct hook *k = calloc(1, sizeof *k + strlen(name) + 1);

	if (!k)
		return CSSL_E_NO_MEMORY;
	strcpy(k->name, name);
	SLIST_INSERT_HEAD(&h->all, k, next);
	return 0;
}

int hooks_prepare(struct hooks *h, const struct conf_smtpproxy *conf)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < conf->hook_count; i++)
		r = hooks_known(h, conf->hooks[i].name) ? 0 : hooks_add(h, conf->hooks[i].name);
	return r;
}

void hooks_follow(struct hooks *h, const struct conf_smtpproxy *conf)
{
	for (size_t i = 0; i < conf->hook_count; i++)
		hooks_find(h, conf->hooks[i].name)->conf = &conf->hooks[i];
}

void hooks_free(struct hooks *h)
{
	struct hook *k;

	while ((k = SLIST_FIRST(&h->all))) {
		SLIST_REMOVE_HEAD(&h->all, next);
		free(k);
	}
}

bool hook_may_be_asked(struct hooks *h, struct hook *k)
{
	if (k->state == HOOK_GOOD)
		return true;
	if (k->state == HOOK_TRIED || worker_now_ms(h->worker) < k->rests_until_ms)
		return false;
	k->state = HOOK_TRIED;
	return true;
}

void hook_answered(struct hook *k)
{
	if (k->state != HOOK_GOOD)
		log_event(LOG_INFO, NULL, "hook answers again", "hook=%s", k->name);
	k->state = HOOK_GOOD;
}

void hook_failed(struct hooks *h, struct hook *k, const char *cause)
{
	k->failed++;
	h->counters->hooks_failed++;
	k->state = HOOK_RESTS;
	k->rests_until_ms = worker_now_ms(h->worker) + HOOK_REST_MS;
	log_event(LOG_WARNING, NULL, "hook failed", "hook=%s cause=\"%s\"", k->name, cause);
}

const char *hook_state_name(enum hook_state state)
{
	static const char *const names[] = {
		[HOOK_GOOD] = "good",
		[HOOK_RESTS] = "rests",
		[HOOK_TRIED] = "is tried",
	};

	return names[state];
}
