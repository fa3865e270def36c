/* main.c: a RAgent that holds the true link.key and misuses it, for scenarios. It opens links to all agents of a
 * cluster file, serves clients of its own as a RAgent does, and does with what agents gave it whatever a command says.
 *
 *   hostile_ragent --config FILE --name NAME --listener LISTENER [--keep]
 *
 * Says "listening PORT", then answers one line of JSON for each line of JSON:
 *
 *   {"do": "links"}                       {"up": [names], "times": {name: how often it was up}}
 *   {"do": "clients"}                     [{"client", "stream", "id", "state", "agent", "epoch", "copy", position ...}]
 *   {"do": "adopt", "agent", "client"}    SSL_ID to that agent; what is not said is the truth: "id", "epoch", "cause",
 *                                         "listener", "copy": "own", "none", "garbled" or hexadecimal, "replay": true
 *                                         to give what the client said, and the fields of a position
 *                                         "take": true: if it is adopted, its client goes on there
 *   {"do": "replay", "agent"}             the last SSL_ID byte for byte
 *   {"do": "open", "id"}                  the next client that connects is opened under that id of a connection
 *   {"do": "prove", "agent", "hex"}       PROOF, now and on each later link to that agent
 *   {"do": "drop", "agent"}               ends the link; the next one follows
 *   {"do": "reattach", "agent", "client"} REATTACH to that agent; what is not said is the truth: "id", "epoch",
 * "stream"
 *   {"do": "frame", "agent", "stream", "type", "flags", "hex"}     any frame on any stream
 *   {"do": "flood", "agent", "count"}     so many openings, held with their first message said
 *   {"do": "scribble", "agent", "count"}  random bytes into the memory of that link
 *
 * Ends with its standard input. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netinet/in.h>
#include <sodium.h>

#include "net/loop/listener.h"
#include "net/loop/watch.h"
#include "net/points/fault.h"
#include "net/report/log.h"
#include "tests/lib/hostile/misuse.h"

#define LINE_MAX_LEN 65536u
#define AGENTS_MAX   16u

static struct {
	const char *config, *name, *listener;
	int keeps;
	struct worker *w;
	struct conf *conf;
	struct key_ring *ring;
	struct agent_link *links[AGENTS_MAX];
	struct held_client *clients;
	unsigned client_count, next_agent;
	uint8_t next_id[16];
	const uint8_t *next_is; /* next_id, or NULL: a random one */
	struct watch *input;
	char line[LINE_MAX_LEN];
	size_t line_len;
} self;

