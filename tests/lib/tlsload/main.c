/* main.c: tlsload, many TLS clients in one process that check every byte and count every end.
 *
 *   tlsload --ca PEM
 *
 * Reads commands from standard input, one a line, and answers each with one line of JSON, {"number": N, ...}, N being
 * the line's number; the answer of a command that takes time comes when it is done, others may come before.
 *
 *   add name=N to=HOST:PORT [count=1] [version=both|1.2|1.3] [method=GET] [path=/1k] [size=BYTES] [body=BYTES]
 * [rate=B/S] [id=PREFIX [ids=FILE]] [every_ms=0] [times=0] [again=never|lost|always] [run=asks|waits] [resume=0]
 * [sources=250] [timeout_ms=20000] [key_update_every=REQUESTS] [keys_every_ms=0 [keys_at_once=1]] [head_every_ms=0]
 * [stall_at=BYTES stall_ms=MS] [at_once=32] a group of clients; answered when all have shaken hands or given up. size:
 * of the answer, where the path does not say it. head_every_ms: heads go byte by byte. keys_every_ms: keys_at_once
 * KeyUpdates so often while nothing is asked. ids: what became of each request. times: requests on one connection ask
 * name=N      each of them that is ready asks once; answered when nothing is under way stop [name=N]   nobody asks any
 * more; likewise. Then the connections are idle close [name=N]  they end report [name=N] at once mark [agent=NAME]
 * something happens now: how long until the next byte of each answer that is owed now, or that is asked for within 100
 * ms (from then on)? Once for each connection */
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/server/pattern.h"
#include "net/memory/container_of.h"
#include "tests/lib/tlsload/group.h"

#define TURN_MS      2
#define EVENTS_MAX   256
#define COMMANDS_LEN 65536u

static struct load load;
static char input[COMMANDS_LEN];
static size_t input_len;
static unsigned commands;
static enum { RUNNING, OVER } life;

static void die(const char *what)
{
	fprintf(stderr, "tlsload: %s\n", what);
	exit(2);
}

/* --- answers --- */

static void say(unsigned number, json_t *answer)
{
	json_object_set_new(answer, "number", json_integer(number));
	json_dumpf(answer, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(answer);
}

static void say_wrong(const char *what)
{
	say(commands, json_pack("{s:s}", "wrong", what));
}

static void keep_promises(void)
{
	for (struct group *g = load.groups; g; g = g->next) {
		if (!group_kept_promise(g))
			continue;
		g->promise.until = PROMISE_NONE;
		say(g->promise.number, group_json(g));
	}
}

/* --- commands --- */

static struct group *find_group(const char *name)
{
	struct group *g = load.groups;

	while (g && strcmp(g->name, name) != 0)
		g = g->next;
	return g;
}

static void do_add(struct probe_args *args)
{
	const char *wrong, *name = probe_text(args, "name", "");
	struct group *g = find_group(name) ? NULL : group_create(&load, args, &wrong);

	if (!g) {
		say_wrong(find_group(name) ? "there is one of that name" : wrong);
		return;
	}
	g->next = load.groups;
	load.groups = g;
	g->promise = (struct group_promise){ PROMISE_CONNECTED, commands };
}

static void do_ask(struct probe_args *args)
{
	struct group *g = find_group(probe_text(args, "name", ""));

	if (!g) {
		say_wrong("no such group");
		return;
	}
	group_ask(g);
	g->promise = (struct group_promise){ PROMISE_QUIET, commands };
}

static void do_report(struct probe_args *args)
{
	const char *name = probe_text(args, "name", NULL);
	json_t *all = json_object();

	for (struct group *g = load.groups; g; g = g->next)
		if (!name || strcmp(g->name, name) == 0)
			json_object_set_new(all, g->name, group_json(g));
	say(commands, all);
}

static void do_stop(struct probe_args *args)
{
	struct group *g = find_group(probe_text(args, "name", ""));

	if (!g) {
		say_wrong("no such group");
		return;
	}
	group_stop(g);
	g->promise = (struct group_promise){ PROMISE_QUIET, commands };
}

static void do_close(struct probe_args *args)
{
	struct group *g = find_group(probe_text(args, "name", ""));

	if (!g) {
		say_wrong("no such group");
		return;
	}
	group_close(g);
	say(commands, group_json(g));
}

static void do_mark(struct probe_args *args)
{
	load.mark.at_us = load.now_us;
	snprintf(load.mark.agent, sizeof(load.mark.agent), "%s", probe_text(args, "agent", ""));
	for (struct group *g = load.groups; g; g = g->next)
		for (unsigned i = 0; i < g->count; i++)
			client_on_mark(&g->clients[i]);
	say(commands, json_object());
}

static void run_command(char *line)
{
	static const struct {
		const char *verb;
		void (*run)(struct probe_args *args);
	} table[] = { { "add", do_add }, { "ask", do_ask }, { "stop", do_stop }, { "close", do_close },
		{ "report", do_report }, { "mark", do_mark } };
	struct probe_args args;

	commands++;
	if (probe_args_parse(line, &args) < 0) {
		say_wrong("malformed line");
		return;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i].verb, args.verb) == 0) {
			table[i].run(&args);
			return;
		}
	}
	say_wrong("unknown command");
}

