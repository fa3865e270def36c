/* main.c: ragent, the dispatcher of a CSSL cluster: arguments, cluster file, one root object. */
#include <getopt.h> /* optarg, optind */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sodium.h>

#include "conf/memory.h"
#include "conf/program.h"
#include "conf/start.h"
#include "net/loop/worker.h"
#include "net/process/daemon.h"
#include "net/process/descriptors.h"
#include "net/report/log.h"
#include "net/socket/tcp_counts.h"
#include "proto/error.h"
#include "ragent/connection/connection_home.h"
#include "ragent/connection/revival/revival.h"
#include "ragent/control/access/control_tokens.h"
#include "ragent/handover/handover_offer.h"
#include "ragent/handover/handover_taker.h"
#include "ragent/keeper/keeper.h"
#include "ragent/process/privileges.h"
#include "ragent/process/ragent.h"

#define CONFIG_DEFAULT "/etc/cssl/cluster.yaml"
#define ERROR_MAX      8192u

enum action { ACTION_RUN, ACTION_CHECK };
enum watch { WATCH_BY_KEEPER, WATCH_NOT };

struct arguments {
	const char *config, *name;
	enum ragent_start start;
	enum { PLACE_FOREGROUND, PLACE_BACKGROUND } place;
	enum watch watch;
	enum action action;
};

static const struct program program = {
	.name = "ragent",
	.section = 8,
	.version = CSSL_VERSION,
	.summary = "dispatcher of a CSSL cluster",
	.synopsis = "[--config FILE] [--name NAME] [--replace] [--background] [--no-keeper] [--check]",
	.description =
		"Accepts TLS clients and forwards their records to the cluster's agents. RAgent sees record headers "
		"and holds no TLS keys. A second process, the keeper, starts RAgent again when it dies or hangs; "
		"sockets of clients and listeners stay open meanwhile.",
	.options =
		(const struct program_option[]){
			{ "config", "FILE", "the cluster file (default " CONFIG_DEFAULT ")", 'c' },
			{ "name", "NAME", "the name of this RAgent in the cluster file (default: the only one)", 'n' },
			{ "replace", NULL, "take over everything from the running process of that name", 'R' },
			{ "background", NULL, "run in the background: return when the new process serves", 'B' },
			{ "no-keeper", NULL,
				"run without a keeper, which starts RAgent again when it dies (for debuggers)", 'K' },
			{ "check", NULL, "check the cluster file and the files that it names, and exit", 'C' },
			PROGRAM_QUESTIONS("cluster file"),
		},
	.signals = "SIGTERM stops RAgent in order; a second SIGTERM stops it at once. SIGHUP opens the logs again.",
	.see_also = "sslagent(8), csslctl(1), cssl.yaml(5)",
	.help_config = conf_help_print,
};

/* Exits the process on --help, --version and mistakes. */
static struct arguments ragent_parse(int argc, char **argv)
{
	struct arguments a = { .config = CONFIG_DEFAULT };
	int key;

	while ((key = program_next_option(&program, argc, argv)) != -1) {
		switch (key) {
		case 'c': a.config = optarg; break;
		case 'n': a.name = optarg; break;
		case 'R': a.start = RAGENT_REPLACES; break;
		case 'B': a.place = PLACE_BACKGROUND; break;
		case 'K': a.watch = WATCH_NOT; break;
		case 'C': a.action = ACTION_CHECK; break;
		default: program_answer(&program, key);
		}
	}
	if (optind < argc)
		program_answer(&program, '?');
	return a;
}

static const struct conf_ragent *find_self(const struct conf *c, const char *name)
{
	if (name)
		return conf_ragent_find(c, name);
	return c->ragent_count == 1 ? &c->ragents[0] : NULL;
}

/* Looks at all files before anything else happens: so does --check. Later ones can only fail in a race. */
static int ragent_judge(const struct conf *c, const struct conf_ragent *self, char *error)
{
	const struct sockaddr *address = (const struct sockaddr *)&self->control_address;
	struct control_tokens *tokens = NULL;
	int r = conf_check_node(c, self, NULL, error, ERROR_MAX);

	if (r == 0 && self->control_tokens) {
		tokens = control_tokens_load(self->control_tokens, control_names_of(address), error, ERROR_MAX);
		r = tokens ? 0 : CSSL_E_CONFIG;
	}
	free(tokens);
	return r;
}

