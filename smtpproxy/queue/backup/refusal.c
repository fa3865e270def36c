/* refusal.c: the words for the log of what a server answers when it does not let the gateway in. */
#include "smtpproxy/queue/backup/refusal.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "net/report/log.h"

/* Instead of an answer to AUTH that no row has: "unknown command" repeats the password. */
#define NOT_SHOWN "not shown, it may have the password"

/* By the first words of its answer. The last row has all others. */
static const struct {
	const char *answer, *cause, *remedy;
} refusals[] = {
	{ "NOAUTH", "it wants a user or a password", "set user and password_file of this server, and restart" },
	{ "WRONGPASS", "it knows no such user, or another password",
		"compare user and password_file with its ACL LIST; restart if they change" },
	{ "NOPERM", "its user may not do that", "give its user the rights that doc/mail.md lists" },
	{ "ERR AUTH <password> called without", "it has no password",
		"give it one, or take password_file out and restart" },
	{ NOT_SHOWN, "it does not take AUTH", "look at its answer to AUTH with redis-cli" },
	{ "ERR max number of clients", "it has as many clients as it takes", "raise its maxclients" },
	{ "LOADING", "it reads its file", "wait" },
	{ "TLS ", "no TLS with it comes about", "compare ca, name, certificate and key with its own; restart" },
	{ "maxmemory_policy:", "it may evict messages", "set its maxmemory-policy to noeviction" },
	{ "role:slave", "it is a replica", "name a primary, each on a host of its own" },
	{ "READONLY", "it is a replica", "name a primary, each on a host of its own" },
	{ "cluster_enabled:", "it is a part of a Redis Cluster", "name a server that is alone" },
	{ "MISCONF", "it cannot write its snapshot, and takes no changes", "set its save to an empty text" },
	{ REFUSAL_OTHER_KEY, "its marker is of a gateway with another key, whose mail this one cannot read",
		"give both the same key file (queue.keys)" },
	{ "", "it cannot be used", "see the answer" },
};

static size_t refusal_row(const char *answer)
{
	size_t n = 0;

	while (strncmp(answer, refusals[n].answer, strlen(refusals[n].answer)))
		n++;
	return n;
}

/* Told again only if it says something else, or stops the gateway elsewhere: it refuses each attempt, every two
 * seconds. */
void refusal_told(struct refusal *r, enum refusal_at at, const char *answer, enum refusal_text text, int64_t now_ms)
{
	const size_t n = refusal_row(answer);
	const char *shown = text == REFUSAL_TEXT_SECRET && !refusals[n].answer[0] ? NOT_SHOWN : answer;
	const size_t row = shown == answer ? n : refusal_row(shown);
	const bool again = r->at == at && !strncmp(r->answer, shown, sizeof r->answer - 1);

	r->at_ms = now_ms;
	r->at = at;
	snprintf(r->answer, sizeof r->answer, "%s", shown);
	log_event(again ? LOG_DEBUG : LOG_WARNING, NULL, "backup refuses",
		"backup=%u answer=%s cause=\"%s\" remedy=\"%s\"", r->backup, shown, refusals[row].cause,
		refusals[row].remedy);
}

void refusal_lifted(struct refusal *r, enum refusal_at at)
{
	if (r->at > at)
		return;
	r->at = REFUSAL_NONE;
	r->at_ms = 0;
}
