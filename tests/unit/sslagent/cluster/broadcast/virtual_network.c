/* virtual_network.c: a wheel of milliseconds, each with the datagrams that arrive then. */
#include "tests/unit/sslagent/cluster/broadcast/virtual_network.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/cluster/broadcast/sending_keys.h"

#define WHEEL        4096u
#define HEARTBEAT_MS 100
#define THREADS      2u /* of a node: a worker and its main thread */
#define WORKER       0u
#define MAIN         1u
#define NO_KEY       INT64_MAX

struct flying {
	struct flying *next;
	unsigned from, to;
	size_t len;
	uint8_t bytes[];
};

struct heard {
	uint16_t times[VALUES_MAX];
	int64_t age_ms[VALUES_MAX];
};

struct node {
	struct vnet *net;
	unsigned index;
	uint64_t boot_id;
	int64_t clock_ms; /* its clock at virtual time 0 */
	struct sending_keys *keys;
	int64_t next_key_at_ms; /* NO_KEY: none is on its way */
	struct broadcast_sender *senders[THREADS];
	struct broadcast_receiver *receiver;
	struct counter_array counters;
	struct heard **heard; /* by sender; NULL: nothing */
	unsigned *snapshots;
};

struct captured {
	unsigned from;
	size_t len;
	uint8_t bytes[DATAGRAM_MAX];
};

struct vnet {
	struct vnet_conf conf;
	int64_t now_ms;
	uint64_t random;
	struct flying *wheel[WHEEL], **wheel_end[WHEEL];
	uint8_t *cut; /* by from * nodes + to */
	enum { NOT_CAPTURING, CAPTURING } capture;
	struct captured *captured;
	size_t captured_count, captured_cap;
	struct node nodes[];
};

static void *zeroed(size_t len)
{
	void *p = calloc(1, len);

	if (!p)
		abort();
	return p;
}

/* xorshift64*: the same every time. */
static double chance(struct vnet *v)
{
	v->random ^= v->random >> 12;
	v->random ^= v->random << 25;
	v->random ^= v->random >> 27;
	return (double)((v->random * 2685821657736338717u) >> 11) / (double)(UINT64_C(1) << 53);
}

static int64_t clock_of(const struct node *n)
{
	return n->clock_ms + n->net->now_ms;
}

static void fly(struct vnet *v, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
	const struct vnet_quality *q = &v->conf.quality;
	struct flying *f = zeroed(sizeof(*f) + len);
	unsigned delay_ms = q->delay_ms + (q->jitter_ms ? (unsigned)(chance(v) * (q->jitter_ms + 1)) : 0);
	size_t slot = (size_t)(v->now_ms + delay_ms + 1) % WHEEL;

	f->from = from;
	f->to = to;
	f->len = len;
	memcpy(f->bytes, bytes, len);
	*v->wheel_end[slot] = f;
	v->wheel_end[slot] = &f->next;
}

static void launch(struct vnet *v, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
	if (v->cut[from * v->conf.nodes + to] == WAY_CUT || chance(v) < v->conf.quality.loss)
		return;
	fly(v, from, to, bytes, len);
	if (chance(v) < v->conf.quality.duplicate)
		fly(v, from, to, bytes, len);
}

static void keep_captured(struct vnet *v, unsigned from, const uint8_t *bytes, size_t len)
{
	if (v->captured_count == v->captured_cap) {
		v->captured_cap = v->captured_cap ? v->captured_cap * 2 : 256;
		v->captured = realloc(v->captured, v->captured_cap * sizeof(*v->captured));
		if (!v->captured)
			abort();
	}
	v->captured[v->captured_count].from = from;
	v->captured[v->captured_count].len = len;
	memcpy(v->captured[v->captured_count++].bytes, bytes, len);
}

static void on_emit(void *ctx, enum datagram_of what, int to, const uint8_t *datagram, size_t len)
{
	struct node *n = ctx;
	struct vnet *v = n->net;

	if (v->capture == CAPTURING)
		keep_captured(v, n->index, datagram, len);
	for (unsigned i = 0; i < v->conf.nodes; i++)
		if (i != n->index && (to == BROADCAST_ALL || (unsigned)to == i))
			launch(v, n->index, i, datagram, len);
}