static int not_started(const char *cause)
{
	log_event(LOG_ERROR, NULL, "not started", "cause=%s", cause);
	fprintf(stderr, "ragent: not started: %s\n", cause);
	return EXIT_FAILURE;
}

/* Runs RAgent proper from start to end. Returns the exit status. */
static int ragent_live(const struct ragent_params *p)
{
	static char error[ERROR_MAX];
	struct ragent *r = ragent_create(p, error, sizeof error);

	if (!r)
		not_started(error);
	else if (p->start == RAGENT_STARTS)
		background_settle(EXIT_SUCCESS);
	int result = r ? ragent_run(r) : -1;
	if (!r && p->start == RAGENT_STARTS_AGAIN)
		_exit(EXIT_FAILURE);
	ragent_destroy(r);
	return result < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- with a keeper --- */

static int live_kept(void *ctx, enum keeper_life life)
{
	struct ragent_params p = *(const struct ragent_params *)ctx;
	struct leftovers leftovers = { 0 };

	if (life == KEEPER_FIRST_LIFE)
		return ragent_live(&p);
	background_forget();
	descriptors_raise(0); /* with more descriptors than the limit none could be listed */
	slot_table_begin_life(p.notes->table, p.notes->life);
	connection_judge_former(p.notes);
	if (leftovers_sort(&leftovers, p.notes) < 0)
		log_event(LOG_ERROR, NULL, "descriptors not closed",
			"cause=\"cannot read /proc/self/fd\" effect=\"connections of the dead process stay open until "
			"their clients close them\"");
	p.start = RAGENT_STARTS_AGAIN;
	p.leftovers = &leftovers;
	int status = ragent_live(&p);
	leftovers_free(&leftovers);
	return status;
}

static int ragent_settle(void *ctx)
{
	const struct ragent_params *p = ctx;
	enum privileges privileges;
	char error[256];

	if (privileges_drop(p->self->user, &privileges, error, sizeof error) == 0)
		return 0;
	not_started(error);
	return -1;
}

static void ragent_abandon(void *ctx)
{
	const struct ragent_params *p = ctx;

	handover_taker_died(p->notes);
	slot_table_begin_life(p->notes->table, p->notes->life + 1); /* the slots belong to former lives */
	leftovers_end_all(p->notes);
}

static void abandon_without_table(void *ctx)
{
	const struct ragent_params *p = ctx;

	leftovers_end_all_blindly(p->notes);
}

static void ragent_on_tick(void *ctx)
{
	service_notify_alive();
}

static int run_kept(struct ragent_params *p)
{
	const struct keeper_params k = {
		.notes = p->notes,
		.hang_ms = conf_ragent_hang_ms(p->self),
		.live = live_kept,
		.settle = ragent_settle,
		.tick = ragent_on_tick,
		.abandon = ragent_abandon,
		.abandon_without_table = abandon_without_table,
		.ctx = p,
	};

	return keeper_run(&k);
}

static unsigned count_sockets(const struct conf *c, const struct conf_ragent *self)
{
	size_t count = 3; /* the control socket, its address, the handover */

	for (size_t i = 0; i < c->listener_count; i++)
		count += c->listeners[i].listen.count * self->workers;
	return (unsigned)count;
}

/* One for each worker; the next process has them, too. NULL: out of memory. */
static uint8_t *share_read_buffers(unsigned workers)
{
	void *all = mmap(NULL, (size_t)workers * WORKER_READ_BUFFER_LEN, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return all == MAP_FAILED ? NULL : all;
}

/* Without memory for them no connection goes on. */
static void make_table(struct ragent_params *p)
{
	const uint64_t wanted = memory_of_table(p->conf, p->self);

	p->notes->table = slot_table_create(wanted, connection_len());
	p->notes->outliving.read_buffers = share_read_buffers(p->self->workers);
	if (tcp_counts_hold() == 0) {
		slot_table_destroy(p->notes->table);
		p->notes->table = NULL;
		log_event(LOG_WARNING, NULL, "connections end if this process dies",
			"cause=\"the kernel does not count the bytes of TCP connections\"");
		return;
	}
	if (!p->notes->table || !p->notes->outliving.read_buffers)
		log_event(LOG_WARNING, NULL, "connections end if this process dies",
			"cause=\"no memory for %u connections\"", memory_table_connections(p->self));
	else if (slot_table_len(p->notes->table) < wanted)
		log_event(LOG_WARNING, NULL, "some connections may end if this process dies",
			"cause=\"too few addresses\" wanted=%llu bytes=%llu remedy=\"vm.overcommit_memory=1, or 0\"",
			(unsigned long long)wanted, (unsigned long long)slot_table_len(p->notes->table));
}

/* Files that only the first process may be able to read are read before there is a second one. */
static int run_with_key(struct ragent_params *p, enum watch watch)
{
	if (watch == WATCH_NOT)
		return ragent_live(p);
	p->notes = notes_create(1 + p->self->workers, count_sockets(p->conf, p->self));
	if (!p->notes)
		return not_started("out of memory");
	make_table(p);
	descriptors_raise(0);  /* the keeper shares all descriptors of its child */
	service_keep_socket(); /* and opens none, which could be in the way of those */
	int status = run_kept(p);
	slot_table_destroy(p->notes->table);
	notes_destroy(p->notes);
	return status;
}

static int ragent_begin(const struct conf *c, const struct conf_ragent *self, const struct arguments *a)
{
	static char error[ERROR_MAX] = "the access log cannot be opened"; /* ragent_judge() could, just before */

	if (start_log(program.name, self->name, &c->log, NULL) < 0)
		return EXIT_FAILURE;
#ifdef CSSL_TEST_POINTS
	if (getenv("CSSL_HANDOVER_FORMAT"))
		handover_act_as_release((unsigned)atoi(getenv("CSSL_HANDOVER_FORMAT")));
#endif
	if (a->place == PLACE_BACKGROUND && background_begin() < 0) {
		perror("ragent: cannot go into the background");
		return EXIT_FAILURE;
	}
	if (ragent_judge(c, self, error) < 0 || (self->access_log && log_open_access(self->access_log) < 0))
		return not_started(error);
	struct key_ring *link_key = conf_read_key(c->link_key, error, ERROR_MAX);
	if (!link_key)
		return not_started(error);
	struct ragent_params p = { .conf = c, .self = self, .link_key = link_key, .start = a->start };
	int status = run_with_key(&p, a->watch);
	sodium_free(link_key);
	return status;
}

/* As root it becomes the user of @self, and sees what that user sees. */
static int ragent_check(const struct conf *c, const struct conf_ragent *self)
{
	static char error[ERROR_MAX];

	if (ragent_judge(c, self, error) == 0 && privileges_settle(c, self, error, ERROR_MAX) == 0) {
		conf_check_print(c, stdout);
		return EXIT_SUCCESS;
	}
	fprintf(stderr, "%s\n", error);
	return EXIT_FAILURE;
}

static int run_as(const struct conf *c, const struct arguments *a)
{
	const struct conf_ragent *self = find_self(c, a->name);

	if (self)
		return a->action == ACTION_CHECK ? ragent_check(c, self) : ragent_begin(c, self, a);
	fprintf(stderr, "%s: %s\n", a->config,
		a->name ? "no ragent has that name" : "there are several ragents, or none: choose one by --name");
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN); /* the log may be a pipe without a reader, and the keeper logs each death */
	if (start_protected(program.name) < 0)
		return EXIT_FAILURE;
	const struct arguments a = ragent_parse(argc, argv);
	struct conf *c = start_load(a.config, CONF_FOR_RAGENT);
	if (!c)
		return EXIT_FAILURE;
	int result = run_as(c, &a);
	conf_destroy(c);
	return result;
}
