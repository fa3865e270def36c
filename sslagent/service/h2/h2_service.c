/* h2_service.c: service h2: follows the frames of HTTP/2 between a client and a backend that also begins with frames
 * (prior knowledge, RFC 9113 3.3). A backend connection serves one conversation. When it ends, the conversation ends
 * too: by GOAWAY and close_notify if no stream is open, or if the backend told an error by a GOAWAY of its own.
 */
#include "proto/error.h"
#include "sslagent/service/h2/h2_follower.h"
#include "sslagent/service/service_ops.h"

static void h2_service_drop_state(struct service *s)
{
	h2_follower_destroy(s->blocks, s->state);
	s->state = NULL;
}

/* NULL: the conversation is not followed. */
static struct h2_follower *h2_service_follower(struct service *s)
{
	if (s->state || s->following == SERVICE_NOT_FOLLOWED)
		return s->state;
	s->state = h2_follower_create(s->blocks);
	if (!s->state)
		service_give_up(s, SERVICE_DOUBTED);
	return s->state;
}

static size_t h2_service_pass(struct service *s, const uint8_t *data, size_t len, struct service_outgoing *out)
{
	struct h2_follower *h = h2_service_follower(s);

	if (h && len)
		return h2_from_client(h, data, len, out);
	*out = (struct service_outgoing){ .len = len };
	return len;
}

/* While the conversation winds down, streams that the client began before it learned that are answered, too. */
static size_t h2_service_from_client(struct service *s, enum service_until until, const uint8_t *data, size_t len)
{
	struct service_outgoing ignored;

	for (size_t used = 0; used < len;)
		used += h2_service_pass(s, data + used, len - used, &ignored);
	return len;
}

static enum service_piece h2_service_from_backend(struct service *s, const uint8_t *data, size_t len)
{
	struct h2_follower *h = h2_service_follower(s);

	if (h)
		h2_from_backend(h, data, len);
	return SERVICE_RESPONSE;
}

static enum service_end h2_service_backend_ended(struct service *s)
{
	const struct h2_follower *h = s->state;

	return (h->streams.count == 0 && !h2_is_amid_answer(h)) || h2_failed(h) ? SERVICE_END_WHOLE : SERVICE_END_CUT;
}

static bool h2_service_said_last(const struct service *s)
{
	return h2_said_last(s->state);
}

static enum service_place h2_service_place(const struct service *s)
{
	if (!s->state || h2_is_idle(s->state))
		return SERVICE_CHECKPOINT;
	return h2_is_amid_answer(s->state) ? SERVICE_ANSWERING : SERVICE_ASKING;
}

static uint32_t h2_service_head_under_way(const struct service *s)
{
	return s->state ? h2_head_under_way(s->state) : 0;
}

static enum service_reuse h2_service_backend_reuse(const struct service *s)
{
	return h2_service_place(s) == SERVICE_CHECKPOINT ? SERVICE_BACKEND_TIED : SERVICE_BACKEND_USED_UP;
}

/* A header block that is under way counts, if it is not yet counted as a stream. */
static unsigned h2_service_outstanding(const struct service *s)
{
	const struct h2_follower *h = s->state;

	return h->streams.count + (h2_head_under_way(h) && !h2_begins_stream(h));
}

static enum service_repeat h2_service_repeat(const struct service *s)
{
	const struct h2_follower *h = s->state;

	return h && (h->newest || h->phase == H2_LOST) ? SERVICE_REPEAT_CUTS : SERVICE_REPEAT_ANY_TIME;
}

static void h2_service_strand(struct service *s)
{
	struct h2_follower *h = h2_service_follower(s);

	if (h)
		h->phase = H2_STRANDED;
}

static bool is_stranded(const struct service *s)
{
	return ((const struct h2_follower *)s->state)->phase == H2_STRANDED;
}

static enum service_parting h2_service_parting(const struct service *s)
{
	const struct h2_follower *h = s->state;

	if (h->phase == H2_LOST)
		return SERVICE_TRACK_LOST;
	return h->phase == H2_STRANDED && h->newest ? SERVICE_LEAVES : SERVICE_STAYS;
}

/* The number of streams that an end of this kind cuts off. */
static unsigned streams_cut(const struct h2_follower *h, enum service_parting why)
{
	if (why == SERVICE_TRACK_LOST && h->lost_by == H2_CLIENT)
		return 0; /* the client caused the end itself */
	if (why == SERVICE_BACKEND_LOST && h->phase == H2_STRANDED)
		return 1; /* nobody knows with which */
	if (h2_failed(h))
		return 0; /* their end was told */
	return h->streams.count - (why == SERVICE_HEAD_LATE && h2_begins_stream(h));
}

static const char *h2_service_last_words(const struct service *s, enum service_parting why, size_t *len)
{
	struct h2_follower *h = s->state;

	*len = 0;
	if (!h)
		return why == SERVICE_LEAVES ? "" : NULL;
	const uint8_t *answers = why == SERVICE_BACKEND_LOST ? h2_bad_gateway(h, len) : NULL;
	if (answers || streams_cut(h, why) > 0)
		return (const char *)answers;
	return (const char *)h2_farewell(h, why == SERVICE_TRACK_LOST ? H2_PROTOCOL_ERROR : H2_NO_ERROR, len);
}

static void wind_down(struct service *s)
{
	h2_wind_down(s->state);
}

static const char *h2_service_words(const struct service *s, size_t *len)
{
	return (const char *)h2_words(s->state, len);
}

static size_t h2_service_hold(struct service *s, const uint8_t *data, size_t len)
{
	struct h2_follower *h = h2_service_follower(s);

	return h ? h2_hold(h, data, len) : 0;
}

static size_t until_words(const struct service *s, const uint8_t *data, size_t len)
{
	return h2_until_words(s->state, data, len);
}

static ptrdiff_t h2_service_save(const struct service *s, uint8_t *out)
{
	const size_t len = s->state ? h2_follower_save(s->state, out) : 0;

	return s->state && len == 0 ? CSSL_E_STATE : (ptrdiff_t)len;
}

static void h2_service_restore(struct service *s, const uint8_t *state, size_t len)
{
	s->state = h2_follower_restore(s->blocks, state, len);
	if (!s->state)
		service_give_up(s, SERVICE_DOUBTED);
}

const struct service_ops service_h2 = {
	.from_client = h2_service_from_client,
	.pass = h2_service_pass,
	.from_backend = h2_service_from_backend,
	.backend_ended = h2_service_backend_ended,
	.state_len = sizeof(struct h2_follower),
	.drop_state = h2_service_drop_state,
	.said_last = h2_service_said_last,
	.save = h2_service_save,
	.save_max = H2_STATE_MAX,
	.place = h2_service_place,
	.head_under_way = h2_service_head_under_way,
	.backend_reuse = h2_service_backend_reuse,
	.last_words = h2_service_last_words,
	.outstanding = h2_service_outstanding,
	.repeat = h2_service_repeat,
	.restore = h2_service_restore,
	.parting = h2_service_parting,
	.strand = h2_service_strand,
	.is_stranded = is_stranded,
	.wind_down = wind_down,
	.words = h2_service_words,
	.hold = h2_service_hold,
	.until_words = until_words,
};