static void on_say(void *ctx, unsigned sender, Cssl__BroadcastMessage *m)
{
	struct node *n = ctx;

	m->made_ms = clock_of(n);
	broadcast_sender_say(n->senders[MAIN], (int)sender, m);
}

static void on_probe(void *ctx, unsigned sender, const uint8_t *challenge)
{
	Cssl__BroadcastMessage m = CSSL__BROADCAST_MESSAGE__INIT;
	Cssl__Proof proof = CSSL__PROOF__INIT;
	uint64_t counters[THREADS], highest[THREADS];
	struct node *n = ctx;
	const uint32_t generation = broadcast_sender_renew_key(n->senders[MAIN]);

	for (unsigned i = 0; i < THREADS; i++) {
		struct broadcast_mark mark = broadcast_sender_mark(n->senders[i], (int)sender, generation);

		counters[i] = mark.next_counter;
		highest[i] = mark.highest;
	}
	proof.challenge = (ProtobufCBinaryData){ CHALLENGE_LEN, (uint8_t *)challenge };
	proof.n_counter = proof.n_highest = THREADS;
	proof.counter = counters;
	proof.highest = highest;
	m.what_case = CSSL__BROADCAST_MESSAGE__WHAT_PROOF;
	m.proof = &proof;
	on_say(n, sender, &m);
}

static void on_object(struct node *n, unsigned sender, const ProtobufCBinaryData *obj, const struct heard_times *times)
{
	unsigned value;

	if (obj->len != sizeof(value))
		return;
	memcpy(&value, obj->data, sizeof(value));
	if (!n->heard[sender])
		n->heard[sender] = zeroed(sizeof(struct heard));
	n->heard[sender]->times[value]++;
	n->heard[sender]->age_ms[value] = times->now_ms - times->made_ms;
}

static void on_message(void *ctx, unsigned sender, const Cssl__BroadcastMessage *m, const struct heard_times *times)
{
	struct node *n = ctx;

	if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ)
		on_object(n, sender, &m->ssl_obj, times);
	else if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_GAP && m->gap->worker < THREADS)
		broadcast_sender_repeat(
			n->senders[m->gap->worker], (int)sender, m->gap->first, m->gap->last, clock_of(n));
}

static void on_forgotten(void *ctx, unsigned sender)
{
	((struct node *)ctx)->snapshots[sender]++;
}

static const struct broadcast_receiver_ops receiver_ops = {
	.say = on_say,
	.on_probe = on_probe,
	.on_message = on_message,
	.on_forgotten = on_forgotten,
};

static void start(struct node *n)
{
	struct vnet *v = n->net;

	n->boot_id++;
	n->keys = sending_keys_create();
	n->next_key_at_ms = NO_KEY;
	n->clock_ms = (int64_t)(chance(v) * 1e12) - 500000000000; /* no two clocks are alike */
	for (unsigned i = 0; i < THREADS; i++) {
		struct broadcast_sender_conf conf = { .worker = (uint16_t)i,
			.boot_id = n->boot_id,
			.ring = v->conf.ring,
			.keys = n->keys,
			.emit = on_emit,
			.ctx = n };

		n->senders[i] = broadcast_sender_create(&conf);
		if (!n->senders[i])
			abort();
	}
	n->receiver = broadcast_receiver_create(v->conf.nodes, &receiver_ops, n);
	n->heard = zeroed(v->conf.nodes * sizeof(struct heard *));
	n->snapshots = zeroed(v->conf.nodes * sizeof(unsigned));
	if (!n->receiver)
		abort();
}

static void stop(struct node *n)
{
	for (unsigned i = 0; i < THREADS; i++)
		broadcast_sender_destroy(n->senders[i]);
	broadcast_receiver_destroy(n->receiver);
	sending_keys_destroy(n->keys);
	for (unsigned i = 0; i < n->net->conf.nodes; i++)
		free(n->heard[i]);
	free(n->heard);
	free(n->snapshots);
}

