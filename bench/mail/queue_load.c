/* queue_load.c: `cssl-bench queue`: stores messages as `deliver: queue` does, without SMTP, in one Redis server or two;
 * and deletes each again, or reads them back. */
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
#include "net/loop/timer.h"
#include "net/loop/worker.h"
#include "net/report/log.h"
#include "net/socket/address.h"
#include "proto/error.h"
#include "smtpproxy/queue/queue.h"

#define STOP_MS     5000u
#define LOOK_MS     1u
#define ABSENT_MS   1u /* for a second server, which is not there */
#define NUMBER_MAX  1e9
#define DESTINATION "a.example"
#define ENVELOPE    "load"
/* Nobody's: another run reads back what this one stored. */
#define KEY         "k1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"

enum queue_output { QUEUE_TEXT, QUEUE_JSON };
enum queue_work { WORK_STORE, WORK_STORE_AND_DELETE, WORK_READ };

struct queue_options {
	uint64_t messages, length, window, block;
	enum queue_work work;
	enum queue_output output;
};

struct queue_load {
	const struct queue_options *options;
	struct worker *worker;
	struct queue *queue;
	struct timer *timer; /* calls queue_load_look(); NULL: not yet */
	struct key_ring keys;
	struct queue_conf conf;
	struct queue_stats stats; /* of the end */
	uint8_t *body;
	unsigned servers;
	uint64_t added, waiting, taken; /* messages */
	uint64_t begin_ns, end_ns;      /* uv_hrtime() */
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
	NUMBER('w', "window", window, "messages at a time that are not stored yet (default 1000)"),
	OPTION_FLAG(0, "delete", struct queue_options, work, WORK_STORE_AND_DELETE,
		"delete each as soon as it is stored, as after its delivery"),
	OPTION_FLAG(0, "read", struct queue_options, work, WORK_READ,
		"store none: read back those that another run has left there"),
	NUMBER('b', "block", block, "the most items of a block that is read back (default 1000)"),
	OPTION_FLAG(0, "json", struct queue_options, output, QUEUE_JSON, "the result as JSON on standard output"),
};

static const struct option_command command = { "queue",
	"cssl-bench queue [OPTIONS] ADDRESS [ADDRESS]: stores messages in one or two empty Redis servers as a "
	"gateway\nwith `deliver: queue` does, and tells how long that took. The messages stay there.\n",
	"\nExit status: 0; 1: not all was stored or read; 2: bad options.\n", rows, sizeof rows / sizeof rows[0],
	OPTIONS_AND_WORDS };

static void queue_load_finish(struct queue_load *l)
{
	if (l->end_ns)
		return;
	l->end_ns = uv_hrtime();
	queue_get_stats(l->queue, &l->stats);
	timer_stop(l->timer);
	queue_stop(l->queue, STOP_MS);
}

static void add_more(struct queue_load *l);

static void on_stored(struct queue_receipt *receipt, enum queue_outcome outcome)
{
	struct load_receipt *r = (struct load_receipt *)receipt;
	struct queue_load *l = r->load;

	free(r);
	l->waiting--;
	if (outcome == QUEUE_STORED)
		add_more(l);
	else
		queue_load_finish(l);
}

/* 0; else the queue takes no more at the moment, and on_ready or on_stored come. */
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
	if (l->options->work == WORK_STORE && l->added == l->options->messages && l->waiting == 0)
		queue_load_finish(l);
}

/* Nobody tells when the last delete is answered. */
static void queue_load_look(void *ctx)
{
	struct queue_load *l = ctx;
	struct queue_stats now;

	queue_get_stats(l->queue, &now);
	if (now.messages + now.deletes_unconfirmed == 0)
		queue_load_finish(l);
}

/* As after a delivery. */
static void delete_stored(struct queue_load *l)
{
	const struct content_bytes to = { .data = (const uint8_t *)DESTINATION, .len = strlen(DESTINATION) };
	struct queue_taken t;

	while (queue_take(l->queue, to, &t) == 0 && queue_done(l->queue, t.id) == 0)
		l->taken++;
	if (l->taken == l->options->messages && !l->timer)
		l->timer = timer_start(l->worker, queue_load_look, l, LOOK_MS, LOOK_MS);
}

static void on_queue_ready(void *user)
{
	struct queue_load *l = user;

	l->begin_ns = l->begin_ns ? l->begin_ns : uv_hrtime();
	if (l->options->work == WORK_READ)
		queue_load_finish(l);
	else
		add_more(l);
}

/* The servers are lost: who waited for them would be measured. */
static void on_queue_lost(void *user)
{
	queue_load_finish(user);
}

static void on_queue_due(void *user, const struct queue_destination *d)
{
	struct queue_load *l = user;

	if (l->options->work == WORK_STORE_AND_DELETE)
		delete_stored(l);
}

static void on_may_take(void *user)
{
	on_queue_due(user, NULL);
}

static void on_stopped(void *user)
{
	struct queue_load *l = user;
	queue_destroy(l->queue);
	worker_stop(l->worker);
}

