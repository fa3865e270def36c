/* peer_link.c: opening, then messages. Each message is sealed by itself, a large one in several batches. The kernel
 * gets them together at the end of the turn. An error in a send is reported later, from the loop.
 */
#include "sslagent/cluster/peers/peer_link.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/memory/container_of.h"
#include "proto/batch.h"
#include "proto/error.h"
#include "proto/scratch.h"
#include "proto/wire.h"

#define OPENING_MS     2000 /* from the first message to the last */
#define UNREAD_MORE_MS 10
#define MESSAGE_MAX    (4u * 1024u * 1024u)  /* a passed backend brings its undelivered bytes */
#define PENDING_MAX    (32u * 1024u * 1024u) /* more waits only when the peer does not read */
#define SCRATCH_EXTRA  16384u                /* beside twice a message's length, for the structs it unpacks to */

#define TO(state) (1u << (state))

static const unsigned may_move_to[PEER_LINK_STATE_COUNT] = {
	[PEER_LINK_CONNECTING] = TO(PEER_LINK_OPENING) | TO(PEER_LINK_ENDED) | TO(PEER_LINK_CLOSING),
	[PEER_LINK_OPENING] = TO(PEER_LINK_OPEN) | TO(PEER_LINK_ENDED) | TO(PEER_LINK_CLOSING),
	[PEER_LINK_OPEN] = TO(PEER_LINK_ENDED) | TO(PEER_LINK_CLOSING),
	[PEER_LINK_ENDED] = TO(PEER_LINK_CLOSING),
	[PEER_LINK_CLOSING] = 0,
};

static void link_move(struct peer_link *l, enum peer_link_state to)
{
	assert(may_move_to[l->state] & TO(to));
	l->state = (uint8_t)to;
}

static struct peer_link *link_of(struct stream *s)
{
	return container_of(s, struct peer_link, stream);
}

static void link_free(struct peer_link *l)
{
	while (l->fd_count > 0)
		close(l->fds[--l->fd_count]);
	opening_destroy(l->opening);
	batch_cipher_destroy(l->sealing);
	batch_cipher_destroy(l->opening_cipher);
	message_assembler_clear(&l->assembler);
	free(l);
}

static void link_end(struct peer_link *l, int error)
{
	if (l->state >= PEER_LINK_ENDED)
		return;
	l->ended_in = l->state;
	link_move(l, PEER_LINK_ENDED);
	l->ops->on_end(l, error);
}

void peer_link_end(struct peer_link *l, int error)
{
	if (l->state >= PEER_LINK_ENDED)
		return;
	l->error = error;
	deadline_set(l->stream.worker, &l->deadline, 0);
}