static void read_commands(void)
{
	const ssize_t n = read(STDIN_FILENO, input + input_len, sizeof(input) - 1 - input_len);
	char *at = input, *end;

	if (n <= 0) {
		life = OVER;
		return;
	}
	input_len += (size_t)n;
	input[input_len] = '\0';
	while ((end = strchr(at, '\n'))) {
		*end = '\0';
		run_command(at);
		at = end + 1;
	}
	input_len -= (size_t)(at - input);
	memmove(input, at, input_len);
}

/* --- the loop --- */

static void turn(void)
{
	struct epoll_event events[EVENTS_MAX];
	struct wheel_timer *t;
	const int n = epoll_wait(load.epoll, events, EVENTS_MAX, TURN_MS);

	for (int i = 0; i < n; i++) {
		load.now_us = clock_us();
		if (events[i].data.ptr)
			client_on_event(events[i].data.ptr, events[i].events);
		else
			read_commands();
	}
	load.now_us = clock_us();
	while ((t = wheel_due(&load.wheel, load.now_us / 1000)))
		client_on_timer(container_of(t, struct client, timer));
	for (struct group *g = load.groups; g; g = g->next)
		group_admit(g);
	keep_promises();
}

static SSL_CTX *make_context(int version, const char *ca)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx || SSL_CTX_load_verify_file(ctx, ca) != 1)
		die("--ca cannot be read");
	SSL_CTX_set_min_proto_version(ctx, version);
	SSL_CTX_set_max_proto_version(ctx, version);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(
		ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, client_on_session);
	SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\10http/1.1", 9);
	return ctx;
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void start(const char *ca)
{
	struct epoll_event e = { .events = EPOLLIN };

	signal(SIGPIPE, SIG_IGN);
	raise_descriptor_limit();
	pattern_make();
	load.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (load.epoll < 0 || epoll_ctl(load.epoll, EPOLL_CTL_ADD, STDIN_FILENO, &e) < 0)
		die("no epoll");
	load.tls12 = make_context(TLS1_2_VERSION, ca);
	load.tls13 = make_context(TLS1_3_VERSION, ca);
	load.now_us = load.started_us = clock_us();
	load.wheel.looked_ms = load.now_us / 1000;
}

static void finish(void)
{
	while (load.groups) {
		struct group *next = load.groups->next;
		group_destroy(load.groups);
		load.groups = next;
	}
	SSL_CTX_free(load.tls12);
	SSL_CTX_free(load.tls13);
	close(load.epoll);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "ca", required_argument, NULL, 'c' }, { NULL, 0, NULL, 0 } };
	const char *ca = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		ca = option == 'c' ? optarg : NULL;
	if (!ca)
		die("--ca PEM is needed");
	start(ca);
	while (life == RUNNING)
		turn();
	finish();
	return 0;
}