static void give(struct node *from, struct node *to, const struct sending_key *key, enum key_use use)
{
	struct given_key given = { .id = key->id, .aead = key->aead, .use = use };

	memcpy(given.secret, key->secret, sizeof(given.secret));
	counters_use(&to->counters);
	if (broadcast_receiver_meet(to->receiver, from->index, from->boot_id, THREADS - 1) != 0 ||
		broadcast_receiver_add_key(to->receiver, from->index, &given, clock_of(to)) != 0)
		abort();
	counters_use(NULL);
}

static void give_keys(struct node *from, struct node *to)
{
	struct sending_key keys[2];
	unsigned count = sending_keys_list(from->keys, keys);

	for (unsigned i = 0; i < count; i++)
		give(from, to, &keys[i], i == 0 ? KEY_IN_USE : KEY_NEXT);
}

void vnet_introduce(struct vnet *v, unsigned a, unsigned b)
{
	give_keys(&v->nodes[a], &v->nodes[b]);
	give_keys(&v->nodes[b], &v->nodes[a]);
}

struct vnet *vnet_create(const struct vnet_conf *conf)
{
	struct vnet *v = zeroed(sizeof(*v) + conf->nodes * sizeof(struct node));

	if (sodium_init() < 0)
		abort();
	v->conf = *conf;
	v->random = conf->seed * 2 + 1;
	v->cut = zeroed((size_t)conf->nodes * conf->nodes);
	for (unsigned slot = 0; slot < WHEEL; slot++)
		v->wheel_end[slot] = &v->wheel[slot];
	for (unsigned i = 0; i < conf->nodes; i++) {
		v->nodes[i].net = v;
		v->nodes[i].index = i;
		v->nodes[i].boot_id = (uint64_t)(i + 1) << 32;
		start(&v->nodes[i]);
	}
	for (unsigned a = 0; a < conf->nodes; a++)
		for (unsigned b = a + 1; b < conf->nodes; b++)
			vnet_introduce(v, a, b);
	return v;
}

void vnet_destroy(struct vnet *v)
{
	for (unsigned i = 0; i < v->conf.nodes; i++)
		stop(&v->nodes[i]);
	for (unsigned slot = 0; slot < WHEEL; slot++)
		for (struct flying *next, *f = v->wheel[slot]; f; f = next) {
			next = f->next;
			free(f);
		}
	free(v->captured);
	free(v->cut);
	free(v);
}

void vnet_set_quality(struct vnet *v, struct vnet_quality q)
{
	v->conf.quality = q;
}

void vnet_set_way(struct vnet *v, unsigned from, unsigned to, enum vnet_way way)
{
	v->cut[from * v->conf.nodes + to] = (uint8_t)way;
}

void vnet_restart(struct vnet *v, unsigned node)
{
	stop(&v->nodes[node]);
	start(&v->nodes[node]);
	for (unsigned i = 0; i < v->conf.nodes; i++)
		if (i != node)
			vnet_introduce(v, node, i);
}

void vnet_roll_key(struct vnet *v, unsigned node, unsigned after_ms)
{
	struct node *n = &v->nodes[node];
	struct sending_key keys[2];

	if (sending_keys_roll(n->keys, v->now_ms) != 0 || sending_keys_list(n->keys, keys) != 2)
		abort();
	n->next_key_at_ms = v->now_ms + after_ms;
	for (unsigned i = 0; i < v->conf.nodes; i++)
		if (i != node)
			give(n, &v->nodes[i], &keys[1], KEY_NEXT);
}

void vnet_tell(struct vnet *v, unsigned node, unsigned value)
{
	Cssl__BroadcastMessage m = CSSL__BROADCAST_MESSAGE__INIT;
	struct node *n = &v->nodes[node];

	m.made_ms = m.family_made_ms = clock_of(n);
	m.what_case = CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ;
	m.ssl_obj = (ProtobufCBinaryData){ sizeof(value), (uint8_t *)&value };
	if (broadcast_sender_number(n->senders[WORKER], BROADCAST_ALL, &m) != 0)
		abort();
}

void vnet_say(struct vnet *v, unsigned node, unsigned to, Cssl__BroadcastMessage *m)
{
	struct node *n = &v->nodes[node];

	m->made_ms = clock_of(n);
	broadcast_sender_say(n->senders[WORKER], (int)to, m);
}

