/* service.c: the table of services, and what holds of every conversation that is not followed, whichever service it
 * had.
 */
#include "sslagent/service/service.h"

#include "proto/error.h"
#include "sslagent/service/service_ops.h"

const struct service_ops *const service_rows[CONF_SERVICE_COUNT] = {
	[CONF_TCP] = &service_tcp,
	[CONF_HTTP] = &service_http,
	[CONF_SMTP] = &service_tcp,
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

size_t service_from_client_to_end(struct service *s, const uint8_t *data, size_t len)
{
	return ops_of(s)->from_client_to_end(s, data, len);
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

size_t service_until_words(const struct service *s, size_t len)
{
	return is_followed(s) && ops_of(s)->until_words ? ops_of(s)->until_words(s, len) : len;
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

int service_save(const struct service *s, uint8_t **out, size_t *len)
{
	*out = NULL;
	*len = 0;
	return is_followed(s) || s->state ? ops_of(s)->save(s, out, len) : 0;
}

void service_restore(
	struct service *s, enum conf_service kind, struct service_blocks *blocks, const uint8_t *state, size_t len)
{
	service_init(s, kind, blocks);
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
	const struct service *s, const uint8_t *data, size_t len, size_t whole, uint8_t out[static SERVICE_NOTE_MAX])
{
	const struct service_note_ops *notes = notes_of(s);

	return notes ? notes->leave(s, data, len, whole, out) : 0;
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

int service_is_rest(const struct service *s, struct service_recall *r, const uint8_t *data, size_t len, size_t *hidden)
{
	return ops_of(s)->notes->is_rest(r, data, len, hidden);
}

void service_go_on(struct service *s, const struct service_recall *r)
{
	ops_of(s)->notes->go_on(s, r);
}
