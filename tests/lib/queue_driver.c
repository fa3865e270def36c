/* queue_driver.c: a gateway's queue without a gateway: takes commands from a socket (descriptor 0), one a line, and
 * answers with one JSON object a line, so that scenarios can drive it. Bodies are a token repeated up to a size, so
 * that a delivered one can be checked. */
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <jansson.h>

#include "conf/smtpproxy.h"
#include "net/points/fault.h"
#include "net/report/log.h"
#include "net/socket/address.h"
#include "net/stream/stream.h"
#include "smtpproxy/queue/queue.h"
#include "tests/lib/queue_stats_json.h"

#define ARGUMENTS_MAX 8

static struct {
	struct worker *worker;
	struct stream control;
	struct queue_conf conf;
	struct queue *queue;
	struct key_ring keys;
	struct {
		size_t left, waiting, count, size, window;
		char destination[256];
		int64_t began_ms;
		enum { LOAD_IDLE, LOAD_RUNS } state;
	} load;
	enum { DELIVER_BY_COMMAND, DELIVER_AT_ONCE } deliver; /* AT_ONCE: inside on_due */
} driver;

struct transaction {
	struct queue_receipt receipt;
	char token[64];
};

static void say(json_t *answer)
{
	char *text = json_dumps(answer, JSON_COMPACT);

	stream_write(&driver.control, text, strlen(text));
	stream_write(&driver.control, "\n", 1);
	free(text);
	json_decref(answer);
}

static void say_event(const char *event)
{
	say(json_pack("{s:s}", "event", event));
}

static struct content_bytes bytes_of(const char *text)
{
	return (struct content_bytes){ .data = (const uint8_t *)text, .len = text ? strlen(text) : 0 };
}

static char *body_of(const char *token, size_t size)
{
	char *body = malloc(size + 1);
	size_t len = strlen(token);

	for (size_t i = 0; i < size; i++)
		body[i] = i % (len + 1) == len ? ' ' : token[i % (len + 1)];
	body[size] = '\0';
	return body;
}

static int add(const char *token, const char *destination, size_t size, const char *tx, const char *reply,
	struct queue_receipt *r)
{
	char *body = body_of(token, size);
	struct queue_mail m = {
		.destination = bytes_of(destination),
		.envelope = bytes_of(token),
		.body = { .data = (const uint8_t *)body, .len = size },
		.transaction = bytes_of(tx),
		.reply = bytes_of(reply),
	};
	int error = queue_add(driver.queue, &m, r);

	free(body);
	return error;
}

static void on_stored(struct queue_receipt *r, enum queue_outcome outcome)
{
	static const char *const outcomes[] = { "stored", "refused", "lost" };
	struct transaction *t = (struct transaction *)r;

	say(json_pack("{s:s,s:s,s:I}", "event", outcomes[outcome], "token", t->token, "id", (json_int_t)r->id));
	free(t);
}

static void command_add(int argc, char **argv)
{
	struct transaction *t = calloc(1, sizeof *t);
	int error;

	t->receipt.on_stored = on_stored;
	snprintf(t->token, sizeof t->token, "%s", argv[1]);
	error = add(argv[1], argv[2], strtoul(argv[3], NULL, 10), argc > 4 ? argv[4] : NULL, argc > 5 ? argv[5] : NULL,
		&t->receipt);
	if (!error)
		return;
	say(json_pack("{s:s,s:s,s:i}", "event", "not added", "token", argv[1], "error", error));
	free(t);
}

static void load_further(void);

static void on_load_stored(struct queue_receipt *r, enum queue_outcome outcome)
{
	free(r);
	driver.load.waiting--;
	if (outcome != QUEUE_STORED)
		driver.load.count--;
	load_further();
}

static void load_end(void)
{
	struct rusage usage;

	if (driver.load.left || driver.load.waiting || driver.load.state == LOAD_IDLE)
		return;
	getrusage(RUSAGE_SELF, &usage);
	driver.load.state = LOAD_IDLE;
	say(json_pack("{s:s,s:I,s:I,s:I}", "event", "loaded", "count", (json_int_t)driver.load.count, "ms",
		(json_int_t)(redis_link_clock_ms() - driver.load.began_ms), "rss_kb", (json_int_t)usage.ru_maxrss));
}

static void load_further(void)
{
	char token[64];

	while (driver.load.left && driver.load.waiting < driver.load.window) {
		struct queue_receipt *r = calloc(1, sizeof *r);

		r->on_stored = on_load_stored;
		snprintf(token, sizeof token, "load%zu", driver.load.left);
		if (add(token, driver.load.destination, driver.load.size, NULL, NULL, r)) {
			free(r);
			break;
		}
		driver.load.left--;
		driver.load.waiting++;
	}
	load_end();
}