static void say(json_t *answer)
{
	json_dumpf(answer, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(answer);
}

/* --- things that a command names --- */

static struct agent_link *link_named(const json_t *command)
{
	const char *name = json_string_value(json_object_get(command, "agent"));

	for (size_t i = 0; i < self.conf->agent_count; i++)
		if (name && strcmp(agent_link_name(self.links[i]), name) == 0)
			return self.links[i];
	return NULL;
}

static struct held_client *client_named(const json_t *command)
{
	const json_t *number = json_object_get(command, "client");

	for (struct held_client *c = self.clients; c && number; c = c->next)
		if (c->number == (unsigned)json_integer_value(number))
			return c;
	return NULL;
}

/* --- commands --- */

static void do_links(const json_t *command)
{
	json_t *up = json_array(), *times = json_object();

	for (size_t i = 0; i < self.conf->agent_count; i++) {
		const char *name = agent_link_name(self.links[i]);
		if (agent_link_is_up(self.links[i]))
			json_array_append_new(up, json_string(name));
		json_object_set_new(times, name, json_integer(agent_link_times(self.links[i])));
	}
	say(json_pack("{s:o, s:o}", "up", up, "times", times));
}

static json_t *describe(const struct held_client *c)
{
	static const char *const states[] = { "handshaking", "owned", "frozen", "given", "over" };
	char id[2 * sizeof c->id + 1], copy[2 * COPY_MAX + 1];
	const struct position *p = &c->position;

	return json_pack("{s:i, s:i, s:I, s:I, s:s, s:s, s:s, s:i, s:i, s:s, s:I, s:I, s:I, s:i, s:i}", "client",
		(int)c->number, "stream", (int)c->at, "drained", (json_int_t)c->drained, "server_records",
		(json_int_t)p->server_records, "id", sodium_bin2hex(id, sizeof id, c->id, sizeof c->id), "state",
		states[c->state], "agent", agent_link_name(c->link), "epoch", (int)c->epoch, "said", (int)c->records,
		"copy", sodium_bin2hex(copy, sizeof copy, c->copy, c->copy_len), "client_records",
		(json_int_t)p->now.client_records, "read_sequence", (json_int_t)p->now.read_sequence, "write_sequence",
		(json_int_t)p->write_sequence, "read_generation", (int)p->now.read_generation, "write_generation",
		(int)p->write_generation);
}

static void do_clients(const json_t *command)
{
	json_t *all = json_array();

	for (const struct held_client *c = self.clients; c; c = c->next)
		json_array_append_new(all, describe(c));
	say(all);
}

static void do_adopt(const json_t *command)
{
	misuse_begin(self.w, client_named(command), link_named(command), command, say);
}

static void do_replay(const json_t *command)
{
	misuse_replay(self.w, link_named(command), say);
}

static void do_open(const json_t *command)
{
	const char *hex = json_string_value(json_object_get(command, "id"));
	size_t len = 0;

	if (hex)
		sodium_hex2bin(self.next_id, sizeof self.next_id, hex, strlen(hex), NULL, &len, NULL);
	self.next_is = self.next_id;
	say(json_pack("{s:i}", "bytes", (int)len));
}

static void do_prove(const json_t *command)
{
	const char *hex = json_string_value(json_object_get(command, "hex"));
	uint8_t proof[FRAME_PROOF_LEN] = { 0 };
	size_t len = 0;

	if (hex)
		sodium_hex2bin(proof, sizeof proof, hex, strlen(hex), NULL, &len, NULL);
	agent_link_prove(link_named(command), proof);
	say(json_pack("{s:i}", "bytes", (int)len));
}

static void do_drop(const json_t *command)
{
	agent_link_drop(link_named(command));
	say(json_object());
}

static void do_reattach(const json_t *command)
{
	misuse_reattach(self.w, client_named(command), link_named(command), command, say);
}

static void do_frame(const json_t *command)
{
	const char *hex = json_string_value(json_object_get(command, "hex"));
	uint8_t payload[LINE_MAX_LEN / 2];
	size_t len = 0;

	if (hex)
		sodium_hex2bin(payload, sizeof payload, hex, strlen(hex), NULL, &len, NULL);
	agent_link_send(link_named(command), (uint32_t)json_integer_value(json_object_get(command, "stream")),
		(enum frame_type)json_integer_value(json_object_get(command, "type")),
		(uint8_t)json_integer_value(json_object_get(command, "flags")), payload, len);
	say(json_object());
}

static const struct conf_agent *agent_named(const json_t *command)
{
	return conf_agent_find(self.conf, json_string_value(json_object_get(command, "agent")));
}

static void do_flood(const json_t *command)
{
	const json_int_t count = json_integer_value(json_object_get(command, "count"));
	unsigned open = 0;

	for (json_int_t i = 0; i < count; i++)
		open += agent_link_half_open(self.ring, agent_named(command), self.name) >= 0;
	say(json_pack("{s:i}", "open", (int)open));
}

static void do_scribble(const json_t *command)
{
	const unsigned count = (unsigned)json_integer_value(json_object_get(command, "count"));

	say(json_pack("{s:i}", "written", (int)agent_link_scribble(link_named(command), count)));
}

/* --- a table of them --- */

static const struct {
	const char *word;
	void (*fn)(const json_t *command);
	int needs_agent;
} commands[] = {
	{ "links", do_links, 0 },
	{ "clients", do_clients, 0 },
	{ "adopt", do_adopt, 1 },
	{ "replay", do_replay, 1 },
	{ "open", do_open, 0 },
	{ "prove", do_prove, 1 },
	{ "drop", do_drop, 1 },
	{ "reattach", do_reattach, 1 },
	{ "frame", do_frame, 1 },
	{ "flood", do_flood, 1 },
	{ "scribble", do_scribble, 1 },
};

static void obey(const char *line, size_t len)
{
	json_t *command = json_loadb(line, len, 0, NULL);
	const char *word = json_string_value(json_object_get(command, "do"));

	for (size_t i = 0; word && i < sizeof commands / sizeof commands[0]; i++) {
		if (strcmp(commands[i].word, word) != 0)
			continue;
		if (commands[i].needs_agent && !link_named(command))
			break;
		commands[i].fn(command);
		json_decref(command);
		return;
	}
	say(json_pack("{s:s}", "error", "not understood"));
	json_decref(command);
}

static void on_input(void *ctx)
{
	const size_t had = self.line_len;
	const ssize_t len = had < sizeof self.line ? read(STDIN_FILENO, self.line + had, sizeof self.line - had) : 0;
	char *end;

	if (len <= 0)
		exit(EXIT_SUCCESS);
	self.line_len += (size_t)len;
	while ((end = memchr(self.line, '\n', self.line_len))) {
		const size_t used = (size_t)(end + 1 - self.line);
		obey(self.line, used);
		memmove(self.line, end + 1, self.line_len - used);
		self.line_len -= used;
	}
}

/* --- clients --- */

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct agent_link *link = NULL;

	for (size_t i = 0; i < self.conf->agent_count && !link; i++) {
		struct agent_link *l = self.links[self.next_agent++ % self.conf->agent_count];
		if (agent_link_is_up(l))
			link = l;
	}
	if (!link) {
		close(fd);
		return;
	}
	struct held_client *c =
		held_client_create(self.w, fd, self.listener, link, !self.keeps, self.client_count++, self.next_is);
	self.next_is = NULL;
	c->next = self.clients;
	self.clients = c;
}

