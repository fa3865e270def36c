/* service_ops.h: one service, as the rest of the agent sees it: a table of operations. Each operation does the same
 * as the function of its name in service.h. For the files of service/ only.
 */
#pragma once

#include "sslagent/service/service.h"

struct service_ops {
	/* Called for every conversation, also for one that the service gave up. */
	size_t (*from_client)(struct service *s, enum service_until until, const uint8_t *data, size_t len);
	/* NULL: all goes on as it is. */
	size_t (*pass)(struct service *s, const uint8_t *data, size_t len, struct service_outgoing *out);
	enum service_piece (*from_backend)(struct service *s, const uint8_t *data, size_t len);

	/* The rest is for services that follow. NULL in a service that never does. */

	/* Also called after the service gave up. */
	size_t state_len;                      /* of a block */
	void (*drop_state)(struct service *s); /* there is one; it goes back to its slabs */
	/* There is a state. NULL: every end is whole; no answer is the last one. */
	enum service_end (*backend_ended)(struct service *s);
	bool (*said_last)(const struct service *s);
	/* At most save_max bytes. Returns how many; 0: nothing is known; or negative. */
	ptrdiff_t (*save)(const struct service *s, uint8_t *out);
	size_t save_max;
	size_t (*kept_len)(const struct service *s); /* NULL: it keeps nothing */

	/* Called only while it follows. */
	enum service_place (*place)(const struct service *s);
	void (*restore)(struct service *s, const uint8_t *state, size_t len); /* gives up if it cannot */
	uint32_t (*head_under_way)(const struct service *s);                  /* NULL: 0 */
	enum service_reuse (*backend_reuse)(const struct service *s);         /* NULL: used up */
	enum service_repeat (*repeat)(const struct service *s);               /* NULL: never */
	const char *(*last_words)(
		const struct service *s, enum service_parting why, size_t *len); /* NULL: there are none */

	bool (*is_being_asked)(const struct service *s); /* NULL: where it is not at a checkpoint */

	/* The same, and there is a state. */
	unsigned (*outstanding)(const struct service *s); /* NULL: 0 */
	bool (*may_ask_again)(const struct service *s);   /* NULL: never */

	/* For a service that ends conversations itself or sends words of its own. NULL in others. There is a state,
	 * except for strand() and hold(). */
	void (*strand)(struct service *s);
	enum service_parting (*parting)(const struct service *s);
	bool (*is_stranded)(const struct service *s);
	void (*wind_down)(struct service *s);
	const char *(*words)(const struct service *s, size_t *len);
	size_t (*hold)(struct service *s, const uint8_t *data, size_t len);
	size_t (*until_words)(const struct service *s, const uint8_t *data, size_t len);
};

/* Indexed by enum conf_service. */
extern const struct service_ops *const service_rows[CONF_SERVICE_COUNT];

extern const struct service_ops service_tcp, service_http, service_smtp, service_h2;

/* The service no longer understands the conversation. */
void service_give_up(struct service *s, enum service_passed passed);
/* Bytes passed that were not followed. */
void service_touch(struct service *s);