static void command_load(int argc, char **argv)
{
	driver.load.left = driver.load.count = strtoul(argv[1], NULL, 10);
	driver.load.size = strtoul(argv[2], NULL, 10);
	snprintf(driver.load.destination, sizeof driver.load.destination, "%s", argv[3]);
	driver.load.window = argc > 4 ? strtoul(argv[4], NULL, 10) : 1000;
	driver.load.state = LOAD_RUNS;
	driver.load.began_ms = redis_link_clock_ms();
	load_further();
}

static int body_is_whole(const struct queue_taken *t)
{
	char token[64], *body;
	int is;

	snprintf(token, sizeof token, "%.*s", (int)t->envelope.len, (const char *)t->envelope.data);
	body = body_of(token, t->body.len);
	is = !memcmp(body, t->body.data, t->body.len);
	free(body);
	return is;
}

/* The next message that can be opened. */
static int take(struct content_bytes destination, struct queue_taken *t)
{
	int r;

	do {
		r = queue_take(driver.queue, destination, t);
		if (r)
			return r;
		r = queue_open(driver.queue, t);
	} while (r == QUEUE_NONE);
	return r;
}

static void command_take(int argc, char **argv)
{
	struct queue_taken t;
	int error = take(bytes_of(argv[1]), &t);

	if (error) {
		say(json_pack("{s:i}", "error", error));
		return;
	}
	say(json_pack("{s:I,s:s%,s:i,s:s%,s:b,s:i}", "id", (json_int_t)t.id, "token", t.envelope.data, t.envelope.len,
		"attempts", (int)t.attempts, "note", t.note.data ? (const char *)t.note.data : "", t.note.len, "whole",
		body_is_whole(&t), "size", (int)t.body.len));
	queue_taken_free(&t);
}

static void command_drain(int argc, char **argv)
{
	json_t *tokens = json_array();
	struct queue_taken t;
	size_t most = argc > 2 ? strtoul(argv[2], NULL, 10) : SIZE_MAX;
	size_t bad = 0;
	uint64_t id;

	while (most-- && queue_may_deliver(driver.queue) && !take(bytes_of(argv[1]), &t)) {
		json_array_append_new(tokens, json_stringn((const char *)t.envelope.data, t.envelope.len));
		bad += !body_is_whole(&t);
		id = t.id;
		queue_taken_free(&t);
		queue_done(driver.queue, id);
	}
	say(json_pack("{s:o,s:I,s:b}", "drained", tokens, "bad", (json_int_t)bad, "may_take",
		queue_may_take(driver.queue) && queue_may_deliver(driver.queue)));
}

static void answer(int result)
{
	say(json_pack("{s:i}", "result", result));
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 10);
}

static void command_done(int argc, char **argv)
{
	answer(queue_done(driver.queue, number(argv[1])));
}

static void command_retry(int argc, char **argv)
{
	answer(queue_retry(driver.queue, number(argv[1]), QUEUE_STEP_ATTEMPT,
		queue_now_ms(driver.queue) + (int64_t)number(argv[2]), bytes_of(argv[3])));
}

static void command_back(int argc, char **argv)
{
	answer(queue_put_back(driver.queue, number(argv[1]), 0, QUEUE_CLEAR));
}

static void command_bounce(int argc, char **argv)
{
	struct queue_mail notice;
	char *body;

	if (argc < 5) {
		answer(queue_bounce(driver.queue, number(argv[1]), NULL, bytes_of(NULL)));
		return;
	}
	body = body_of(argv[2], number(argv[4]));
	notice = (struct queue_mail){
		.destination = bytes_of(argv[3]), .envelope = bytes_of(argv[2]), .body = bytes_of(body)
	};
	answer(queue_bounce(driver.queue, number(argv[1]), &notice, bytes_of(argc > 5 ? argv[5] : NULL)));
	free(body);
}

static void command_try(int argc, char **argv)
{
	answer(queue_act(driver.queue, number(argv[1]), QUEUE_ACT_RETRY));
}

static void command_hold(int argc, char **argv)
{
	answer(queue_act(driver.queue, number(argv[1]), QUEUE_ACT_HOLD));
}

static void command_release(int argc, char **argv)
{
	answer(queue_act(driver.queue, number(argv[1]), QUEUE_ACT_RELEASE));
}

static void command_delete(int argc, char **argv)
{
	answer(queue_act(driver.queue, number(argv[1]), QUEUE_ACT_DELETE));
}

static void command_may(int argc, char **argv)
{
	answer(queue_may_deliver(driver.queue));
}

