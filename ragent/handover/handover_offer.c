/* handover_offer.c: a changed cluster file may add listeners, addresses and agents. It must still name all listeners
 * and agents in use: a connection of a removed listener, or a link to a removed agent, could not go on.
 */
#include "ragent/handover/handover_offer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "conf/memory.h"
#include "net/limits/admission.h"
#include "proto/error.h"
#include "proto/fields.h"

enum {
	TAG_FORMAT = 1,
	TAG_NAME = 2,
	TAG_WORKERS = 3,
	TAG_BOOT_ID = 4,
	TAG_WINDOW = 5,
	TAG_CONNECTIONS = 6,
	TAG_AGENT = 7,    /* links up (2) | workers (2) | name; in the order of its index */
	TAG_LISTENER = 8, /* name; likewise */
	TAG_BLOCKED = 9,  /* net/limits/blocked.h */
	TAG_NEXT = 10,    /* in the next format */
};

enum { TAG_SOCKET = 1 }; /* worker (2) | key */

static unsigned format_max = HANDOVER_FORMAT;

void handover_act_as_release(unsigned format)
{
	format_max = format;
}

/* --- writing --- */

static int put_number(struct handover_message *m, uint16_t tag, uint64_t value)
{
	uint8_t bytes[8];

	wire_store_u64(bytes, value);
	return handover_message_put_field(m, tag, bytes, sizeof bytes, NULL);
}

/* HELLO: the first format that it reads (2) | the last one (2). What later releases say behind them changes nothing. */
int handover_hello_pack(struct handover_message *m)
{
	uint8_t formats[4];

	wire_store_u16(formats, HANDOVER_FORMAT_MIN);
	wire_store_u16(formats + 2, (uint16_t)format_max);
	handover_message_begin(m, HANDOVER_HELLO);
	return handover_message_put(m, formats, sizeof formats);
}

static int put_agents(struct handover_message *m, const struct agents *agents)
{
	int r = 0;

	for (int a = 0; r == 0 && a < (int)agents_count(agents); a++) {
		struct agent_status s;
		uint8_t front[4];
		agents_status(agents, a, &s);
		wire_store_u16(front, (uint16_t)s.links_up);
		wire_store_u16(front + 2, (uint16_t)agents_conf(agents, a)->workers);
		r = handover_message_put_field(m, TAG_AGENT, front, sizeof front, s.name);
	}
	return r;
}

static int put_blocked(struct handover_message *m, struct blocked *blocked)
{
	uint8_t packed[BLOCKED_PACKED_MAX];
	const size_t len = blocked_pack(blocked, notes_now_ns() / 1000000, packed);

	return len > BLOCKED_MADE_LEN ? handover_message_put_field(m, TAG_BLOCKED, packed, len, NULL) : 0;
}

int handover_offer_pack(
	struct handover_message *m, unsigned format, const struct ragent_shared *shared, unsigned workers)
{
	const struct {
		uint16_t tag;
		uint64_t value;
	} numbers[] = {
		{ TAG_FORMAT, format },
		{ TAG_WORKERS, workers },
		{ TAG_BOOT_ID, shared->boot_id },
		{ TAG_WINDOW, shared->conf->limits.window_len },
		{ TAG_CONNECTIONS, admission_total(shared->admission) },
	};
	int r = 0;

	handover_message_begin(m, HANDOVER_OFFER);
	for (size_t i = 0; r == 0 && i < sizeof numbers / sizeof numbers[0]; i++)
		r = put_number(m, numbers[i].tag, numbers[i].value);
	if (r == 0)
		r = handover_message_put_field(m, TAG_NAME, "", 0, shared->self->name);
	if (r == 0)
		r = put_agents(m, shared->agents);
	for (size_t f = 0; r == 0 && f < shared->front_count; f++)
		r = handover_message_put_field(m, TAG_LISTENER, "", 0, shared->fronts[f].conf->name);
	if (r == 0)
		r = put_blocked(m, shared->blocked);
	if (r == 0 && format > HANDOVER_FORMAT)
		r = handover_message_put_field(m, TAG_NEXT, "", 0, NULL);
	return r;
}

