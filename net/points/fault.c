/* fault.c: the table of fault points, and the rules of a test. A thread watches the rule file and publishes a new
 * set of rules by one pointer. Old sets stay until fault_stop(), because other threads may still read them.
 */
#include "net/points/fault.h"

#ifdef CSSL_TEST_POINTS
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY_NS  20000000
#define NAME_LEN_MAX   64u
#define RULE_FILE_MAX  65536u
#define RULES_MAX      256u
#define CHANCE_CERTAIN UINT32_C(1000000)

/* All points. Streams use NAME.read, NAME.write, NAME.part and NAME.bell (stream_set_fault); the other points are in
 * the code by their full name. */
static const char *const points[] = {
	"clock",                    /* worker_wall_s(), worker_wall_ms() */
	"own_provider.check",       /* at start; failing, our HMAC gives other results than that of OpenSSL */
	"udp.send",                 /* every datagram */
	"udp.receive", "link.read", /* RAgent - agent */
	"link.write", "peer.read",  /* agent - agent */
	"peer.write", "peer.socket", "client.read", "client.write", "backend.read", "backend.write", "backend.connect",
	"link.part", "link.bell", "peer.part", "peer.bell", "client.part", "client.bell",
	"handshake.hello",           /* the client's first record came */
	"handshake.before_finished", /* the client has not seen the end of the handshake */
	"handshake.before_export",   /* complete, the state is still OpenSSL's */
	"handshake.exported",        /* KEPT or HANDED_OFF is written and has not left */
	"request.given",             /* to the backend, part of a request or all */
	"answer.sealed",             /* part of an answer or all, and it has not left */
	"rest.asked",                /* MOVE that lets a connection rest arrived */
	"move.asked",                /* MOVE towards another agent arrived */
	"move.settling",             /* a connection that has to move waits for its checkpoint */
	"move.passed",               /* the backend socket was passed to the successor */
	"move.frozen",               /* frozen for a move, not yet told to RAgent */
	"move.said",                 /* HANDED_OFF is written and has not left; failing, a record follows it */
	"adopt.before",              /* SSL_ID arrived */
	"live.find",   /* before the search for a session that the broadcast brought; failing, none is found */
	"copy.open",   /* opening the sealed copy; failing, it does not open */
	"adopt.after", /* owner, not yet told to RAgent */
	"connection.remembered", /* an ownership is judged by what is known; failing, this is forgotten early */
	"keyupdate.received",    /* the client's, before a copy of the new keys is made */
	"keyupdate.due",         /* an own KeyUpdate is due; failing, it has to wait */
	"keyupdate.sealed",      /* an own KeyUpdate is sealed, not yet committed */
	"client.accepted",       /* RAgent has accepted a client, and has done nothing with it */
	"records.received",      /* RAgent has records and commits nothing; failing, their link is lost */
	"records.read",          /* bytes of a client are in the worker's read buffer, and in no log */
	"records.came", /* bytes of a client are read, and RAgent has done nothing with them; failing, it crashes */
	"records.committed", /* RAgent counts records as the client's, and has not written them */
	"note.set",          /* RAgent has a note of an owner, and the slot does not say so yet */
	"clear.said",        /* RAgent has words in clear for its client, and has not written them */
	"starttls.answered", /* RAgent has the answer to STARTTLS, and has not compared what its client sent */
	"slot.saving",       /* what the next RAgent may know of a connection is half written */
	"slot.saved",        /* the slot of a connection is whole */
	"slot.telling",      /* an agent will hear of a change that the slot of its connection says */
	"slot.kept",         /* client records stand behind the slot */
	"slot.next",         /* the next RAgent has restored some connections; dropping, it restores no more now */
	"slot.restoring", /* the next RAgent makes a connection of the slot; failing, it crashes; dropping, it cannot */
	"copy.received",  /* a fresh sealed copy came to RAgent; failing, it keeps the old one */
	"epoch.raise",    /* RAgent begins another ownership; failing, its epoch is that of the last */
	"handover.give",  /* a RAgent that is being replaced: before each message of a worker */
	"handover.commit",    /* the same RAgent: before the worker becomes the other process's */
	"handover.offered",   /* a RAgent that replaces another: it knows all connections and has taken none */
	"handover.waits",     /* the new RAgent: a message of a worker, or COMMIT, waits to be read */
	"handover.came",      /* ... and it knows which it is */
	"handover.take",      /* the same RAgent: before it looks at each message of a worker */
	"handover.committed", /* the new RAgent has the worker, and has done nothing with it */
	"handover.taken",     /* the new RAgent has all workers, and the old one does not know yet */
	"handover.done",      /* ... and the old one may know it */
	"ssl_id.written",     /* SSL_ID is written and has not left */
	"ssl_id.listener",    /* SSL_ID is written; failing, RAgent names another listener in it */
	"ssl_id.copy",        /* the same; failing, RAgent shows no copy */
	"ssl_id.cause",       /* the same; failing, RAgent says falsely that the owner gave the connection up (wake) */
	"ssl_id.sequence",    /* the same; failing, RAgent asks for a record that the client has got already */
	"live.reuse",         /* a record is sealed; failing, its nonce is used again, and the audit must see that */
	"events.write", /* smtpproxy's thread is about to write a line of the event log; delaying, the disk is slow */
	"fallback.minutes", /* smtpproxy: a handshake is lost again; failing, this is minutes behind the first */
};

