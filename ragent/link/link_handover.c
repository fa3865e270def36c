/* link_handover.c: a link as tagged fields (proto/fields.h). Made anew: p, the parameters; opening, of which nothing is
 * left; streams, as each connection says its own; waiters, as connections wait again when they cannot send; the
 * deadlines losing and connect; heard_ms, ticked_ms and backoff_ms, as a link that went on was heard of just now;
 * failure, fate, state, wish and handles, as only a link that is up goes on.
 */
#include "ragent/link/link_handover.h"

#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "proto/error.h"
#include "proto/fields.h"
#include "ragent/link/link_internal.h"
#include "ragent/handover/stream_fields.h"

#define ROW(tag, kind, member, max) FIELD_OF(struct link, tag, kind, member, max)

static const struct field rows[] = {
	ROW(1, FIELD_UINT, next_stream, FIELD_ANY),
	ROW(2, FIELD_UINT, peer.version_min, FIELD_ANY),
	ROW(3, FIELD_UINT, peer.version_max, FIELD_ANY),
	ROW(4, FIELD_UINT, peer.role, LINK_ROLE_AGENT),
	ROW(5, FIELD_UINT, peer.protection, LINK_SEALED),
	ROW(6, FIELD_UINT, peer.aead, FIELD_ANY),
	ROW(7, FIELD_BYTES, peer.name, 0),
	ROW(8, FIELD_UINT, peer.boot_id, FIELD_ANY),
	ROW(9, FIELD_UINT, peer.worker, FIELD_ANY),
	ROW(10, FIELD_UINT, peer.target_worker, FIELD_ANY),
	ROW(11, FIELD_UINT, peer.workers, FIELD_ANY),
	ROW(12, FIELD_BYTES, peer.id_check_key, 0),
	ROW(13, FIELD_INT, process.pid, 0),
	ROW(14, FIELD_UINT, process.started, FIELD_ANY),
};
#define ROWS (sizeof rows / sizeof rows[0])

enum { TAG_SEALING = 100, TAG_OPENING, TAG_INPUT, TAG_OUTPUT };
static const struct stream_tags stream_tags = { TAG_INPUT, TAG_OUTPUT };

/* --- out --- */

int link_freeze(struct link *l, struct framed_saved *saved)
{
	return framed_save(&l->framed, saved);
}

void link_resume(struct link *l)
{
	framed_resume(&l->framed);
}

int link_fd(const struct link *l)
{
	return stream_fd(&l->framed.stream);
}

int link_memory_fd(const struct link *l)
{
	return stream_shared_fd(&l->framed.stream);
}

size_t link_packed_len(const struct link *l)
{
	return fields_len(rows, ROWS) + 2 * (FIELD_HEADER_LEN + BATCH_STATE_LEN) + stream_fields_len(&l->framed.stream);
}

void link_pack(const struct link *l, const struct framed_saved *saved, struct wire_writer *w)
{
	fields_write(w, l, rows, ROWS);
	if (saved->protection == LINK_SEALED) {
		field_write(w, TAG_SEALING, saved->sealing, BATCH_STATE_LEN);
		field_write(w, TAG_OPENING, saved->opening, BATCH_STATE_LEN);
	}
	stream_fields_write(w, &l->framed.stream, stream_tags);
}

/* --- in --- */

struct parsed {
	struct link link; /* only what the rows say */
	struct framed_saved saved;
	struct stream_leftovers left;
	unsigned ciphers;
};

static int take_cipher(struct parsed *p, const struct field_item *item, uint8_t state[static BATCH_STATE_LEN])
{
	if (item->len != BATCH_STATE_LEN)
		return CSSL_E_RANGE;
	memcpy(state, item->value, BATCH_STATE_LEN);
	p->ciphers |= item->tag == TAG_SEALING ? 1u : 2u;
	return 0;
}

static int take(struct parsed *p, const struct field_item *item)
{
	switch (item->tag) {
	case TAG_SEALING: return take_cipher(p, item, p->saved.sealing);
	case TAG_OPENING: return take_cipher(p, item, p->saved.opening);
	case TAG_INPUT:
	case TAG_OUTPUT: return stream_fields_take(&p->left, stream_tags, item);
	default: return CSSL_E_VERSION;
	}
}

static int parse(struct parsed *p, const uint8_t *in, size_t len)
{
	struct wire_reader r = wire_reader(in, len);
	struct field_item item;
	int result;

	while ((result = field_next(&r, &item)) == 0) {
		result = field_store(&p->link, rows, ROWS, &item);
		if (result == FIELD_OTHER)
			result = take(p, &item);
		if (result < 0)
			return result;
	}
	return result < 0 ? result : 0;
}

static int check(const struct link *l, struct parsed *p)
{
	const struct link_hello *peer = &p->link.peer;

	if (!memchr(peer->name, '\0', sizeof peer->name) || strcmp(peer->name, l->p.agent->name) != 0 ||
		peer->worker != l->p.agent_worker)
		return CSSL_E_MISMATCH;
	if (p->link.next_stream == 0 || (p->ciphers != 0 && p->ciphers != 3))
		return CSSL_E_RANGE;
	p->saved.protection = p->ciphers ? LINK_SEALED : LINK_TRUSTED;
	return 0;
}

int link_unpack(struct link *l, int fd, int memory, const uint8_t *in, size_t len)
{
	struct parsed p = { 0 };
	int r = parse(&p, in, len);

	if (r == 0)
		r = check(l, &p);
	if (r == 0 && (l->state != LINK_WAITING || l->wish != LINK_TO_WAIT))
		r = CSSL_E_STATE;
	if (r == 0)
		r = framed_restore(&l->framed, l->p.worker, &link_framed_ops, fd, &p.saved, &p.left);
	else
		close(fd);
	if (r < 0 && memory >= 0)
		close(memory);
	if (r == 0) {
		int shared = memory < 0 ? 0 : framed_share(&l->framed, memory, RINGS_MAKER);
		l->next_stream = p.link.next_stream;
		l->process = p.link.process;
		l->wish = LINK_TO_STAY;
		link_is_up(l, &p.link.peer);
		if (shared < 0)
			link_fail(l, shared);
	}
	sodium_memzero(&p, sizeof p);
	return r;
}

int link_stream_continue(struct link *l, uint32_t stream, void *holder)
{
	if (!link_open(l) || stream == 0 || stream >= l->next_stream || streams_find(&l->streams, stream))
		return CSSL_E_RANGE;
	return streams_add(&l->streams, stream, holder);
}
