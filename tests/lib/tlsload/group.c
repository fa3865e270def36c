/* group.c */
#include "tests/lib/tlsload/group.h"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "bench/server/pattern.h"

#define CLIENTS_MAX 100000
#define DIGEST_STEP 65536u

static const struct word {
	const char *text;
	int value;
} versions[] = { { "both", VERSION_BOTH }, { "1.2", VERSION_12 }, { "1.3", VERSION_13 }, { NULL, 0 } },
  agains[] = { { "never", AGAIN_NEVER }, { "lost", AGAIN_LOST }, { "always", AGAIN_ALWAYS }, { NULL, 0 } },
  states[] = { { "asks", GROUP_ASKS }, { "waits", GROUP_WAITS }, { NULL, 0 } };

static const char *take_word(struct probe_args *args, const char *key, const struct word *words, int *out)
{
	const char *text = probe_text(args, key, words[0].text);

	for (; words->text; words++) {
		if (strcmp(words->text, text) == 0) {
			*out = words->value;
			return NULL;
		}
	}
	return key;
}

static unsigned take_count(struct probe_args *args, const char *key, unsigned otherwise)
{
	const long long n = probe_number(args, key, otherwise);

	return n < 0 || n > UINT32_MAX ? otherwise : (unsigned)n;
}

static int parse_target(const char *text, struct sockaddr_in *out)
{
	char host[INET_ADDRSTRLEN];
	unsigned port;

	out->sin_family = AF_INET;
	if (sscanf(text, "%15[0-9.]:%u", host, &port) != 2 || inet_pton(AF_INET, host, &out->sin_addr) != 1)
		return -1;
	out->sin_port = htons((uint16_t)port);
	return 0;
}

/* "/64k", "/1m", "/20m", "/12345": their answers are that long. */
static uint64_t size_of_path(const char *path)
{
	char *end;
	const uint64_t n = strtoull(path + 1, &end, 10);

	return n << (*end == 'k' ? 10 : *end == 'm' ? 20 : 0);
}