int handover_socket_pack(struct handover_message *m, const char *key, unsigned worker, int fd)
{
	uint8_t front[2];

	wire_store_u16(front, (uint16_t)worker);
	int r = handover_message_put_field(m, TAG_SOCKET, front, sizeof front, key);
	if (r == 0)
		handover_message_put_fd(m, fd);
	return r;
}

/* --- reading --- */

int handover_hello_read(const struct handover_message *m)
{
	struct wire_reader r = wire_reader(m->data, m->len);
	const unsigned least = wire_u16(&r), most = wire_u16(&r), latest = most < format_max ? most : format_max;

	if (!r.at || most == 0)
		return CSSL_E_TRUNCATED;
	return latest >= least && latest >= HANDOVER_FORMAT_MIN ? (int)latest : CSSL_E_VERSION;
}

struct reading {
	struct ragent_shared *shared;
	struct handover_map *map;
	uint64_t format, workers, boot_id, window, connections;
	char *error;
	size_t error_cap;
};

__attribute__((format(printf, 3, 4))) static int offer_refuse(
	const struct reading *o, int result, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(o->error, o->error_cap, format, args);
	va_end(args);
	return result;
}

static bool is_text(const char *text, const uint8_t *bytes, size_t len)
{
	return strlen(text) == len && memcmp(text, bytes, len) == 0;
}

static int offer_read_name(struct reading *o, const struct field_item *item)
{
	if (is_text(o->shared->self->name, item->value, item->len))
		return 0;
	return offer_refuse(o, CSSL_E_MISMATCH, "the running one is %.*s, not %s", (int)item->len,
		(const char *)item->value, o->shared->self->name);
}

static int read_agent(struct reading *o, const struct field_item *item)
{
	struct handover_map *map = o->map;
	struct wire_reader r = wire_reader(item->value, item->len);
	unsigned links_up = wire_u16(&r), workers = wire_u16(&r);
	size_t len = wire_left(&r);
	const uint8_t *name = wire_bytes(&r, len);
	int ours = NO_AGENT;

	if (!name || map->agent_count == AGENTS_MAX)
		return offer_refuse(o, CSSL_E_RANGE, "a malformed agent");
	for (int a = 0; a < (int)agents_count(o->shared->agents); a++)
		if (is_text(agents_name(o->shared->agents, a), name, len))
			ours = a;
	map->agents[map->agent_count++] = ours;
	if (links_up == 0 || (ours != NO_AGENT && agents_conf(o->shared->agents, ours)->workers >= workers))
		return 0;
	return offer_refuse(o, CSSL_E_MISMATCH,
		"agent %.*s is up and the cluster file has it no more, or with fewer workers: drain and stop it first",
		(int)len, (const char *)name);
}

static int read_listener(struct reading *o, const struct field_item *item)
{
	struct handover_map *map = o->map;
	struct front **fronts = realloc(map->fronts, (map->front_count + 1) * sizeof(struct front *));

	if (!fronts)
		return offer_refuse(o, CSSL_E_NO_MEMORY, "out of memory");
	map->fronts = fronts;
	for (size_t f = 0; f < o->shared->front_count; f++) {
		if (!is_text(o->shared->fronts[f].conf->name, item->value, item->len))
			continue;
		fronts[map->front_count++] = &o->shared->fronts[f];
		return 0;
	}
	return offer_refuse(o, CSSL_E_MISMATCH,
		"the cluster file has no listener %.*s any more, which is being listened on", (int)item->len,
		(const char *)item->value);
}

