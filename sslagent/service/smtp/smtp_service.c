/* smtp_service.c: service smtp stands between the client of mail and the server (smtp_session.h). The session exists
 * from the beginning of the first ownership.
 */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/service/service_ops.h"
#include "sslagent/service/smtp/smtp_session.h"

_Static_assert(SMTP_NOTE_MAX <= SERVICE_NOTE_MAX, "a note has room");

static void smtp_service_drop_state(struct service *s)
{
	smtp_session_clear(s->state);
	slabs_give(s->blocks, s->state);
}

/* NULL: out of memory. */
static struct smtp_session *smtp_service_session(struct service *s)
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

/* Before the server has answered, the beginning of the next mail is not known. So all bytes go on. */
static size_t smtp_service_from_client(struct service *s, enum service_until until, const uint8_t *data, size_t len)
{
	smtp_session_client(s->state, data, len);
	return len;
}

static enum service_piece smtp_service_from_backend(struct service *s, const uint8_t *data, size_t len)
{
	smtp_session_answered(s->state, len);
	return SERVICE_RESPONSE;
}

static enum service_place smtp_service_place(const struct service *s)
{
	const struct smtp_session *m = s->state;

	if (!m) /* a banner is due */
		return s->listener && !conf_has_preamble(s->listener) ? SERVICE_ASKING : SERVICE_CHECKPOINT;
	const bool talking = m->stage == SMTP_TALKING && (!m->relay || smtp_tx_is_checkpoint(&m->relay->tx));
	const bool idle = m->stage == SMTP_IDLE && !service_wants_backend(s);
	const bool silent = !m->answers.first && !m->waiting.first && !m->past;

	if (silent && (talking || idle || m->stage == SMTP_OVER))
		return SERVICE_CHECKPOINT;
	return m->replies ? SERVICE_ANSWERING : SERVICE_ASKING;
}

/* It moves at checkpoints, where the note has everything. */
static ptrdiff_t smtp_service_save(const struct service *s, uint8_t *out)
{
	const struct smtp_session *m = s->state;

	return m && smtp_service_place(s) == SERVICE_CHECKPOINT ? (ptrdiff_t)smtp_note_write(&m->note, out)
								: CSSL_E_STATE;
}

/* With a server connection of another owner, at a checkpoint. */
static void smtp_service_restore(struct service *s, const uint8_t *state, size_t len)
{
	struct smtp_session *m = smtp_service_session(s);
	struct smtp_note note;

	if (!m || smtp_note_read(state, len, &note) < 0) {
		service_give_up(s, SERVICE_TOUCHED);
		return;
	}
	m->note = note;
	m->note.epoch = m->epoch;
	m->stage = SMTP_TALKING;
}

/* A client that does not read may pipeline commands; their replies wait here. */
static size_t smtp_service_kept_len(const struct service *s)
{
	const struct smtp_session *m = s->state;

	return m->waiting.kept + m->answers.kept + m->reply.cap + m->out.cap;
}

/* The backend connection belongs to this client. The last words follow the waiting replies: service_end(). */
const struct service_ops service_smtp = {
	.from_client = smtp_service_from_client,
	.from_backend = smtp_service_from_backend,
	.state_len = sizeof(struct smtp_session),
	.kept_len = smtp_service_kept_len,
	.drop_state = smtp_service_drop_state,
	.save = smtp_service_save,
	.save_max = SMTP_NOTE_MAX,
	.place = smtp_service_place,
	.restore = smtp_service_restore,
};

/* --- what stands between --- */

/* The first owner need not leave a note of the facts with which a successor without a note begins. */
static void begin_notes(struct smtp_session *m)
{
	if (m->epoch == 1 && m->left_len == 0)
		m->left_len = (uint16_t)smtp_note_write(&m->note, m->left);
}

int service_own(struct service *s, const struct service_owner *owner)
{
	struct smtp_session *m = smtp_service_session(s);

	if (!m)
		return CSSL_E_NO_MEMORY;
	m->epoch = owner->epoch;
	m->connection = owner->connection;
	m->backend = owner->backend;
	if (!m->past && m->replies == 0)
		m->note.epoch = owner->epoch;
	begin_notes(m);
	m->id[0] = m->introduction[0] = 0;
	if (owner->id_len && owner->id_len <= SMTP_TX_ID_MAX / 2)
		sodium_bin2hex(m->id, sizeof m->id, owner->id, owner->id_len);
	if (m->listener->smtp.xclient == CONF_ON && owner->client)
		snprintf(m->introduction, sizeof m->introduction, "ADDR=%s%s PORT=%u", owner->is_ipv6 ? "IPV6:" : "",
			owner->client, owner->client_port);
	return 0;
}

void service_at_record(struct service *s, uint64_t record)
{
	((struct smtp_session *)s->state)->record = record;
}

