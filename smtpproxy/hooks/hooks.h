/* hooks.h: the programs that judge mail, as the process knows them: how they answered so far, and whether they are to
 * be left alone. A hook is known by its name, also after a change of the configuration.
 */
#pragma once

#include <sys/queue.h>

#include "conf/smtpproxy.h"
#include "smtpproxy/counters.h"

struct worker;

#define HOOK_REST_MS 5000u /* so long it is not asked after a failure */

/* GOOD --a failure--> RESTS --5 s later, one call--> TRIED --it answers--> GOOD
 *                       ^------------------------------'   it fails
 */
enum hook_state { HOOK_GOOD, HOOK_RESTS, HOOK_TRIED };

struct hook {
	SLIST_ENTRY(hook) next;
	const struct smtpproxy_hook *conf; /* the newest; NULL: of a file that does not count */
	enum hook_state state;
	uint64_t rests_until_ms;
	uint64_t asked, refused, deferred, discarded, changed, failed; /* transactions; failed: calls */
	char name[];
};

/* Shared by all sessions. */
struct hooks {
	struct worker *worker;
	struct smtpproxy_counters *counters;
	SLIST_HEAD(, hook) all;
};

void hooks_init(struct hooks *h, struct worker *worker, struct smtpproxy_counters *counters);
/* Make places for the hooks of @conf. 0 or CSSL_E_NO_MEMORY. */
int hooks_prepare(struct hooks *h, const struct conf_smtpproxy *conf);
/* They count now; @conf lives as long as the process. Those that it does not name any more stay for sessions that began
 * before. */
void hooks_follow(struct hooks *h, const struct conf_smtpproxy *conf);
void hooks_free(struct hooks *h);

/* A name of a listener has its hook. */
struct hook *hooks_find(struct hooks *h, const char *name);

/* May it be asked now? If so, hook_answered() or hook_failed() tells how it went. */
bool hook_may_be_asked(struct hooks *h, struct hook *k);
void hook_answered(struct hook *k);
void hook_failed(struct hooks *h, struct hook *k, const char *cause);

const char *hook_state_name(enum hook_state state);