/* A decision comes with its message: here with one that is dropped when both are stored. */
static void on_decision_stored(struct queue_receipt *r, enum queue_outcome outcome)
{
	queue_forget(driver.queue, r);
	free(r);
}

static void command_decide(int argc, char **argv)
{
	struct queue_receipt *r = calloc(1, sizeof *r);
	const struct queue_mail m = {
		.destination = bytes_of("decided.example"),
		.envelope = bytes_of("decided"),
		.body = bytes_of("decided"),
		.transaction = bytes_of(argv[1]),
		.reply = bytes_of(argv[2]),
		.start = QUEUE_PARKED,
	};
	int error;

	r->on_stored = on_decision_stored;
	error = queue_add(driver.queue, &m, r);
	if (error)
		free(r);
	answer(error);
}

static void command_decided(int argc, char **argv)
{
	char reply[512];
	size_t len = 0;
	int r = queue_decided(driver.queue, bytes_of(argv[1]), reply, sizeof reply, &len);

	say(json_pack("{s:i,s:s%}", "result", r, "reply", reply, len));
}

static void command_takeover(int argc, char **argv)
{
	queue_take_over(driver.queue);
	answer(0);
}

/* order DESTINATION stop|start [RATE] */
static void command_order(int argc, char **argv)
{
	const enum destination_flow flow = strcmp(argv[2], "stop") ? DESTINATION_FLOWS : DESTINATION_STOPPED;

	answer(queue_order(driver.queue, bytes_of(argv[1]), flow, argc > 3 ? (uint32_t)number(argv[3]) : 0));
}

static void command_stats(int argc, char **argv)
{
	struct queue_stats s;

	queue_get_stats(driver.queue, &s);
	say(queue_stats_json(&s));
}

static void command_stop(int argc, char **argv)
{
	if (driver.queue)
		queue_stop(driver.queue, argc > 1 ? (uint32_t)number(argv[1]) : 5000);
}

static const struct {
	const char *name;
	int arguments;
	void (*run)(int argc, char **argv);
} commands[] = {
	{ "add", 4, command_add },
	{ "load", 4, command_load },
	{ "take", 2, command_take },
	{ "drain", 2, command_drain },
	{ "done", 2, command_done },
	{ "retry", 4, command_retry },
	{ "back", 2, command_back },
	{ "bounce", 2, command_bounce },
	{ "try", 2, command_try },
	{ "hold", 2, command_hold },
	{ "release", 2, command_release },
	{ "delete", 2, command_delete },
	{ "may", 1, command_may },
	{ "decide", 3, command_decide },
	{ "decided", 2, command_decided },
	{ "takeover", 1, command_takeover },
	{ "order", 3, command_order },
	{ "stats", 1, command_stats },
	{ "stop", 1, command_stop },
};

static void run_line(char *line)
{
	char *argv[ARGUMENTS_MAX], *save = NULL;
	int argc = 0;

	for (char *word = strtok_r(line, " \n", &save); word && argc < ARGUMENTS_MAX;
		word = strtok_r(NULL, " \n", &save))
		argv[argc++] = word;
	for (size_t i = 0; argc && i < sizeof commands / sizeof *commands; i++)
		if (!strcmp(argv[0], commands[i].name) && argc >= commands[i].arguments) {
			commands[i].run(argc, argv);
			return;
		}
	say_event("unknown command");
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	size_t used = 0;
	uint8_t *end;

	while ((end = memchr(data + used, '\n', len - used))) {
		*end = '\0';
		run_line((char *)data + used);
		used = (size_t)(end - data) + 1;
	}
	return used;
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	command_stop(0, NULL);
}

static void on_closed(struct stream *s)
{
}

static const struct stream_ops control_ops = { .on_data = on_data, .on_end = on_end, .on_closed = on_closed };

static void on_ready(void *user)
{
	say_event("ready");
	load_further();
}

static void on_unready(void *user)
{
	say_event("unready");
}

/* Takes and deletes all of the line. */
static void deliver(const struct queue_destination *d)
{
	struct content_bytes name = bytes_of(d->name);
	struct queue_taken t;
	char text[DESTINATION_NAME_MAX + 1];

	snprintf(text, sizeof text, "%s", d->name);
	name.data = (const uint8_t *)text;
	while (!take(name, &t)) {
		uint64_t id = t.id;

		say(json_pack("{s:s,s:s%}", "event", "delivered", "token", t.envelope.data, t.envelope.len));
		queue_taken_free(&t);
		queue_done(driver.queue, id);
	}
}