size_t service_for_backend(const struct service *s, const uint8_t **data)
{
	const struct smtp_session *m = s->state;

	*data = m->out.data;
	return m->out.len;
}

void service_given_to_backend(struct service *s)
{
	((struct smtp_session *)s->state)->out.len = 0;
}

size_t service_for_client(const struct service *s, const uint8_t **data)
{
	const struct smtp_piece *p = ((const struct smtp_session *)s->state)->answers.first;

	if (!p)
		return 0;
	*data = p->data + p->used;
	return p->len - p->used;
}

void service_splits_reply(struct service *s)
{
	((struct smtp_session *)s->state)->note.replies = SMTP_REPLIES_COUNTLESS;
}

size_t service_taken(struct service *s)
{
	struct smtp_session *m = s->state;
	const size_t len = m->taken;

	m->taken = 0;
	return len;
}

size_t service_note(struct service *s, uint8_t out[static SERVICE_NOTE_MAX])
{
	struct smtp_session *m = s->state;
	const size_t len = smtp_note_write(&m->note, out);

	if (len == m->left_len && memcmp(out, m->left, len) == 0)
		return 0;
	memcpy(m->left, out, len);
	m->left_len = (uint16_t)len;
	return len;
}

void service_at_checkpoint(struct service *s)
{
	if (service_stands_between(s) && s->state)
		smtp_session_at_checkpoint(s->state);
}

/* A server can learn the client's address again, but not its password. */
bool service_may_begin_anew(const struct service *s)
{
	return !s->state || !((const struct smtp_session *)s->state)->note.authenticated;
}

/* After a loss, what became of a mail whose end was passed on is not known before the new server is asked. No server
 * has a mail that is repeated. */
bool service_awaits_verdict(const struct service *s)
{
	const struct smtp_session *m = s->state;
	const bool is_asked = m->past && m->past->how != SMTP_REPEATS;

	return m->stage != SMTP_OVER && (is_asked || (m->relay && smtp_tx_end_is_due(&m->relay->tx)));
}

/* --- the end --- */

void service_end(struct service *s, enum service_parting why)
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

enum service_over service_is_over(const struct service *s)
{
	const struct smtp_session *m = s->state;

	if (m->stage != SMTP_OVER)
		return SERVICE_NOT_OVER;
	return m->last == SMTP_TX_NONE ? SERVICE_OVER : SERVICE_OVER_CUT;
}

struct ending {
	enum smtp_own why;
	enum agent_counter counter;
	enum end_reason reason;
};

/* @why: the last reply. A reply about what the client said is one of the others. */
static const struct ending *ending_of(enum smtp_own why)
{
	static const struct ending others = { .counter = COUNT_MAIL_421_OTHER, .reason = END_TRACK_LOST };
	static const struct ending rows[] = {
		{ SMTP_OWN_NONE, COUNT_MAIL_421_OTHER, END_DONE },
		{ SMTP_OWN_BYE, COUNT_MAIL_421_OTHER, END_DONE },
		{ SMTP_OWN_SHUTTING_DOWN, COUNT_MAIL_421_LEAVING, END_SHUTTING_DOWN },
		{ SMTP_OWN_AGENT_LOST, COUNT_MAIL_421_AGENT_LOST, END_AGENT_LOST },
		{ SMTP_OWN_BACKEND_UNREACHABLE, COUNT_MAIL_421_BACKEND_UNREACHABLE, END_BACKEND_UNREACHABLE },
		{ SMTP_OWN_BACKEND_LOST, COUNT_MAIL_421_BACKEND_LOST, END_BACKEND_CLOSED },
		{ SMTP_OWN_BACKEND_BROKEN, COUNT_MAIL_421_BACKEND_BROKEN, END_BACKEND_CLOSED },
		{ SMTP_OWN_BACKEND_CHANGED, COUNT_MAIL_421_BACKEND_CHANGED, END_BACKEND_CLOSED },
		{ SMTP_OWN_MISCONFIGURED, COUNT_MAIL_421_OTHER, END_INTERNAL },
		{ SMTP_OWN_OVERLOADED, COUNT_MAIL_421_OTHER, END_OVERLOADED },
		{ SMTP_OWN_TIMED_OUT, COUNT_MAIL_421_OTHER, END_IDLE_TIMEOUT },
		{ SMTP_OWN_RECEIVER_REFUSES, COUNT_MAIL_CLIENTS_REFUSED, END_DONE },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].why == why)
			return &rows[i];
	return &others;
}

void smtp_end_count(enum smtp_own why)
{
	count(ending_of(why)->counter);
}

enum end_reason service_over_for(const struct service *s)
{
	return ending_of((enum smtp_own)((const struct smtp_session *)s->state)->over_for)->reason;
}
