/* succession.c: what an owner leaves for its successors: the position, and its live part as a sealed copy and by
 * broadcast; and what the peers hear of its keys.
 */
#include "sslagent/connection/succession.h"

#include <protobuf-c/protobuf-c.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/points/audit.h"
#include "net/points/mutant.h"
#include "proto/error.h"
#include "proto/sealed_copy.h"
#include "sslagent/connection/conversation.h"
#include "sslagent/counters.h"
#include "sslagent/service/sealed_note.h"

#define LIVE_PART_LIFETIME_S (7u * 24u * 3600u)

static enum conf_service service_of(const struct connection *c, const char *alpn, const struct conf_alpn **row)
{
	const struct conf_listener *l = tls_listener_conf(c->listener);

	*row = NULL;
	for (size_t i = 0; alpn[0] && i < l->alpn_count; i++) {
		if (strcmp(l->alpn[i].protocol, alpn) == 0) {
			*row = &l->alpn[i];
			return l->alpn[i].service;
		}
	}
	return l->service;
}

void connection_choose_service(struct connection *c, const struct session_facts *facts)
{
	const struct conf_alpn *row;

	service_destroy(&c->service);
	service_init(&c->service, service_of(c, facts->alpn, &row), &c->home->service_blocks);
	service_of_listener(&c->service, tls_listener_conf(c->listener));
	c->backend_name = row ? row->backend : tls_listener_conf(c->listener)->backend;
}

/* --- copies --- */

/* Each export has a token and a time of its own: RAgent shows the token, agents check the time. */
static void date_part(struct connection *c, struct live_part *part)
{
	randombytes_buf(part->token, sizeof part->token);
	memcpy(c->token, part->token, sizeof c->token);
	part->made_ms = cluster_shared_clock_ms(c->home->cluster);
	part->remaining_s = LIVE_PART_LIFETIME_S;
}

static int seal_copy(struct connection *c, struct sess_obj *obj, struct live_part *part, uint8_t **out, size_t *out_len)
{
	uint8_t copy[SEALED_COPY_MAX];

	date_part(c, part);
	obj->live = part;
	ptrdiff_t len = sealed_copy_seal(c->home->agents_key, obj, copy, sizeof copy);
	if (len < 0)
		return (int)len;
	*out = malloc((size_t)len);
	if (!*out)
		return CSSL_E_NO_MEMORY;
	memcpy(*out, copy, (size_t)len);
	*out_len = (size_t)len;
	return 0;
}

/* Sends only the copy: a client can ask for new keys as often as it likes, and a broadcast would cost every agent.
 * The peers now know older generations only, so an adopter uses the copy. */
int succession_send_copy(struct connection *c, enum live_moment moment)
{
	struct sess_obj obj;
	struct live_part part;
	Cssl__LinkCopy copy = CSSL__LINK_COPY__INIT;

	if (moment == LIVE_AFTER_KEY_UPDATE)
		audit_copied(c->id.bytes, c->epoch);
	if (!succession_is_possible(c))
		return 0;
	int r = kept_facts_read(&c->facts, &obj);
	if (r < 0)
		return r;
	r = live_describe(c->live, moment, &part);
	if (r == 0)
		r = seal_copy(c, &obj, &part, &copy.sealed_copy.data, &copy.sealed_copy.len);
	if (r == 0) {
		copy.read_generation = part.read_generation;
		copy.write_generation = part.write_generation;
		c->carrier->ops->say(c->carrier, FRAME_COPY, &copy.base);
		free(copy.sealed_copy.data);
	}
	obj.live = NULL;
	sess_obj_destroy(&obj);
	live_part_wipe(&part);
	return r;
}

/* --- KEPT and HANDED_OFF --- */

static void fill_position(const struct connection *c, const struct live_part *part, Cssl__Position *p)
{
	p->client_records = c->client_records - (c->live ? live_unfinished(c->live) : 0);
	p->offset = c->skip;
	p->read_generation = part->read_generation;
	p->read_sequence = part->read_sequence;
	p->server_records = c->server_records;
	p->write_generation = part->write_generation;
	p->write_sequence = part->write_sequence;
}

/* Send KEPT or HANDED_OFF, with the copy if this connection can move at all. */
int succession_announce(struct connection *c, enum frame_type type, struct sess_obj *obj, struct live_part *part,
	Cssl__Handshake *handshake, Cssl__BackendHalf backend)
{
	Cssl__LinkLive live = CSSL__LINK_LIVE__INIT;
	Cssl__Position position = CSSL__POSITION__INIT;
	int r = 0;

	if (!carrier_moves(c->carrier))
		return 0;
	if (succession_is_possible(c)) {
		r = seal_copy(c, obj, part, &live.sealed_copy.data, &live.sealed_copy.len);
		if (r < 0)
			return r;
	}
	fill_position(c, part, &position);
	live.position = &position;
	live.handshake = handshake;
	live.backend = backend;
	live.at_checkpoint = conversation_at_checkpoint(c);
	live.read_closed = c->from_client != HALF_OPEN;
	live.write_closed = c->from_backend == HALF_CLOSED;
	c->carrier->ops->say(c->carrier, type, &live.base);
	free(live.sealed_copy.data);
	return 0;
}