/* Actions that fault_at() carries out itself, in addition to enum fault_action. */
enum { FAULT_STOP = FAULT_FAIL + 1, FAULT_KILL };

static const struct action_row {
	const char *name;
	int action;
	enum { ARG_CHANCE, ARG_NUMBER, ARG_NONE } arg;
} actions[] = {
	{ "drop", FAULT_DROP, ARG_CHANCE },
	{ "duplicate", FAULT_DUPLICATE, ARG_CHANCE },
	{ "reorder", FAULT_REORDER, ARG_CHANCE },
	{ "delay", FAULT_DELAY, ARG_NUMBER },
	{ "offset", FAULT_OFFSET, ARG_NUMBER },
	{ "cut", FAULT_CUT, ARG_NONE },
	{ "fail", FAULT_FAIL, ARG_NONE },
	{ "stop", FAULT_STOP, ARG_NONE },
	{ "kill", FAULT_KILL, ARG_NONE },
};

struct rule {
	const char *point;
	int action;
	uint32_t chance; /* of CHANCE_CERTAIN */
	int64_t number;
	char on[NAME_LEN_MAX], peer[NAME_LEN_MAX]; /* "": any */
	uint64_t after, times;
	_Atomic uint64_t hits;
};

struct rules {
	struct rules *older;
	unsigned count;
	struct rule rows[RULES_MAX];
};

#define CUT_POINT "link.write"

static struct rules *_Atomic rules;
static _Thread_local int link_is_cut; /* the next write of this thread to a link is its last */
static char node_name[NAME_LEN_MAX];
static const char *path;
static struct stat seen;

static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	enum { WATCHER_OFF, WATCHER_ON, WATCHER_STOPPING } state;
} watcher = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

/* Asking */

static const char *known_point(const char *word)
{
	for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
		if (strcmp(points[i], word) == 0)
			return points[i];
	return NULL;
}

static bool rule_matches(const struct rule *r, const char *point, const char *peer)
{
	return strcmp(r->point, point) == 0 && (!r->on[0] || strcmp(r->on, node_name) == 0) &&
	       (!r->peer[0] || (peer && strcmp(r->peer, peer) == 0));
}

static bool rule_hits(struct rule *r)
{
	if (r->chance < CHANCE_CERTAIN && randombytes_uniform(CHANCE_CERTAIN) >= r->chance)
		return false;
	uint64_t hit = atomic_fetch_add(&r->hits, 1);
	return hit >= r->after && hit - r->after < r->times;
}

/* Is it a point of a stream? A stream cuts itself. */
static bool is_way(const char *point)
{
	const char *end = strrchr(point, '.');

	return end && (strcmp(end, ".read") == 0 || strcmp(end, ".write") == 0);
}

enum fault_action fault_at(const char *point, const char *peer, uint64_t *arg)
{
	struct rules *set = atomic_load_explicit(&rules, memory_order_acquire);

	assert(!set || known_point(point)); /* else no rule could ever name it */
	if (link_is_cut && strcmp(point, CUT_POINT) == 0) {
		link_is_cut = 0;
		return FAULT_CUT;
	}
	for (unsigned i = 0; set && i < set->count; i++) {
		struct rule *r = &set->rows[i];
		if (!rule_matches(r, point, peer) || !rule_hits(r))
			continue;
		if (arg)
			*arg = (uint64_t)r->number;
		/* sent to this thread: if it were sent to the process, another thread might take it while this one
		 * goes on */
		if (r->action == FAULT_STOP || r->action == FAULT_KILL)
			raise(r->action == FAULT_STOP ? SIGSTOP : SIGKILL);
		if (r->action == FAULT_CUT && !is_way(point))
			link_is_cut = 1;
		return r->action > FAULT_FAIL ? FAULT_NONE : (enum fault_action)r->action;
	}
	return FAULT_NONE;
}

int fault_active(void)
{
	return atomic_load_explicit(&rules, memory_order_relaxed) != NULL;
}

const char *fault_node(void)
{
	return node_name;
}

/* Parsing */

static void bad_rule(unsigned line, const char *what, const char *word)
{
	fprintf(stderr, "%s:%u: fault rule: %s: '%s'\n", path, line, what, word ? word : "");
	_exit(EXIT_FAILURE);
}

static const struct action_row *known_action(const char *word)
{
	for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
		if (strcmp(actions[i].name, word) == 0)
			return &actions[i];
	return NULL;
}

static char *next_word(char **rest)
{
	return strtok_r(NULL, " \t", rest);
}

