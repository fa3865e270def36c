/* service.c: the table of services, and the answers for every conversation that is not followed, of whichever
 * service.
 */
#include "sslagent/service/service.h"

#include <stdlib.h>

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

static bool is_followed(const struct service *s)
{
	return s->following == SERVICE_FOLLOWED;
}

static bool has_state(const struct service *s)
{
	return is_followed(s) && s->state;
}

void service_blocks_init(struct service_blocks *b)
{
	for (int i = 0; i < CONF_SERVICE_COUNT; i++)
		if (service_rows[i]->state_len)
			slabs_init(&b->of[i], service_rows[i]->state_len);
}

void service_blocks_clear(struct service_blocks *b)
{
	for (int i = 0; i < CONF_SERVICE_COUNT; i++)
		if (service_rows[i]->state_len)
			slabs_clear(&b->of[i]);
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
	ops_of(s)->from_client(s, SERVICE_ALL, data, len);
}

size_t service_pass(
	struct service *s, enum service_until until, const uint8_t *data, size_t len, struct service_outgoing *out)
{
	if (is_followed(s) && ops_of(s)->pass)
		return ops_of(s)->pass(s, data, len, out);
	*out = (struct service_outgoing){ .len = ops_of(s)->from_client(s, until, data, len) };
	return out->len;
}

enum service_piece service_from_backend(struct service *s, const uint8_t *data, size_t len)
{
	return ops_of(s)->from_backend(s, data, len);
}

bool service_is_being_asked(const struct service *s)
{
	if (!is_followed(s))
		return false;
	return ops_of(s)->is_being_asked ? ops_of(s)->is_being_asked(s) : service_place(s) != SERVICE_CHECKPOINT;
}

uint32_t service_head_under_way(const struct service *s)
{
	return is_followed(s) && ops_of(s)->head_under_way ? ops_of(s)->head_under_way(s) : 0;
}

enum service_place service_place(const struct service *s)
{
	if (is_followed(s))
		return ops_of(s)->place(s);
	return s->passed == SERVICE_UNTOUCHED ? SERVICE_CHECKPOINT : SERVICE_OPAQUE;
}

enum service_reuse service_backend_reuse(const struct service *s)
{
	return is_followed(s) && ops_of(s)->backend_reuse ? ops_of(s)->backend_reuse(s) : SERVICE_BACKEND_USED_UP;
}

enum service_end service_backend_ended(struct service *s)
{
	if (s->state && ops_of(s)->backend_ended)
		return ops_of(s)->backend_ended(s);
	return s->passed == SERVICE_DOUBTED ? SERVICE_END_CUT : SERVICE_END_WHOLE;
}

bool service_said_last(const struct service *s)
{
	return s->state && ops_of(s)->said_last && ops_of(s)->said_last(s);
}

bool service_takes_no_more(const struct service *s)
{
	return is_followed(s) && service_said_last(s) && !service_is_being_asked(s);
}

enum service_parting service_parting(const struct service *s)
{
	return has_state(s) && ops_of(s)->parting ? ops_of(s)->parting(s) : SERVICE_STAYS;
}

void service_strand(struct service *s)
{
	if (is_followed(s) && ops_of(s)->strand)
		ops_of(s)->strand(s);
}

bool service_is_stranded(const struct service *s)
{
	return has_state(s) && ops_of(s)->is_stranded && ops_of(s)->is_stranded(s);
}

void service_wind_down(struct service *s)
{
	if (has_state(s) && ops_of(s)->wind_down)
		ops_of(s)->wind_down(s);
}

const char *service_words(const struct service *s, size_t *len)
{
	return has_state(s) && ops_of(s)->words ? ops_of(s)->words(s, len) : NULL;
}

size_t service_hold(struct service *s, const uint8_t *data, size_t len)
{
	return is_followed(s) && ops_of(s)->hold ? ops_of(s)->hold(s, data, len) : 0;
}

size_t service_until_words(const struct service *s, const uint8_t *data, size_t len)
{
	return has_state(s) && ops_of(s)->until_words ? ops_of(s)->until_words(s, data, len) : len;
}

const char *service_last_words(const struct service *s, enum service_parting why, size_t *len)
{
	return is_followed(s) && ops_of(s)->last_words ? ops_of(s)->last_words(s, why, len) : NULL;
}

unsigned service_outstanding(const struct service *s)
{
	return has_state(s) && ops_of(s)->outstanding ? ops_of(s)->outstanding(s) : 0;
}

enum service_repeat service_repeat(const struct service *s)
{
	if (is_followed(s))
		return ops_of(s)->repeat ? ops_of(s)->repeat(s) : SERVICE_REPEAT_NEVER;
	return s->passed == SERVICE_UNTOUCHED ? SERVICE_REPEAT_ANY_TIME : SERVICE_REPEAT_NEVER;
}

bool service_may_ask_again(const struct service *s)
{
	return has_state(s) && ops_of(s)->may_ask_again && ops_of(s)->may_ask_again(s);
}

size_t service_kept_len(const struct service *s)
{
	return s->state && ops_of(s)->kept_len ? ops_of(s)->kept_len(s) : 0;
}

int service_save(const struct service *s, uint8_t **out, size_t *len)
{
	*out = NULL;
	*len = 0;
	if (!is_followed(s) && !s->state)
		return 0;
	uint8_t *state = malloc(ops_of(s)->save_max);
	const ptrdiff_t n = state ? ops_of(s)->save(s, state) : CSSL_E_NO_MEMORY;
	if (n <= 0) {
		free(state);
		return (int)n;
	}
	*out = state;
	*len = (size_t)n;
	return 0;
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