static void on_closed(void *ctx)
{
}

static const struct listener_ops listener_ops = { .on_accept = on_accept, .on_closed = on_closed };

static void listen_for_clients(void)
{
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_storage at;
	int error = 0;
	struct listener *l =
		listener_create(self.w, (const struct sockaddr *)&any, 128, 0, &listener_ops, NULL, &error);

	if (!l || listener_address(l, &at) < 0)
		exit(EXIT_FAILURE);
	printf("listening %u\n", ntohs(((struct sockaddr_in *)&at)->sin_port));
	fflush(stdout);
}

/* --- begin --- */

static int parse(int argc, char **argv)
{
	static const struct option options[] = { { "config", required_argument, NULL, 'c' },
		{ "name", required_argument, NULL, 'n' }, { "listener", required_argument, NULL, 'l' },
		{ "keep", no_argument, NULL, 'k' }, { NULL, 0, NULL, 0 } };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'c': self.config = optarg; break;
		case 'n': self.name = optarg; break;
		case 'l': self.listener = optarg; break;
		case 'k': self.keeps = 1; break;
		default: return -1;
		}
	}
	return self.config && self.name && self.listener ? 0 : -1;
}

int main(int argc, char **argv)
{
	char error[4096] = "";

	if (parse(argc, argv) != 0 || sodium_init() < 0) {
		fprintf(stderr, "hostile_ragent: --config FILE, --name NAME and --listener LISTENER are needed\n");
		return EXIT_FAILURE;
	}
	log_set_level(LOG_ERROR);
	fault_start("hostile");
	if (conf_load(self.config, &self.conf, error, sizeof error) < 0 || self.conf->agent_count > AGENTS_MAX ||
		!(self.ring = conf_read_key(self.conf->link_key, error, sizeof error))) {
		fprintf(stderr, "hostile_ragent: %s\n", error);
		return EXIT_FAILURE;
	}
	self.w = worker_create(0, "hostile");
	for (size_t i = 0; i < self.conf->agent_count; i++)
		self.links[i] = agent_link_create(self.w, self.ring, &self.conf->agents[i], self.name);
	listen_for_clients();
	self.input = watch_start(self.w, STDIN_FILENO, on_input, NULL);
	return worker_run(self.w);
}