static void digest_body(struct group *g)
{
	static uint8_t piece[DIGEST_STEP];
	unsigned char digest[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
	for (uint64_t at = 0; at < g->body; at += DIGEST_STEP) {
		const size_t len = g->body - at < DIGEST_STEP ? (size_t)(g->body - at) : DIGEST_STEP;
		pattern_fill(piece, len, g->body, at);
		EVP_DigestUpdate(ctx, piece, len);
	}
	EVP_DigestFinal_ex(ctx, digest, NULL);
	EVP_MD_CTX_free(ctx);
	for (size_t i = 0; i < 32; i++)
		snprintf(g->sha256 + 2 * i, 3, "%02x", digest[i]);
}

static const char *take_request(struct group *g, struct probe_args *args)
{
	const char *ids = probe_text(args, "ids", NULL);

	snprintf(g->method, sizeof(g->method), "%s", probe_text(args, "method", "GET"));
	snprintf(g->path, sizeof(g->path), "%s", probe_text(args, "path", "/1k"));
	snprintf(g->id, sizeof(g->id), "%s", probe_text(args, "id", ""));
	g->body = (uint64_t)probe_number(args, "body", 0);
	g->rate = (uint64_t)probe_number(args, "rate", 0);
	if (strcmp(g->method, "GET") == 0) {
		g->expected.body = EXPECT_PATTERN;
		g->expected.size = (uint64_t)probe_number(args, "size", (long long)size_of_path(g->path));
	} else {
		g->expected.body = EXPECT_TEXT;
		digest_body(g);
	}
	if (ids && !(g->ids = fopen(ids, "w")))
		return "ids";
	return ids && !g->id[0] ? "id" : NULL;
}

static const char *take_arguments(struct group *g, struct probe_args *args)
{
	int version, again, state;
	const char *wrong;

	snprintf(g->name, sizeof(g->name), "%s", probe_text(args, "name", ""));
	if (!g->name[0])
		return "name";
	if (parse_target(probe_text(args, "to", ""), &g->to) < 0)
		return "to";
	if ((wrong = take_word(args, "version", versions, &version)) ||
		(wrong = take_word(args, "again", agains, &again)) ||
		(wrong = take_word(args, "run", states, &state)) || (wrong = take_request(g, args)))
		return wrong;
	g->version = version;
	g->again = again;
	g->state = (enum group_state)state;
	g->session = take_count(args, "resume", 0) ? SESSION_OFFERED : SESSION_FORGOTTEN;
	g->count = take_count(args, "count", 1);
	g->sources = take_count(args, "sources", 250);
	g->every_ms = take_count(args, "every_ms", 0);
	g->timeout_ms = take_count(args, "timeout_ms", 20000);
	g->times = take_count(args, "times", 0);
	g->key_update_every = take_count(args, "key_update_every", 0);
	g->head_every_ms = take_count(args, "head_every_ms", 0);
	g->keys_every_ms = take_count(args, "keys_every_ms", 0);
	g->keys_at_once = take_count(args, "keys_at_once", 1);
	g->at_once = take_count(args, "at_once", 32);
	g->stall_at = take_count(args, "stall_at", 0);
	g->stall_ms = take_count(args, "stall_ms", 0);
	if (g->count < 1 || g->count > CLIENTS_MAX)
		return "count";
	return probe_args_unused(args);
}

struct group *group_create(struct load *load, struct probe_args *args, const char **wrong)
{
	struct group *g = calloc(1, sizeof(*g));

	*wrong = "memory";
	if (!g)
		return NULL;
	g->load = load;
	*wrong = take_arguments(g, args);
	g->clients = *wrong ? NULL : calloc(g->count, sizeof(*g->clients));
	if (!g->clients) {
		group_destroy(g);
		return NULL;
	}
	for (unsigned i = 0; i < g->count; i++)
		client_start(&g->clients[i], g, i);
	g->unborn = g->count;
	return g;
}

void group_destroy(struct group *g)
{
	if (!g)
		return;
	for (unsigned i = 0; g->clients && i < g->count; i++)
		client_destroy(&g->clients[i]);
	free(g->clients);
	if (g->ids)
		fclose(g->ids);
	free(g);
}

static unsigned connecting(const struct group *g)
{
	return g->in_state[CLIENT_CONNECTING] + g->in_state[CLIENT_SHAKING];
}

void group_admit(struct group *g)
{
	while (g->unborn > 0 && g->state != GROUP_STOPPED && connecting(g) < g->at_once)
		client_come(&g->clients[g->count - g->unborn--]);
}

unsigned group_ask(struct group *g)
{
	unsigned asked = 0;

	for (unsigned i = 0; i < g->count; i++) {
		if (g->clients[i].state == CLIENT_READY) {
			client_ask(&g->clients[i]);
			asked++;
		}
	}
	return asked;
}

void group_stop(struct group *g)
{
	g->state = GROUP_STOPPED;
	g->unborn = 0;
	for (unsigned i = 0; i < g->count; i++)
		if (g->clients[i].state < CLIENT_READY)
			client_leave(&g->clients[i]);
}

void group_close(struct group *g)
{
	group_stop(g);
	for (unsigned i = 0; i < g->count; i++)
		client_leave(&g->clients[i]);
}

int group_kept_promise(const struct group *g)
{
	switch (g->promise.until) {
	case PROMISE_CONNECTED: return g->newcomers == 0;
	case PROMISE_QUIET: return g->in_state[CLIENT_ASKED] + g->in_state[CLIENT_MIDWAY] == 0;
	default: return 0;
	}
}

json_t *group_json(const struct group *g)
{
	json_t *all = tally_json(&g->tally);

	if (g->ids)
		fflush(g->ids);
	json_object_set_new(all, "clients", json_integer(g->count));
	json_object_set_new(all, "ready", json_integer(g->in_state[CLIENT_READY]));
	json_object_set_new(all, "under_way", json_integer(g->in_state[CLIENT_ASKED] + g->in_state[CLIENT_MIDWAY]));
	return all;
}