/* The next word: the argument of the action, if it has one. */
static char *parse_argument(struct rule *r, const struct action_row *a, char *word, char **rest, unsigned line)
{
	char *end = word;
	double chance = 1;

	if (a->arg == ARG_NONE)
		return word;
	if (a->arg == ARG_NUMBER) {
		r->number = word ? strtoll(word, &end, 10) : 0;
		if (!word || *end || end == word)
			bad_rule(line, "expected a number", word);
		return next_word(rest);
	}
	if (!word)
		return word;
	chance = strtod(word, &end);
	if (*end || end == word) /* the chance was left out: this word begins the options */
		return word;
	if (!(chance >= 0 && chance <= 1))
		bad_rule(line, "expected a probability", word);
	r->chance = (uint32_t)(chance * CHANCE_CERTAIN);
	return next_word(rest);
}

static void parse_options(struct rule *r, char *word, char **rest, unsigned line)
{
	for (; word; word = next_word(rest)) {
		char *value = next_word(rest);
		if (!value)
			bad_rule(line, "a value is missing behind", word);
		else if (strcmp(word, "on") == 0)
			snprintf(r->on, sizeof r->on, "%s", value);
		else if (strcmp(word, "peer") == 0)
			snprintf(r->peer, sizeof r->peer, "%s", value);
		else if (strcmp(word, "after") == 0)
			r->after = strtoull(value, NULL, 10);
		else if (strcmp(word, "times") == 0)
			r->times = strtoull(value, NULL, 10);
		else
			bad_rule(line, "unknown word", word);
	}
}

static void parse_line(struct rules *set, char *text, unsigned line)
{
	char *rest = NULL;
	char *comment = strchr(text, '#');
	if (comment)
		*comment = '\0';
	char *word = strtok_r(text, " \t", &rest);
	if (!word)
		return;
	if (set->count == RULES_MAX)
		bad_rule(line, "too many rules", word);

	struct rule *r = &set->rows[set->count++];
	*r = (struct rule){ .point = known_point(word), .chance = CHANCE_CERTAIN, .times = UINT64_MAX };
	if (!r->point)
		bad_rule(line, "unknown point", word);
	word = next_word(&rest);
	const struct action_row *a = word ? known_action(word) : NULL;
	if (!a) {
		bad_rule(line, "unknown action", word);
		return;
	}
	r->action = a->action;
	word = parse_argument(r, a, next_word(&rest), &rest, line);
	parse_options(r, word, &rest, line);
}

static struct rules *parse_rules(char *text)
{
	struct rules *set = calloc(1, sizeof *set);
	char *rest = NULL;
	unsigned line = 0;

	if (!set)
		bad_rule(0, "out of memory", "");
	while (text) {
		rest = strchr(text, '\n');
		if (rest)
			*rest++ = '\0';
		parse_line(set, text, ++line);
		text = rest;
	}
	return set;
}

/* Watching */

static bool file_changed(void)
{
	struct stat now = { 0 };

	stat(path, &now); /* without a file: zeros, no rules */
	bool changed = now.st_ino != seen.st_ino || now.st_size != seen.st_size ||
		       now.st_mtim.tv_sec != seen.st_mtim.tv_sec || now.st_mtim.tv_nsec != seen.st_mtim.tv_nsec;
	seen = now;
	return changed;
}

static void read_rules(void)
{
	char *text = calloc(1, RULE_FILE_MAX + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && text && read(fd, text, RULE_FILE_MAX) < 0)
		bad_rule(0, "cannot be read", strerror(errno));
	if (fd >= 0)
		close(fd);
	struct rules *set = parse_rules(text);
	free(text);
	set->older = atomic_load(&rules);
	unsigned count = set->count;
	if (count == 0 && !set->older)
		free(set);
	else
		atomic_store_explicit(&rules, set, memory_order_release);
	/* tests wait for this line */
	fprintf(stderr, "fault rules of %jd.%09ld: %u\n", (intmax_t)seen.st_mtim.tv_sec, seen.st_mtim.tv_nsec, count);
}

static void *fault_watch(void *arg)
{
	struct timespec until;

	pthread_mutex_lock(&watcher.lock);
	while (watcher.state == WATCHER_ON) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOOK_EVERY_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&watcher.wake, &watcher.lock, &until);
		if (file_changed())
			read_rules();
	}
	pthread_mutex_unlock(&watcher.lock);
	return NULL;
}

void fault_start(const char *node)
{
	snprintf(node_name, sizeof node_name, "%s", node);
	path = getenv("CSSL_FAULTS");
	if (!path || watcher.state != WATCHER_OFF)
		return;
	if (file_changed())
		read_rules();

	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	watcher.state = WATCHER_ON;
	if (pthread_create(&watcher.thread, NULL, fault_watch, NULL) != 0)
		bad_rule(0, "no thread to watch it", "");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void fault_stop(void)
{
	if (watcher.state == WATCHER_ON) {
		pthread_mutex_lock(&watcher.lock);
		watcher.state = WATCHER_STOPPING;
		pthread_cond_signal(&watcher.wake);
		pthread_mutex_unlock(&watcher.lock);
		pthread_join(watcher.thread, NULL);
		watcher.state = WATCHER_OFF;
	}
	struct rules *set = atomic_exchange(&rules, NULL);
	while (set) {
		struct rules *older = set->older;
		free(set);
		set = older;
	}
	seen = (struct stat){ 0 };
}
#endif
