/* link_handover.c: a link as tagged fields (proto/fields.h). Made new in the other process: p, the parameters; opening,
 * which is over; streams, because each connection names its own; waiters, because connections wait again when they
 * cannot send; the deadlines losing and connect; heard_ms, ticked_ms and backoff_ms, because a continued link counts as
 * just heard; cause and cause_stream, whose END comes at once; what only the opening needed of peer; death, death_due,
 * failure, fate, state, wish, second, ear and handles, because only a link that is up goes on.
 */
#include "ragent/link/link_handover.h"

#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "proto/error.h"
#include "proto/fields.h"
#include "ragent/link/link_internal.h"
#include "ragent/link/stream_fields.h"

#define ROW(tag, kind, member, max) FIELD_OF(struct link, tag, kind, member, max)

static const struct field rows[] = {
	ROW(1, FIELD_UINT, next_stream, FIELD_ANY),
	ROW(2, FIELD_BYTES, peer.name, 0),
	ROW(3, FIELD_UINT, peer.boot_id, FIELD_ANY),
	ROW(4, FIELD_UINT, peer.worker, FIELD_ANY),
	ROW(5, FIELD_BYTES, peer.id_check_key, 0),
};
#define ROWS (sizeof rows / sizeof rows[0])

/* HAS_PIDFD: the last descriptor is the agent's process. */
enum { TAG_SEALING = 100, TAG_OPENING, TAG_INPUT, TAG_OUTPUT, TAG_HAS_PIDFD };
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

struct link_descriptors link_descriptors(const struct link *l)
{
	return (struct link_descriptors){
		.socket = stream_fd(&l->framed.stream),
		.memory = stream_shared_fd(&l->framed.stream),
		.pidfd = peer_process_fd(&l->process),
	};
}

size_t link_packed_len(const struct link *l)
{
	return fields_len(rows, ROWS) + 2 * (FIELD_HEADER_LEN + BATCH_STATE_LEN) +
	       stream_fields_len(&l->framed.stream) + FIELD_HEADER_LEN;
}

void link_pack(
	const struct link *l, const struct link_descriptors *d, const struct framed_saved *saved, struct wire_writer *w)
{
	fields_write(w, l, rows, ROWS);
	if (saved->protection == LINK_SEALED) {
		field_write(w, TAG_SEALING, saved->sealing, BATCH_STATE_LEN);
		field_write(w, TAG_OPENING, saved->opening, BATCH_STATE_LEN);
	}
	stream_fields_write(w, &l->framed.stream, stream_tags);
	if (d->pidfd >= 0)
		field_begin(w, TAG_HAS_PIDFD, 0);
}

/* --- in --- */

struct parsed {
	struct link link; /* only the fields of the rows */
	struct framed_saved saved;
	struct stream_leftovers left;
	unsigned ciphers, pidfds;
};

static int take_cipher(struct parsed *p, const struct field_item *item, uint8_t state[static BATCH_STATE_LEN])
{
	if (item->len != BATCH_STATE_LEN)
		return CSSL_E_RANGE;
	memcpy(state, item->value, BATCH_STATE_LEN);
	p->ciphers |= item->tag == TAG_SEALING ? 1u : 2u;
	return 0;
}

static int link_parse_field(struct parsed *p, const struct field_item *item)
{
	switch (item->tag) {
	case TAG_SEALING: return take_cipher(p, item, p->saved.sealing);
	case TAG_OPENING: return take_cipher(p, item, p->saved.opening);
	case TAG_HAS_PIDFD: p->pidfds = 1; return 0;
	case TAG_INPUT:
	case TAG_OUTPUT: return stream_fields_take(&p->left, stream_tags, item);
	default: return CSSL_E_VERSION;
	}
}

static int link_parse(struct parsed *p, const uint8_t *in, size_t len)
{
	struct wire_reader r = wire_reader(in, len);
	struct field_item item;
	int result;

	while ((result = field_next(&r, &item)) == 0) {
		result = field_store(&p->link, rows, ROWS, &item);
		if (result == FIELD_OTHER)
			result = link_parse_field(p, &item);
		if (result < 0)
			return result;
	}
	return result < 0 ? result : 0;
}

static int link_check(const struct link *l, struct parsed *p)
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

/* Assign the @count descriptors to their uses. 0, or CSSL_E_RANGE: the bytes name another count. */
static int sort_descriptors(const struct parsed *p, const int *fds, unsigned count, struct link_descriptors *out)
{
	const unsigned memories = count - 1 - p->pidfds;

	if (count == 0 || memories > 1)
		return CSSL_E_RANGE;
	*out = (struct link_descriptors){ fds[0], memories ? fds[1] : -1, p->pidfds ? fds[count - 1] : -1 };
	return 0;
}

/* Restore the link's state from the other process. */
static void link_go_on(struct link *l, const struct parsed *p, const struct link_descriptors *d)
{
	int shared = d->memory < 0 ? 0 : framed_share(&l->framed, d->memory, RINGS_MAKER);

	l->next_stream = p->link.next_stream;
	l->process = peer_process_of(d->socket, d->pidfd);
	l->wish = LINK_TO_STAY;
	link_on_up(l, &p->link.peer);
	if (shared < 0)
		link_fail(l, shared);
}

int link_unpack(struct link *l, const int *fds, unsigned count, const uint8_t *in, size_t len)
{
	struct link_descriptors d;
	struct parsed p = { 0 };
	unsigned owned = 0; /* how many of @fds the link owns */
	int r = link_parse(&p, in, len);

	if (r == 0)
		r = link_check(l, &p);
	if (r == 0 && (l->state != LINK_WAITING || l->wish != LINK_TO_WAIT))
		r = CSSL_E_STATE;
	if (r == 0)
		r = sort_descriptors(&p, fds, count, &d);
	if (r == 0) {
		owned = 1; /* the link owns the socket from here on, even on failure */
		r = framed_restore(&l->framed, l->p.worker, &link_framed_ops, d.socket, &p.saved, &p.left);
	}
	if (r == 0) {
		owned = count;
		link_go_on(l, &p, &d);
	}
	while (count > owned)
		close(fds[--count]);
	sodium_memzero(&p, sizeof p);
	return r;
}

int link_stream_continue(struct link *l, uint32_t stream, void *holder)
{
	if (!link_open(l) || stream == 0 || stream >= l->next_stream || streams_find(&l->streams, stream))
		return CSSL_E_RANGE;
	return streams_add(&l->streams, stream, holder);
}