void succession_tell_peers(struct connection *c, const struct sess_obj *obj)
{
	if (succession_is_possible(c))
		cluster_share_live(c->home->cluster, c->home->worker, obj);
}

/* --- where it seals --- */

struct seen_mark succession_mark(const struct connection *c)
{
	struct seen_mark mark = { .epoch = c->epoch };

	if (c->live) {
		const struct live_position at = live_position(c->live);
		mark.write_generation = at.write_generation;
		mark.write_sequence = at.write_sequence;
	} else if (c->frozen) {
		mark.write_generation = c->frozen->write_generation;
		mark.write_sequence = c->frozen->write_sequence;
	}
	return mark;
}

uint16_t succession_owner(const struct connection *c)
{
	return carrier_moves(c->carrier) ? (uint16_t)(worker_index(c->home->worker) + 1) : SEEN_NO_OWNER;
}

/* Peers hear of the newest keys that often at most; a client may ask for a KeyUpdate every second. */
#define KEYS_TOLD_EVERY_MS 10000u

/* No peer may use keys that are older than these. Those that could not be told yet are told with a later ACCEPTED. */
static void tell_keys(struct connection *c)
{
	const uint32_t now_ms = (uint32_t)worker_now_ms(c->home->worker);
	const struct seen_mark at = succession_mark(c);

	if (c->keys_told != KEYS_TOLD_NEVER && now_ms - c->keys_told_ms < KEYS_TOLD_EVERY_MS) {
		c->keys_told = KEYS_UNTOLD;
		cluster_note(c->home->cluster, &c->id, &at);
		return;
	}
	c->keys_told = KEYS_TOLD;
	c->keys_told_ms = now_ms;
	cluster_tell_adopted(
		c->home->cluster, c->home->worker, &c->id, &at, live_position(c->live).read_generation, SEEN_NO_DOUBT);
}

void succession_accepted(struct connection *c, struct connection_event *e)
{
	c->drained = e->accepted->drained;
	if (!c->live)
		return;
	const bool waited = live_due(c->live) == LIVE_WAITS_FOR_COMMIT;
	live_committed(c->live, e->accepted->write_generation);
	/* from the commit on RAgent knows of the new keys, and no owner may use older ones */
	const bool is_commit = waited && live_due(c->live) != LIVE_WAITS_FOR_COMMIT;
	if (is_commit && carrier_moves(c->carrier) && !mutant("commit-untold"))
		tell_keys(c);
	if (c->keys_told == KEYS_UNTOLD)
		tell_keys(c);
}

/* --- notes. Before the first byte of an answer that can continue, its owner leaves the service's note with RAgent
 * (succession_leave_note()). A service that stands between leaves one before it gives bytes to either side, and before
 * a move (succession_leave_word()). --- */

static struct note_binding binding_of(const struct connection *c)
{
	return (struct note_binding){ .connection = c->id, .listener = tls_listener_conf(c->listener)->name };
}

/* 0 or negative. */
static int succession_send_note(struct connection *c, const uint8_t *note, size_t len)
{
	const struct note_binding to = binding_of(c);
	Cssl__LinkDownload message = CSSL__LINK_DOWNLOAD__INIT;
	uint8_t sealed[SEALED_NOTE_MAX];
	const ptrdiff_t sealed_len = sealed_note_seal(c->home->agents_key, &to, note, len, sealed);

	if (sealed_len < 0)
		return (int)sealed_len;
	message.sealed = (ProtobufCBinaryData){ (size_t)sealed_len, sealed };
	c->carrier->ops->say(c->carrier, FRAME_DOWNLOAD, &message.base);
	return 0;
}

void succession_leave_note(struct connection *c, const uint8_t *data, size_t len, size_t together)
{
	uint8_t note[SERVICE_NOTE_MAX];

	if (!succession_is_possible(c))
		return;
	/* The delivered bytes may be of the answer before this one. Then only the answer before can go on. */
	if (c->delivered != DELIVERED_NOTHING) {
		const size_t next_len = service_leave_next_note(&c->service, data, together, note);
		if (next_len)
			succession_send_note(c, note, next_len);
		return;
	}
	const size_t note_len = service_leave_note(&c->service, data, len, together, note);
	if (note_len && succession_send_note(c, note, note_len) == 0)
		count(COUNT_DOWNLOADS_OFFERED);
}

void succession_leave_word(struct connection *c)
{
	uint8_t note[SERVICE_NOTE_MAX];
	const size_t len = succession_is_possible(c) ? service_note(&c->service, note) : 0;

	if (len)
		succession_send_note(c, note, len);
}

ptrdiff_t succession_open_note(
	const struct connection *c, const Cssl__LinkSslId *id, uint8_t out[static SERVICE_NOTE_MAX])
{
	const struct note_binding to = binding_of(c);

	if (id->sealed_download.len == 0)
		return CSSL_E_NOT_FOUND;
	return sealed_note_open(c->home->agents_key, &to, id->sealed_download.data, id->sealed_download.len, out);
}