static void on_due(void *user, const struct queue_destination *d)
{
	if (driver.deliver == DELIVER_AT_ONCE) {
		deliver(d);
		return;
	}
	say(json_pack("{s:s,s:s}", "event", "due", "destination", d->name));
}

static void on_may_take(void *user)
{
	say_event("may take");
}

static void on_deposed(void *user)
{
	say_event("deposed");
}

static void on_stopped(void *user)
{
	queue_destroy(driver.queue);
	driver.queue = NULL;
	stream_close(&driver.control);
	worker_stop(driver.worker);
}

static const struct queue_ops queue_ops = {
	.on_ready = on_ready,
	.on_unready = on_unready,
	.on_due = on_due,
	.on_may_take = on_may_take,
	.on_deposed = on_deposed,
	.on_stopped = on_stopped,
};

static int set_number(struct queue_conf *c, const char *name, const char *value)
{
	const struct {
		const char *name;
		uint32_t *at;
	} numbers[] = {
		{ "lease_ms", &c->lease_ms },
		{ "absent_ms", &c->absent_ms },
		{ "replace_ms", &c->replace_ms },
		{ "takeover_ms", &c->takeover_ms },
		{ "path_timeout_ms", &c->path_timeout_ms },
		{ "give_up_ms", &c->give_up_ms },
		{ "decided_s", &c->decided_s },
		{ "decided_max", &c->decided_max },
		{ "defer_most_ms", &c->defer_most_ms },
		{ "messages_max", &c->messages_max },
		{ "destinations_max", &c->destinations_max },
	};

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!strcmp(name, numbers[i].name)) {
			*numbers[i].at = (uint32_t)number(value);
			return 0;
		}
	return -1;
}

static int set_paths(struct backup_conf *b, char *paths)
{
	char *save = NULL;

	for (char *p = strtok_r(paths, ",", &save); p && b->path_count < BACKUP_PATHS; p = strtok_r(NULL, ",", &save))
		if (address_parse(p, &b->paths[b->path_count++]))
			return -1;
	return 0;
}

static int set_role(struct queue_conf *c, const char *value)
{
	static const char *const roles[] = {
		[QUEUE_OWNER] = "owner", [QUEUE_STANDBY] = "standby", [QUEUE_ALONE] = "alone"
	};

	for (unsigned i = 0; i < sizeof roles / sizeof *roles; i++)
		if (!strcmp(value, roles[i])) {
			c->role = (enum queue_role)i;
			return 0;
		}
	return -1;
}

/* NAME=VALUE arguments. 0, or -1: not known. */
static int set(struct queue_conf *c, char *argument)
{
	char *value = strchr(argument, '=');

	if (!value)
		return -1;
	*value++ = '\0';
	if (!strncmp(argument, "backup", 6))
		return set_paths(&c->backups[argument[6] == '1'], value);
	if (!strncmp(argument, "spare", 5) && c->spare_count < SPARES_MAX)
		return set_paths(&c->spares[c->spare_count++], value);
	if (!strcmp(argument, "user"))
		c->backups[0].login.user = c->backups[1].login.user = value;
	else if (!strcmp(argument, "password"))
		c->backups[0].login.password = c->backups[1].login.password = value;
	else if (!strcmp(argument, "role"))
		return set_role(c, value);
	else if (!strcmp(argument, "memory_max"))
		c->memory_max = number(value);
	else if (!strcmp(argument, "deliver"))
		driver.deliver = !strcmp(value, "at_once") ? DELIVER_AT_ONCE : DELIVER_BY_COMMAND;
	else if (!strcmp(argument, "key"))
		return key_ring_parse(value, strlen(value), &driver.keys, &(unsigned){ 0 });
	else
		return set_number(c, argument, value);
	return 0;
}

int main(int argc, char **argv)
{
	int r;

	signal(SIGPIPE, SIG_IGN);
	if (sodium_init() < 0)
		return 1;
	driver.conf.name = "test";
	driver.conf.keys = &driver.keys;
	for (int i = 1; i < argc; i++)
		if (set(&driver.conf, argv[i])) {
			fprintf(stderr, "bad argument: %s\n", argv[i]);
			return 2;
		}
	log_open("queue", NULL, LOG_TEXT, LOG_DEBUG, NULL);
	fault_start("driver");
	driver.worker = worker_create(0, "queue");
	r = stream_open_fd(&driver.control, driver.worker, &control_ops, 0);
	if (r)
		return 1;
	stream_read_start(&driver.control);
	driver.queue = queue_create(driver.worker, &driver.conf, &queue_ops, NULL);
	if (!driver.queue)
		return 1;
	worker_run(driver.worker);
	worker_destroy(driver.worker);
	fault_stop();
	return 0;
}