void vnet_inject(struct vnet *v, unsigned to, const uint8_t *datagram, size_t len)
{
	struct node *n = &v->nodes[to];

	counters_use(&n->counters);
	broadcast_receiver_input(n->receiver, datagram, len, clock_of(n));
	counters_use(NULL);
}

static void heartbeat(struct node *n)
{
	Cssl__BroadcastMessage m = CSSL__BROADCAST_MESSAGE__INIT;
	Cssl__Heartbeat h = CSSL__HEARTBEAT__INIT;
	uint64_t highest[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		highest[i] = broadcast_sender_mark(n->senders[i], BROADCAST_ALL, 0).highest;
	h.n_highest = THREADS;
	h.highest = highest;
	m.what_case = CSSL__BROADCAST_MESSAGE__WHAT_HEARTBEAT;
	m.heartbeat = &h;
	m.made_ms = clock_of(n);
	broadcast_sender_say(n->senders[MAIN], BROADCAST_ALL, &m);
}

static void use_next_key(struct node *n)
{
	n->next_key_at_ms = NO_KEY;
	if (!sending_keys_step(n->keys, true, n->net->now_ms))
		abort();
	for (unsigned i = 0; i < THREADS; i++)
		broadcast_sender_renew_key(n->senders[i]);
}

static void step(struct node *n)
{
	struct vnet *v = n->net;

	counters_use(&n->counters);
	if (v->now_ms >= n->next_key_at_ms)
		use_next_key(n);
	if (v->now_ms % BROADCAST_TICK_MS == 0)
		broadcast_receiver_tick(n->receiver, clock_of(n));
	if ((v->now_ms + n->index) % HEARTBEAT_MS == 0)
		heartbeat(n);
	for (unsigned i = 0; i < THREADS; i++)
		broadcast_sender_flush(n->senders[i]);
	counters_use(NULL);
}

void vnet_run(struct vnet *v, unsigned ms)
{
	for (unsigned i = 0; i < ms; i++) {
		size_t slot = (size_t)++v->now_ms % WHEEL;
		struct flying *f = v->wheel[slot];

		v->wheel[slot] = NULL;
		v->wheel_end[slot] = &v->wheel[slot];
		for (struct flying *next; f; f = next) {
			next = f->next;
			vnet_inject(v, f->to, f->bytes, f->len);
			free(f);
		}
		for (unsigned node = 0; node < v->conf.nodes; node++)
			step(&v->nodes[node]);
	}
}

int64_t vnet_now_ms(const struct vnet *v)
{
	return v->now_ms;
}

unsigned vnet_heard(const struct vnet *v, unsigned at, unsigned from, unsigned value)
{
	const struct heard *h = v->nodes[at].heard[from];

	return h ? h->times[value] : 0;
}

unsigned vnet_heard_count(const struct vnet *v, unsigned at, unsigned from, unsigned values)
{
	unsigned count = 0;

	for (unsigned value = 0; value < values; value++)
		count += vnet_heard(v, at, from, value) > 0;
	return count;
}

int64_t vnet_age_ms(const struct vnet *v, unsigned at, unsigned from, unsigned value)
{
	return v->nodes[at].heard[from]->age_ms[value];
}

unsigned vnet_snapshots_wanted(const struct vnet *v, unsigned at, unsigned from)
{
	return v->nodes[at].snapshots[from];
}

uint64_t vnet_counted(const struct vnet *v, unsigned at, enum agent_counter which)
{
	return counter_get(&v->nodes[at].counters.at[which]);
}

struct broadcast_receiver *vnet_receiver(struct vnet *v, unsigned node)
{
	return v->nodes[node].receiver;
}

void vnet_capture(struct vnet *v)
{
	v->capture = CAPTURING;
}

size_t vnet_captured(const struct vnet *v)
{
	return v->captured_count;
}

const uint8_t *vnet_captured_at(const struct vnet *v, size_t i, size_t *len, unsigned *from)
{
	*len = v->captured[i].len;
	*from = v->captured[i].from;
	return v->captured[i].bytes;
}