/* Unread bytes mean that this loop is slow; the peer is not silent. */
static bool link_has_unread(const struct peer_link *l)
{
	uint8_t byte;

	return l->state == PEER_LINK_OPENING && recv(stream_fd(&l->stream), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void on_deadline(struct deadline *d)
{
	struct peer_link *l = container_of(d, struct peer_link, deadline);

	if (!l->error && link_has_unread(l)) {
		deadline_set(l->stream.worker, d, UNREAD_MORE_MS);
		return;
	}
	link_end(l, l->error ? l->error : UV_ETIMEDOUT);
}

/* Make ciphers from the transcript's keys; a trusted link has none. */
static int link_take_keys(struct peer_link *l)
{
	struct link_keys keys;
	int r = opening_result(l->opening, &keys);

	if (!r && keys.protection == LINK_SEALED) {
		l->sealing = batch_cipher_create(keys.aead, keys.send, BATCHES_PER_KEY);
		l->opening_cipher = batch_cipher_create(keys.aead, keys.receive, BATCHES_PER_KEY);
		if (!l->sealing || !l->opening_cipher)
			r = CSSL_E_NO_MEMORY;
	}
	OPENSSL_cleanse(&keys, sizeof keys);
	return r;
}

static int link_step_opening(struct peer_link *l, const uint8_t *in, size_t len, size_t *taken)
{
	uint8_t out[OPENING_MESSAGE_MAX];
	size_t out_len = 0;
	const bool was_silent = !opening_peer(l->opening);
	int result = opening_step(l->opening, in, len, taken, out, &out_len);

	/* who connects and says nothing has the time of a stranger; who has said who it is has time for the rest */
	if (result >= 0 && was_silent && opening_peer(l->opening)) {
		deadline_set(l->stream.worker, &l->deadline, OPENING_MS);
		if (l->ops->on_heard)
			l->ops->on_heard(l);
	}
	if (result >= 0 && out_len > 0 && stream_write(&l->stream, out, out_len) != 0)
		result = CSSL_E_NO_MEMORY;
	if (result == OPENING_DONE) {
		result = link_take_keys(l);
		deadline_cancel(&l->deadline);
		if (!result)
			link_move(l, PEER_LINK_OPEN);
	}
	return result < 0 ? result : 0;
}

static int on_message_bytes(void *ctx, const uint8_t *message, size_t len)
{
	struct peer_link *l = ctx;
	Cssl__PeerMessage *m;
	struct scratch scratch;
	int result = scratch_open(&scratch, 2 * len + SCRATCH_EXTRA);

	if (result)
		return result;
	m = cssl__peer_message__unpack(&scratch.allocator, len, message);
	result = m ? l->ops->on_message(l, m) : CSSL_E_TRUNCATED;
	scratch_close(&scratch);
	if (!result && l->state != PEER_LINK_OPEN)
		result = CSSL_E_STATE; /* closed in the callback: read no further */
	return result;
}

/* On a sealed link each batch is opened in place; one that has not come whole is left. */
static int link_take_open(struct peer_link *l, uint8_t *in, size_t len, size_t *used)
{
	int result = 0;

	while (!result && *used < len) {
		uint8_t *plain = in;
		size_t plain_len = len, taken = len;

		if (l->opening_cipher)
			result = batch_open(l->opening_cipher, in + *used, len - *used, &plain, &plain_len, &taken);
		if (result)
			return result == BATCH_INCOMPLETE ? 0 : result;
		*used += taken;
		result = message_assembler_feed(&l->assembler, plain, plain_len, MESSAGE_MAX, on_message_bytes, l);
	}
	return result;
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct peer_link *l = link_of(s);
	size_t used = 0;
	int r = 0;

	l->heard_ms = worker_now_ms(s->worker);
	if (l->state == PEER_LINK_OPENING) {
		r = link_step_opening(l, data, len, &used);
		if (!r && l->state == PEER_LINK_OPEN)
			l->ops->on_open(l);
	}
	if (!r && l->state == PEER_LINK_OPEN) {
		size_t taken = 0;

		r = link_take_open(l, data + used, len - used, &taken);
		used += taken;
	}
	if (r)
		link_end(l, r);
	return l->state == PEER_LINK_OPENING || l->state == PEER_LINK_OPEN ? used : len;
}

static void on_stream_end(struct stream *s, enum stream_end how, int uv_error)
{
	link_end(link_of(s), how == STREAM_EOF ? 0 : uv_error ? uv_error : UV_ECONNRESET);
}

static void on_connected(struct stream *s, int uv_error)
{
	struct peer_link *l = link_of(s);
	size_t taken = 0;
	int r = uv_error;

	if (l->state != PEER_LINK_CONNECTING)
		return;
	if (!r) {
		link_move(l, PEER_LINK_OPENING);
		r = link_step_opening(l, NULL, 0, &taken);
	}
	if (r)
		link_end(l, r);
	else
		stream_read_start(s);
}

static void on_written(struct stream *s, size_t len)
{
	struct peer_link *l = link_of(s);

	if (l->state == PEER_LINK_OPEN)
		l->ops->on_drained(l);
}

static void on_fd(struct stream *s, int fd)
{
	struct peer_link *l = link_of(s);

	if (l->fd_count == PEER_LINK_FDS_MAX) {
		close(l->fds[0]);
		memmove(l->fds, l->fds + 1, --l->fd_count * sizeof l->fds[0]);
	}
	l->fds[l->fd_count++] = fd;
}

static void on_stream_closed(struct stream *s)
{
	struct peer_link *l = link_of(s);

	l->ops->on_closed(l);
	link_free(l);
}

static const struct stream_ops stream_ops = {
	.on_data = on_data,
	.on_end = on_stream_end,
	.on_written = on_written,
	.on_connected = on_connected,
	.on_closed = on_stream_closed,
	.on_fd = on_fd,
};

enum link_side { LINK_CONNECTS, LINK_ANSWERS };

static struct peer_link *link_create(
	const struct peer_link_conf *conf, const struct sockaddr *other, enum link_side side)
{
	struct link_hello mine = { .version_min = LINK_VERSION,
		.version_max = LINK_VERSION,
		.role = LINK_ROLE_AGENT,
		.protection = other->sa_family == AF_UNIX ? LINK_TRUSTED : LINK_SEALED,
		.aead = aead_preferred(),
		.boot_id = conf->boot_id,
		.workers = (uint16_t)conf->workers };
	struct peer_link *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	snprintf(mine.name, sizeof mine.name, "%s", conf->name);
	l->opening = side == LINK_CONNECTS ? opening_start(conf->ring, 0, &mine, LINK_ROLE_AGENT)
					   : opening_answer(conf->ring, &mine, LINK_ROLE_AGENT);
	if (!l->opening) {
		free(l);
		return NULL;
	}
	l->state = side == LINK_CONNECTS ? PEER_LINK_CONNECTING : PEER_LINK_OPENING;
	l->ops = conf->ops;
	l->ctx = conf->ctx;
	l->protection = mine.protection;
	l->deadline.fn = on_deadline;
	l->heard_ms = worker_now_ms(conf->worker);
	address_format(other, l->address);
	if (l->protection == LINK_TRUSTED)
		stream_expect_fds(&l->stream);
	return l;
}

struct peer_link *peer_link_connect(const struct peer_link_conf *conf, const struct sockaddr *to, const char *peer)
{
	struct peer_link *l = link_create(conf, to, LINK_CONNECTS);

	if (!l)
		return NULL;
	stream_set_fault(&l->stream, "peer", peer);
	if (stream_connect(&l->stream, conf->worker, &stream_ops, to, NULL) != 0) {
		link_free(l);
		return NULL;
	}
	stream_set_lost_limit(&l->stream, PEER_LOST_MS);
	deadline_set(conf->worker, &l->deadline, OPENING_MS);
	return l;
}

struct peer_link *peer_link_accept(const struct peer_link_conf *conf, int fd, const struct sockaddr *from)
{
	struct peer_link *l = link_create(conf, from, LINK_ANSWERS);

	if (!l) {
		close(fd);
		return NULL;
	}
	if (stream_open_fd(&l->stream, conf->worker, &stream_ops, fd) != 0) {
		link_free(l);
		return NULL;
	}
	stream_set_lost_limit(&l->stream, PEER_LOST_MS);
	stream_read_start(&l->stream);
	deadline_set(conf->worker, &l->deadline, PEER_LINK_SILENT_MS);
	return l;
}

void peer_link_close(struct peer_link *l)
{
	if (!l || l->state == PEER_LINK_CLOSING)
		return;
	link_move(l, PEER_LINK_CLOSING);
	deadline_cancel(&l->deadline);
	stream_close(&l->stream);
}

static size_t link_write_message(const Cssl__PeerMessage *m, size_t len, uint8_t *out)
{
	wire_store_u32(out, (uint32_t)len);
	return MESSAGE_LENGTH_LEN + cssl__peer_message__pack(m, out + MESSAGE_LENGTH_LEN);
}

static int link_send_trusted(struct peer_link *l, const Cssl__PeerMessage *m, size_t len)
{
	uint8_t *out = stream_reserve(&l->stream, MESSAGE_LENGTH_LEN + len);

	if (!out)
		return CSSL_E_NO_MEMORY;
	stream_commit(&l->stream, link_write_message(m, len, out));
	return 0;
}

/* The message is written behind the room for the heads of all batches. Each part moves forward to the place of its
 * batch, and is sealed there. */
static int link_send_sealed(struct peer_link *l, const Cssl__PeerMessage *m, size_t len)
{
	const size_t plain_len = MESSAGE_LENGTH_LEN + len;
	const size_t overhead = (plain_len + BATCH_PLAINTEXT_MAX - 1) / BATCH_PLAINTEXT_MAX * BATCH_OVERHEAD;
	uint8_t *out = stream_reserve(&l->stream, plain_len + overhead);
	size_t written = 0;
	int r = 0;

	if (!out)
		return CSSL_E_NO_MEMORY;
	uint8_t *plain = out + overhead - BATCH_TAG_LEN;
	link_write_message(m, len, plain);
	for (size_t part, left = plain_len; !r && left > 0; left -= part, plain += part) {
		part = left < BATCH_PLAINTEXT_MAX ? left : BATCH_PLAINTEXT_MAX;
		memmove(out + written + BATCH_HEADER_LEN, plain, part);
		r = batch_seal(l->sealing, out + written, part);
		written += part + BATCH_OVERHEAD;
	}
	if (!r)
		stream_commit(&l->stream, written);
	return r;
}

int peer_link_send(struct peer_link *l, const Cssl__PeerMessage *m, int fd)
{
	size_t len = cssl__peer_message__get_packed_size(m);
	int r;

	if (l->state != PEER_LINK_OPEN || (fd >= 0 && !peer_link_passes_fds(l)))
		return CSSL_E_STATE;
	if (len > MESSAGE_MAX)
		return CSSL_E_TOO_LONG;
	if (stream_pending(&l->stream) + len > PENDING_MAX)
		return CSSL_E_FULL;
	r = l->sealing ? link_send_sealed(l, m, len) : link_send_trusted(l, m, len);
	/* without memory nothing was sealed; else a part may have been, and the other side would miss its counter */
	if (r && r != CSSL_E_NO_MEMORY)
		peer_link_end(l, r);
	return !r && fd >= 0 && stream_send_fd(&l->stream, fd) != 0 ? CSSL_E_SYSTEM : r;
}

int peer_link_take_fd(struct peer_link *l, uint64_t inode)
{
	for (unsigned i = 0; i < l->fd_count; i++) {
		struct stat stat;
		int fd = l->fds[i];

		if (fstat(fd, &stat) != 0 || (uint64_t)stat.st_ino != inode)
			continue;
		for (unsigned before = 0; before < i; before++)
			close(l->fds[before]);
		l->fd_count -= i + 1;
		memmove(l->fds, l->fds + i + 1, l->fd_count * sizeof l->fds[0]);
		return fd;
	}
	return -1;
}
