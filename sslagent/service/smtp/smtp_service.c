/* smtp_service.c: service smtp stands between the client of mail and the server (smtp_session.h). The session exists
 * from the beginning of the first ownership.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/service/service_ops.h"
#include "sslagent/service/smtp/smtp_ends.h"
#include "sslagent/service/smtp/smtp_session.h"

_Static_assert(SMTP_NOTE_MAX <= SERVICE_NOTE_MAX, "a note has room");

static size_t state_len(void)
{
	return sizeof(struct smtp_session);
}

static void drop_state(struct service *s)
{
	smtp_session_clear(s->state);
	slabs_give(s->blocks, s->state);
}

/* NULL: out of memory. */
static struct smtp_session *session(struct service *s)
{
	if (s->state)
		return s->state;
	s->state = slabs_take(s->blocks);
	if (!s->state)
		return NULL;
	memset(s->state, 0, sizeof(struct smtp_session));
	smtp_session_init(s->state, s->listener);
	return s->state;
}

/* --- what every service answers --- */

static void from_client(struct service *s, const uint8_t *data, size_t len)
{
	struct smtp_session *m = s->state;

	smtp_session_client(m, m->record, data, len);
}

/* Before the server has answered, the beginning of the next mail is not known. So all bytes go on. */
static size_t from_client_to_end(struct service *s, const uint8_t *data, size_t len)
{
	from_client(s, data, len);
	return len;
}

static enum service_piece from_backend(struct service *s, const uint8_t *data, size_t len)
{
	smtp_session_answered(s->state, len);
	return SERVICE_RESPONSE;
}

/* A server that ends sends 421 before, or the service does. */
static enum service_end backend_ended(struct service *s)
{
	return SERVICE_END_WHOLE;
}

static int said_last(const struct service *s)
{
	return 0;
}

static enum service_place place(const struct service *s)
{
	if (s->state)
		return smtp_session_place(s->state);
	return s->listener && !conf_has_preamble(s->listener) ? SERVICE_ASKING
							      : SERVICE_CHECKPOINT; /* a banner is due */
}

static int is_being_asked(const struct service *s)
{
	return place(s) != SERVICE_CHECKPOINT;
}

static uint32_t head_under_way(const struct service *s)
{
	return 0;
}

/* The backend connection belongs to this client. */
static enum service_reuse backend_reuse(const struct service *s)
{
	return SERVICE_BACKEND_USED_UP;
}

static const char *last_words(const struct service *s, enum service_parting why, size_t *len)
{
	return NULL; /* they follow the waiting replies: end() */
}

static unsigned outstanding(const struct service *s)
{
	return 0;
}

static enum service_repeat repeat(const struct service *s)
{
	return SERVICE_REPEAT_NEVER;
}

/* It moves at checkpoints, where the note has everything. */
static int save(const struct service *s, uint8_t **out, size_t *len)
{
	const struct smtp_session *m = s->state;

	if (place(s) != SERVICE_CHECKPOINT || !m)
		return CSSL_E_STATE;
	*out = malloc(SMTP_NOTE_MAX);
	if (!*out)
		return CSSL_E_NO_MEMORY;
	*len = smtp_note_write(&m->note, *out);
	return 0;
}

static void restore(struct service *s, const uint8_t *state, size_t len)
{
	struct smtp_session *m = session(s);
	struct smtp_note note;

	if (!m || smtp_note_read(state, len, &note) < 0)
		service_give_up(s, SERVICE_TOUCHED);
	else
		smtp_session_go_on(m, &note);
}

/* --- what stands between --- */

static int own(struct service *s, const struct service_owner *owner)
{
	struct smtp_session *m = session(s);

	if (!m)
		return CSSL_E_NO_MEMORY;
	smtp_session_own(m, owner);
	return 0;
}

static int resume(struct service *s, const struct service_resumption *r)
{
	return smtp_session_resume(s->state, r);
}

static void heard_all(struct service *s)
{
	smtp_session_heard_all(s->state);
}

static void at_record(struct service *s, uint64_t record)
{
	((struct smtp_session *)s->state)->record = record;
}

static int wants_backend(const struct service *s)
{
	return smtp_session_wants_backend(s->state);
}

static int backend_begins(struct service *s)
{
	return smtp_session_backend_begins(s->state);
}

static void backend_says(struct service *s, const uint8_t *data, size_t len)
{
	smtp_session_backend(s->state, data, len);
}