static const struct queue_ops ops = {
	.on_ready = on_queue_ready,
	.on_unready = on_queue_lost,
	.on_due = on_queue_due,
	.on_may_take = on_may_take,
	.on_deposed = on_queue_lost,
	.on_stopped = on_stopped,
};

static int queue_load_run(struct queue_load *l)
{
	unsigned line;

	l->body = malloc(l->options->length);
	l->worker = worker_create(0, "queue");
	if (!l->body || !l->worker || key_ring_parse(KEY, strlen(KEY), &l->keys, &line))
		return CSSL_E_NO_MEMORY;
	memset(l->body, 'x', l->options->length);
	l->conf.name = "bench";
	l->conf.keys = &l->keys;
	l->conf.block_items = (uint32_t)l->options->block;
	l->conf.absent_ms = ABSENT_MS;
	l->queue = queue_create(l->worker, &l->conf, &ops, l);
	if (!l->queue)
		return CSSL_E_NO_MEMORY;
	if (l->servers < BACKUPS) /* without an order, a queue waits for the second one */
		queue_take_over(l->queue);
	worker_run(l->worker);
	return 0;
}

/* What all servers did at the least. */
static uint64_t queue_load_least(const struct queue_load *l, uint64_t first, uint64_t second)
{
	return l->servers == BACKUPS && second < first ? second : first;
}

static const char *const count_names[] = { "stored", "deleted", "read", "blocks" };
#define COUNTS (sizeof count_names / sizeof *count_names)

static void get_counts(const struct queue_load *l, uint64_t out[static COUNTS])
{
	const struct queue_backup_stats *b = l->stats.backups;

	out[0] = queue_load_least(l, b[0].puts, b[1].puts);
	out[1] = queue_load_least(l, b[0].deletes, b[1].deletes);
	out[2] = l->stats.recovered;
	out[3] = b[0].blocks; /* that were read from the first server */
}

/* 1: it did exactly what was asked for. */
static bool is_done(const struct queue_load *l)
{
	const uint64_t wanted[][3] = {
		[WORK_STORE] = { l->options->messages, 0, 0 },
		[WORK_STORE_AND_DELETE] = { l->options->messages, l->options->messages, 0 },
		[WORK_READ] = { 0, 0, l->options->messages },
	};
	uint64_t counts[COUNTS];

	get_counts(l, counts);
	return memcmp(counts, wanted[l->options->work], sizeof *wanted) == 0;
}

static int queue_load_report(const struct queue_load *l)
{
	const bool reads = l->options->work == WORK_READ; /* then the time is the queue's own: from its claim on */
	double seconds = reads ? (double)l->stats.recovery_ms / 1000 : report_seconds(l->begin_ns, l->end_ns);
	double per_s = report_rate(l->options->messages, seconds);
	uint64_t counts[COUNTS];
	json_t *out;

	get_counts(l, counts);
	if (l->options->output == QUEUE_JSON) {
		out = json_pack("{s:f, s:f}", "seconds", seconds, "per_s", per_s);
		for (size_t i = 0; i < COUNTS; i++)
			json_object_set_new(out, count_names[i], json_integer((json_int_t)counts[i]));
		return report_print_json(out);
	}
	printf("%-18s %10.3f\n%-18s %10.1f\n", "seconds", seconds, "messages/s", per_s);
	for (size_t i = 0; i < COUNTS; i++)
		printf("%-18s %10" PRIu64 "\n", count_names[i], counts[i]);
	return 0;
}

/* 0, or -1: they are not one or two addresses. */
static int take_addresses(struct queue_load *l, int argc, char **argv)
{
	l->servers = (unsigned)(argc - optind);
	if (l->servers < 1 || l->servers > BACKUPS)
		return -1;
	for (unsigned i = 0; i < l->servers; i++) {
		l->conf.backups[i].path_count = 1;
		if (address_parse(argv[optind + (int)i], &l->conf.backups[i].paths[0]))
			return -1;
	}
	return 0;
}

int queue_load_main(int argc, char **argv)
{
	static struct queue_options options = { .messages = 1000, .length = 1024, .window = 1000, .block = 1000 };
	static struct queue_load load = { .options = &options };

	const enum option_parse parsed = option_table_parse(&command, argc, argv, &options);

	if (parsed != OPTIONS_PARSED)
		return parsed;
	if (take_addresses(&load, argc, argv)) {
		fputs("queue: one or two ADDRESSes are needed\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	log_open("cssl-bench", "queue", LOG_TEXT, LOG_ERROR, NULL);
	int r = queue_load_run(&load);
	if (r == 0)
		r = queue_load_report(&load);
	worker_destroy(load.worker);
	free(load.body);
	log_close();
	if (!is_done(&load))
		fputs("queue: not all messages were stored, deleted or read in all servers\n", stderr);
	return r == 0 && is_done(&load) ? EXIT_SUCCESS : EXIT_FAILURE;
}
