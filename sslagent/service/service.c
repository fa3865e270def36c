/* service.c: the table of services, and the answers for every conversation that is not followed, of whichever
 * service.
 */
#include "sslagent/service/service.h"

#include "proto/error.h"
#include "sslagent/service/service_ops.h"

const struct service_ops *const service_rows[CONF_SERVICE_COUNT] = {
	[CONF_TCP] = &service_tcp,
	[CONF_HTTP] = &service_http,
	[CONF_SMTP] = &service_smtp,
	[CONF_H2] = &service_h2,
};

static const struct service_ops *ops_of(const struct service *s)
{
	return service_rows[s->kind];
}

static int is_followed(const struct service *s)
{
	return s->following == SERVICE_FOLLOWED;
}

void service_blocks_init(struct service_blocks *b)
{
	for (int i = 0; i < CONF_SERVICE_COUNT; i++) {
		if (service_rows[i]->state_len)
			slabs_init(&b->of[i], service_rows[i]->state_len());
	}
}

void service_blocks_clear(struct service_blocks *b)
{
	for (int i = 0; i < CONF_SERVICE_COUNT; i++) {
		if (service_rows[i]->state_len)
			slabs_clear(&b->of[i]);
	}
}

void service_init(struct service *s, enum conf_service kind, struct service_blocks *blocks)
{
	*s = (struct service){
		.kind = (uint8_t)kind, .following = (uint8_t)service_traits[kind].following, .blocks = &blocks->of[kind]
	};
}

void service_of_listener(struct service *s, const struct conf_listener *listener)
{
	s->listener = listener;
}

void service_destroy(struct service *s)
{
	if (s->state)
		ops_of(s)->drop_state(s);
	s->state = NULL;
}

void service_take(struct service *to, struct service *from)
{
	service_destroy(to);
	*to = *from;
	*from = (struct service){ .kind = CONF_TCP };
}

void service_give_up(struct service *s, enum service_passed passed)
{
	s->following = SERVICE_NOT_FOLLOWED;
	s->passed = (uint8_t)passed;
}

void service_touch(struct service *s)
{
	if (s->passed == SERVICE_UNTOUCHED)
		s->passed = SERVICE_TOUCHED;
}

void service_from_client(struct service *s, const uint8_t *data, size_t len)
{
	ops_of(s)->from_client(s, data, len);
}

size_t service_pass(
	struct service *s, enum service_until until, const uint8_t *data, size_t len, struct service_outgoing *out)
{
	if (is_followed(s) && ops_of(s)->pass)
		return ops_of(s)->pass(s, data, len, out);
	*out = (struct service_outgoing){ .len = len };
	if (until == SERVICE_TO_END)
		out->len = ops_of(s)->from_client_to_end(s, data, len);
	else
		ops_of(s)->from_client(s, data, len);
	return out->len;
}

enum service_piece service_from_backend(struct service *s, const uint8_t *data, size_t len)
{
	return ops_of(s)->from_backend(s, data, len);
}

int service_is_being_asked(const struct service *s)
{
	return is_followed(s) && ops_of(s)->is_being_asked(s);
}

uint32_t service_head_under_way(const struct service *s)
{
	return is_followed(s) ? ops_of(s)->head_under_way(s) : 0;
}

enum service_place service_place(const struct service *s)
{
	if (is_followed(s))
		return ops_of(s)->place(s);
	return s->passed == SERVICE_UNTOUCHED ? SERVICE_CHECKPOINT : SERVICE_OPAQUE;
}

enum service_reuse service_backend_reuse(const struct service *s)
{
	return is_followed(s) ? ops_of(s)->backend_reuse(s) : SERVICE_BACKEND_USED_UP;
}

enum service_end service_backend_ended(struct service *s)
{
	return ops_of(s)->backend_ended(s);
}

int service_said_last(const struct service *s)
{
	return s->state && ops_of(s)->said_last(s);
}

int service_takes_no_more(const struct service *s)
{
	return is_followed(s) && service_said_last(s) && !ops_of(s)->is_being_asked(s);
}

enum service_parting service_parting(const struct service *s)
{
	return is_followed(s) && ops_of(s)->parting ? ops_of(s)->parting(s) : SERVICE_STAYS;
}

void service_strand(struct service *s)
{
	if (is_followed(s) && ops_of(s)->strand)
		ops_of(s)->strand(s);
}

int service_is_stranded(const struct service *s)
{
	return is_followed(s) && ops_of(s)->is_stranded && ops_of(s)->is_stranded(s);
}

void service_wind_down(struct service *s)
{
	if (is_followed(s) && ops_of(s)->wind_down)
		ops_of(s)->wind_down(s);
}

const char *service_words(const struct service *s, size_t *len)
{
	return is_followed(s) && ops_of(s)->words ? ops_of(s)->words(s, len) : NULL;
}

size_t service_hold(struct service *s, const uint8_t *data, size_t len)
{
	return is_followed(s) && ops_of(s)->hold ? ops_of(s)->hold(s, data, len) : 0;
}

size_t service_until_words(const struct service *s, const uint8_t *data, size_t len)
{
	return is_followed(s) && ops_of(s)->until_words ? ops_of(s)->until_words(s, data, len) : len;
}

const char *service_last_words(const struct service *s, enum service_parting why, size_t *len)
{
	return is_followed(s) ? ops_of(s)->last_words(s, why, len) : NULL;
}

unsigned service_outstanding(const struct service *s)
{
	return is_followed(s) ? ops_of(s)->outstanding(s) : 0;
}