static int read_item(struct reading *o, const struct field_item *item)
{
	switch (item->tag) {
	case TAG_FORMAT: return field_number(item, UINT64_MAX, &o->format);
	case TAG_NAME: return offer_read_name(o, item);
	case TAG_WORKERS: return field_number(item, UINT64_MAX, &o->workers);
	case TAG_BOOT_ID: return field_number(item, UINT64_MAX, &o->boot_id);
	case TAG_WINDOW: return field_number(item, UINT64_MAX, &o->window);
	case TAG_CONNECTIONS: return field_number(item, UINT64_MAX, &o->connections);
	case TAG_AGENT: return read_agent(o, item);
	case TAG_LISTENER: return read_listener(o, item);
	case TAG_BLOCKED:
		return blocked_unpack(o->shared->blocked, 0, item->value, item->len, notes_now_ns() / 1000000);
	default:
		/* law 16: what is not understood may change what the rest means */
		if (item->tag == TAG_NEXT && format_max > HANDOVER_FORMAT)
			return 0;
		return offer_refuse(o, CSSL_E_VERSION, "a newer release is running");
	}
}

static int check_descriptors(const struct reading *o)
{
	const uint64_t needed = memory_descriptors_of_ragent(o->shared->conf, o->shared->self, o->connections);
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || needed <= files.rlim_cur)
		return 0;
	return offer_refuse(o, CSSL_E_SYSTEM, "%llu descriptors may be needed, %llu are allowed here",
		(unsigned long long)needed, (unsigned long long)files.rlim_cur);
}

static int offer_check(const struct reading *o)
{
	const struct ragent_shared *s = o->shared;

	if (o->format < HANDOVER_FORMAT_MIN || o->format > format_max)
		return offer_refuse(o, CSSL_E_VERSION, "a release is running whose state this one does not read");
	if (o->workers != s->self->workers)
		return offer_refuse(o, CSSL_E_MISMATCH,
			"%llu workers are running, the cluster file says %u: they must be as many",
			(unsigned long long)o->workers, s->self->workers);
	if (o->window != s->conf->limits.window_len)
		return offer_refuse(o, CSSL_E_MISMATCH,
			"the window is %llu bytes, the cluster file says %u: agents go by the same",
			(unsigned long long)o->window, s->conf->limits.window_len);
	return check_descriptors(o);
}

int handover_offer_read(const struct handover_message *m, struct ragent_shared *shared, struct handover_map *map,
	char *error, size_t error_cap)
{
	struct reading o = { .shared = shared, .map = map, .error = error, .error_cap = error_cap };
	struct wire_reader r = wire_reader(m->data, m->len);
	struct field_item item;
	int result;

	*map = (struct handover_map){ 0 };
	snprintf(error, error_cap, "a malformed offer");
	while ((result = field_next(&r, &item)) == 0) {
		result = read_item(&o, &item);
		if (result < 0)
			return result;
	}
	if (result < 0)
		return result;
	result = offer_check(&o);
	if (result == 0)
		shared->boot_id = o.boot_id;
	return result;
}

void handover_map_clear(struct handover_map *map)
{
	free(map->fronts);
	*map = (struct handover_map){ 0 };
}

int handover_sockets_read(struct handover_message *m, struct passed_sockets *out)
{
	struct wire_reader r = wire_reader(m->data, m->len);
	struct field_item item;
	char key[NOTES_KEY_MAX];
	int result;

	while ((result = field_next(&r, &item)) == 0) {
		if (item.tag != TAG_SOCKET || item.len <= 2 || item.len - 2 >= sizeof key)
			return CSSL_E_RANGE;
		int fd = handover_message_take_fd(m);
		if (fd < 0)
			return CSSL_E_TRUNCATED;
		memcpy(key, item.value + 2, item.len - 2);
		key[item.len - 2] = '\0';
		result = passed_sockets_add(out, key, wire_load_u16(item.value), fd);
		if (result < 0)
			return result;
	}
	return result < 0 ? result : 0;
}
