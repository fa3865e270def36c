/* queue_load.c: `cssl-bench queue`: stores messages as `deliver: queue` does, without SMTP, in two Redis servers. */
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <getopt.h>
#include <jansson.h>
#include <uv.h>

#include "bench/command/command.h"
#include "bench/command/option_table.h"
#include "bench/measure/report.h"
#include "net/address.h"
#include "net/log.h"
#include "net/worker.h"
#include "proto/error.h"
#include "smtpproxy/queue/queue.h"

#define STOP_MS     5000u
#define NUMBER_MAX  1e12
#define DESTINATION "a.example"
#define ENVELOPE    "load"

enum queue_output { QUEUE_TEXT, QUEUE_JSON };

struct queue_options {
	uint64_t messages, length, window;
	enum queue_output output;
};

struct queue_load {
	const struct queue_options *options;
	struct worker *worker;
	struct queue *queue;
	struct key_ring keys;
	struct queue_conf conf;
	uint8_t *body;
	uint64_t added, waiting, stored; /* messages */
	uint64_t begin_ns, end_ns;       /* uv_hrtime() */
};

struct load_receipt {
	struct queue_receipt receipt;
	struct queue_load *load;
};

#define NUMBER(letter, name, member, help)                                                                             \
	OPTION_NUMBER(letter, name, "N", struct queue_options, member, 1, NUMBER_MAX, 1, help)

static const struct option_row rows[] = {
	NUMBER('m', "messages", messages, "messages in all (default 1000)"),
	NUMBER('l', "length", length, "bytes of each (default 1024)"),
	NUMBER('w', "window", window, "messages at a time without an answer (default 1000)"),
	OPTION_FLAG(0, "json", struct queue_options, output, QUEUE_JSON, "the result as JSON on standard output"),
};

#define ROWS (sizeof rows / sizeof rows[0])

static void help(FILE *to)
{
	fputs("cssl-bench queue [OPTIONS] ADDRESS ADDRESS: stores messages in two empty Redis servers as a gateway "
	      "with\n`deliver: queue` does, and tells how long that took. They stay there.\n",
		to);
	option_table_help(to, rows, ROWS);
	fputs("\nExit status: 0; 1: a message was not stored; 2: bad options.\n", to);
}

static void add_more(struct queue_load *l);

static void on_stored(struct queue_receipt *receipt, enum queue_outcome outcome)
{
	struct load_receipt *r = (struct load_receipt *)receipt;
	struct queue_load *l = r->load;

	free(r);
	l->waiting--;
	l->stored += outcome == QUEUE_STORED;
	add_more(l);
}

/* 0; else the queue takes no more at the moment, and on_ready or on_room come. */
static int add_one(struct queue_load *l)
{
	const struct queue_mail mail = {
		.destination = { .data = (const uint8_t *)DESTINATION, .len = strlen(DESTINATION) },
		.envelope = { .data = (const uint8_t *)ENVELOPE, .len = strlen(ENVELOPE) },
		.body = { .data = l->body, .len = l->options->length },
	};
	struct load_receipt *r = calloc(1, sizeof *r);
	if (!r)
		return CSSL_E_NO_MEMORY;
	r->receipt.on_stored = on_stored;
	r->load = l;
	int answer = queue_add(l->queue, &mail, &r->receipt);
	if (answer)
		free(r);
	return answer;
}

static void add_more(struct queue_load *l)
{
	while (l->added < l->options->messages && l->waiting < l->options->window && add_one(l) == 0) {
		l->added++;
		l->waiting++;
	}
	if (l->added == l->options->messages && l->waiting == 0 && l->end_ns == 0) {
		l->end_ns = uv_hrtime();
		queue_stop(l->queue, STOP_MS);
	}
}

static void on_ready(void *user)
{
	struct queue_load *l = user;
	l->begin_ns = l->begin_ns ? l->begin_ns : uv_hrtime();
	add_more(l);
}

static void on_room(void *user)
{
	add_more(user);
}

static void on_nothing(void *user)
{
}

static void on_due(void *user, const struct queue_destination *d)
{
}

static void on_stopped(void *user)
{
	struct queue_load *l = user;
	queue_destroy(l->queue);
	worker_stop(l->worker);
}

static const struct queue_ops ops = {
	.on_ready = on_ready,
	.on_unready = on_nothing,
	.on_due = on_due,
	.on_room = on_room,
	.on_may_take = on_nothing,
	.on_deposed = on_nothing,
	.on_stopped = on_stopped,
};

static int make_key(struct key_ring *keys)
{
	uint8_t key[KEY_LEN];
	char hex[2 * KEY_LEN + 1], text[sizeof hex + 8];
	unsigned line;

	randombytes_buf(key, sizeof key);
	int len = snprintf(text, sizeof text, "k1 %s\n", sodium_bin2hex(hex, sizeof hex, key, sizeof key));
	return key_ring_parse(text, (size_t)len, keys, &line);
}

static int run(struct queue_load *l)
{
	l->body = malloc(l->options->length);
	l->worker = worker_create(0, "queue");
	if (!l->body || !l->worker || make_key(&l->keys))
		return CSSL_E_NO_MEMORY;
	memset(l->body, 'x', l->options->length);
	l->conf.name = "bench";
	l->conf.keys = &l->keys;
	l->queue = queue_create(l->worker, &l->conf, &ops, l);
	if (!l->queue)
		return CSSL_E_NO_MEMORY;
	worker_run(l->worker);
	return 0;
}

static int report(const struct queue_load *l)
{
	double seconds = report_seconds(l->begin_ns, l->end_ns), per_s = report_rate(l->stored, seconds);

	if (l->options->output == QUEUE_JSON)
		return report_print_json(json_pack(
			"{s:f, s:I, s:f}", "seconds", seconds, "stored", (json_int_t)l->stored, "per_s", per_s));
	printf("%-18s %10.2f\n%-18s %10" PRIu64 "\n%-18s %10.1f\n", "seconds", seconds, "stored", l->stored, "stored/s",
		per_s);
	return 0;
}

/* 0, or -1: they are not two addresses. */
static int take_addresses(struct queue_conf *conf, int argc, char **argv)
{
	if (argc - optind != (int)BACKUPS)
		return -1;
	for (unsigned i = 0; i < BACKUPS; i++) {
		conf->backups[i].path_count = 1;
		if (address_parse(argv[optind + (int)i], &conf->backups[i].paths[0]))
			return -1;
	}
	return 0;
}

int queue_load_main(int argc, char **argv)
{
	static struct queue_options options = { .messages = 1000, .length = 1024, .window = 1000 };
	static struct queue_load load = { .options = &options };

	switch (option_table_parse("queue", rows, ROWS, argc, argv, &options)) {
	case OPTIONS_HELP: help(stdout); return EXIT_SUCCESS;
	case OPTIONS_BAD: return 2;
	default: break;
	}
	if (take_addresses(&load.conf, argc, argv)) {
		fputs("queue: two ADDRESSes are needed\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	log_open("cssl-bench", "queue", LOG_TEXT, LOG_WARNING, NULL);
	int r = run(&load);
	if (r == 0)
		r = report(&load);
	worker_destroy(load.worker);
	free(load.body);
	log_close();
	if (load.stored < options.messages)
		fprintf(stderr, "queue: %" PRIu64 " of %" PRIu64 " messages were stored\n", load.stored,
			options.messages);
	return r == 0 && load.stored == options.messages ? EXIT_SUCCESS : EXIT_FAILURE;
}