enum service_repeat service_repeat(const struct service *s)
{
	if (is_followed(s))
		return ops_of(s)->repeat(s);
	return s->passed == SERVICE_UNTOUCHED ? SERVICE_REPEAT_ANY_TIME : SERVICE_REPEAT_NEVER;
}

int service_may_ask_again(const struct service *s)
{
	return is_followed(s) && ops_of(s)->may_ask_again && ops_of(s)->may_ask_again(s);
}

size_t service_kept_len(const struct service *s)
{
	return s->state && ops_of(s)->kept_len ? ops_of(s)->kept_len(s) : 0;
}

int service_save(const struct service *s, uint8_t **out, size_t *len)
{
	*out = NULL;
	*len = 0;
	return is_followed(s) || s->state ? ops_of(s)->save(s, out, len) : 0;
}

void service_restore(
	struct service *s, enum conf_service kind, struct service_blocks *blocks, const uint8_t *state, size_t len)
{
	const struct conf_listener *listener = s->listener;

	service_init(s, kind, blocks);
	s->listener = listener;
	if (len == 0 || !is_followed(s)) /* it was not followed, or is a tunnel */
		service_give_up(s, SERVICE_TOUCHED);
	else
		ops_of(s)->restore(s, state, len);
}

/* --- answers that go on --- */

static const struct service_note_ops *notes_of(const struct service *s)
{
	return is_followed(s) ? ops_of(s)->notes : NULL;
}

size_t service_leave_note(
	struct service *s, const uint8_t *data, size_t len, size_t together, uint8_t out[static SERVICE_NOTE_MAX])
{
	const struct service_note_ops *notes = notes_of(s);

	return notes ? notes->leave(s, data, len, together, out) : 0;
}

size_t service_leave_next_note(
	struct service *s, const uint8_t *data, size_t together, uint8_t out[static SERVICE_NOTE_MAX])
{
	const struct service_note_ops *notes = notes_of(s);

	return notes ? notes->leave_next(s, data, together, out) : 0;
}

int service_recall(
	const struct service *s, const uint8_t *note, size_t len, uint64_t delivered, struct service_recall **out)
{
	const struct service_note_ops *notes = notes_of(s);

	return notes ? notes->recall(note, len, delivered, out) : CSSL_E_NOT_FOUND;
}

void service_forget(const struct service *s, struct service_recall *r)
{
	if (r) /* so its row has notes */
		ops_of(s)->notes->forget(r);
}

int service_can_go_on(const struct service *s)
{
	const struct service_note_ops *notes = notes_of(s);

	return notes && notes->can_go_on(s);
}

ptrdiff_t service_ask_rest(const struct service *s, const struct service_recall *r, const uint8_t *heard, size_t len,
	uint8_t *out, size_t cap)
{
	return ops_of(s)->notes->ask_rest(r, heard, len, out, cap);
}

int service_is_rest(struct service *s, struct service_recall *r, const uint8_t *data, size_t len, size_t *hidden)
{
	return ops_of(s)->notes->is_rest(s, r, data, len, hidden);
}

void service_go_on(struct service *s, const struct service_recall *r)
{
	ops_of(s)->notes->go_on(s, r);
}

/* --- services that stand between --- */

static const struct service_between_ops *between(const struct service *s)
{
	return ops_of(s)->between;
}

int service_stands_between(const struct service *s)
{
	return is_followed(s) && between(s);
}

int service_own(struct service *s, const struct service_owner *owner)
{
	return between(s)->own(s, owner);
}

int service_resume(struct service *s, const struct service_resumption *r)
{
	return between(s)->resume(s, r);
}

void service_heard_all(struct service *s)
{
	between(s)->heard_all(s);
}

void service_at_record(struct service *s, uint64_t record)
{
	between(s)->at_record(s, record);
}

int service_wants_backend(const struct service *s)
{
	return between(s)->wants_backend(s);
}

int service_backend_begins(struct service *s)
{
	return between(s)->backend_begins(s);
}

void service_backend_says(struct service *s, const uint8_t *data, size_t len)
{
	between(s)->backend_says(s, data, len);
}

void service_backend_gone(struct service *s)
{
	between(s)->backend_gone(s);
}

size_t service_for_backend(const struct service *s, const uint8_t **data)
{
	return between(s)->for_backend(s, data);
}

void service_given_to_backend(struct service *s)
{
	between(s)->given_to_backend(s);
}

size_t service_for_client(const struct service *s, const uint8_t **data)
{
	return between(s)->for_client(s, data);
}

void service_splits_reply(struct service *s)
{
	between(s)->splits_reply(s);
}

size_t service_taken(struct service *s)
{
	return between(s)->taken(s);
}

size_t service_note(struct service *s, uint8_t out[static SERVICE_NOTE_MAX])
{
	return between(s)->note(s, out);
}

int service_may_begin_anew(const struct service *s)
{
	return between(s)->may_begin_anew(s);
}

int service_awaits_verdict(const struct service *s)
{
	return between(s)->awaits_verdict(s);
}

void service_end(struct service *s, enum service_parting why)
{
	between(s)->end(s, why);
}

enum service_over service_is_over(const struct service *s)
{
	return between(s)->is_over(s);
}

enum end_reason service_over_for(const struct service *s)
{
	return between(s)->over_for(s);
}

void service_at_checkpoint(struct service *s)
{
	if (service_stands_between(s))
		between(s)->at_checkpoint(s);
}