static void backend_gone(struct service *s)
{
	smtp_session_backend_gone(s->state);
}

static size_t for_backend(const struct service *s, const uint8_t **data)
{
	const struct smtp_session *m = s->state;

	*data = m->out;
	return m->out_len;
}

static void given_to_backend(struct service *s)
{
	struct smtp_session *m = s->state;

	m->out_len = 0;
}

static size_t for_client(const struct service *s, const uint8_t **data)
{
	const struct smtp_piece *p = ((const struct smtp_session *)s->state)->answers.first;

	if (!p)
		return 0;
	*data = p->data + p->used;
	return p->len - p->used;
}

static void splits_reply(struct service *s)
{
	((struct smtp_session *)s->state)->note.replies = SMTP_REPLIES_COUNTLESS;
}

static size_t taken(struct service *s)
{
	struct smtp_session *m = s->state;
	const size_t len = m->taken;

	m->taken = 0;
	return len;
}

static size_t note(struct service *s, uint8_t out[static SERVICE_NOTE_MAX])
{
	struct smtp_session *m = s->state;
	const size_t len = smtp_note_write(&m->note, out);

	if (len == m->left_len && memcmp(out, m->left, len) == 0)
		return 0;
	memcpy(m->left, out, len);
	m->left_len = (uint16_t)len;
	return len;
}

static void at_checkpoint(struct service *s)
{
	if (s->state)
		smtp_session_at_checkpoint(s->state);
}

/* A server can learn the client's address again, but not its password. */
static int may_begin_anew(const struct service *s)
{
	return !s->state || !((const struct smtp_session *)s->state)->note.authenticated;
}

static int awaits_verdict(const struct service *s)
{
	return smtp_session_awaits_verdict(s->state);
}

static void end(struct service *s, enum service_parting why)
{
	static const enum smtp_own words[] = {
		[SERVICE_BACKEND_LOST] = SMTP_OWN_BACKEND_UNREACHABLE,
		[SERVICE_HEAD_LATE] = SMTP_OWN_TIMED_OUT,
		[SERVICE_LEAVES] = SMTP_OWN_SHUTTING_DOWN,
		[SERVICE_TIMED_OUT] = SMTP_OWN_TIMED_OUT,
		[SERVICE_OVERLOADED] = SMTP_OWN_OVERLOADED,
	};

	smtp_session_end(s->state, words[why]);
}

static enum service_over is_over(const struct service *s)
{
	const struct smtp_session *m = s->state;

	if (m->stage != SMTP_OVER)
		return SERVICE_NOT_OVER;
	return m->last == SMTP_TX_NONE ? SERVICE_OVER : SERVICE_OVER_CUT;
}

static enum end_reason over_for(const struct service *s)
{
	const struct smtp_session *m = s->state;

	return smtp_end_reason((enum smtp_own)m->over_for);
}

static const struct service_between_ops between = {
	.own = own,
	.resume = resume,
	.heard_all = heard_all,
	.at_record = at_record,
	.wants_backend = wants_backend,
	.backend_begins = backend_begins,
	.backend_says = backend_says,
	.backend_gone = backend_gone,
	.for_backend = for_backend,
	.given_to_backend = given_to_backend,
	.for_client = for_client,
	.splits_reply = splits_reply,
	.taken = taken,
	.note = note,
	.at_checkpoint = at_checkpoint,
	.may_begin_anew = may_begin_anew,
	.awaits_verdict = awaits_verdict,
	.end = end,
	.is_over = is_over,
	.over_for = over_for,
};

/* A client that does not read may pipeline commands; their replies wait here. */
static size_t kept_len(const struct service *s)
{
	const struct smtp_session *session = s->state;

	return session->waiting.kept + session->answers.kept + session->reply_cap + session->out_cap;
}

const struct service_ops service_smtp = {
	.from_client = from_client,
	.from_client_to_end = from_client_to_end,
	.from_backend = from_backend,
	.backend_ended = backend_ended,
	.state_len = state_len,
	.kept_len = kept_len,
	.drop_state = drop_state,
	.said_last = said_last,
	.save = save,
	.place = place,
	.is_being_asked = is_being_asked,
	.head_under_way = head_under_way,
	.backend_reuse = backend_reuse,
	.last_words = last_words,
	.outstanding = outstanding,
	.repeat = repeat,
	.restore = restore,
	.between = &between,
};
