/* service_ops.h: one service, as the rest of the agent sees it: a table of operations. Each operation does the same
 * as the function of its name in service.h. For the files of service/ only.
 */
#ifndef CSSL_SSLAGENT_SERVICE_OPS_H
#define CSSL_SSLAGENT_SERVICE_OPS_H

#include "sslagent/service/service.h"

/* For answers that go on. */
struct service_note_ops {
	size_t (*leave)(struct service *s, const uint8_t *data, size_t len, size_t together,
		uint8_t out[static SERVICE_NOTE_MAX]);
	size_t (*leave_next)(
		struct service *s, const uint8_t *data, size_t together, uint8_t out[static SERVICE_NOTE_MAX]);
	int (*recall)(const uint8_t *note, size_t len, uint64_t delivered, struct service_recall **out);
	void (*forget)(struct service_recall *r);
	int (*can_go_on)(const struct service *s);
	ptrdiff_t (*ask_rest)(
		const struct service_recall *r, const uint8_t *heard, size_t len, uint8_t *out, size_t cap);
	int (*is_rest)(struct service *s, struct service_recall *r, const uint8_t *data, size_t len, size_t *hidden);
	void (*go_on)(struct service *s, const struct service_recall *r);
};

/* For a service that stands between. */
struct service_between_ops {
	int (*own)(struct service *s, const struct service_owner *owner);
	int (*resume)(struct service *s, const struct service_resumption *r);
	void (*heard_all)(struct service *s);
	void (*at_record)(struct service *s, uint64_t record);
	int (*wants_backend)(const struct service *s);
	int (*backend_begins)(struct service *s);
	void (*backend_says)(struct service *s, const uint8_t *data, size_t len);
	void (*backend_gone)(struct service *s);
	size_t (*for_backend)(const struct service *s, const uint8_t **data);
	void (*given_to_backend)(struct service *s);
	size_t (*for_client)(const struct service *s, const uint8_t **data);
	void (*splits_reply)(struct service *s);
	size_t (*taken)(struct service *s);
	size_t (*note)(struct service *s, uint8_t out[static SERVICE_NOTE_MAX]);
	void (*at_checkpoint)(struct service *s);
	int (*may_begin_anew)(const struct service *s);
	int (*awaits_verdict)(const struct service *s);
	void (*end)(struct service *s, enum service_parting why);
	enum service_over (*is_over)(const struct service *s);
	enum end_reason (*over_for)(const struct service *s);
};

struct service_ops {
	/* Called for every conversation, also for one that the service gave up. */
	void (*from_client)(struct service *s, const uint8_t *data, size_t len);
	size_t (*from_client_to_end)(struct service *s, const uint8_t *data, size_t len);
	/* NULL: all goes on as it is. */
	size_t (*pass)(struct service *s, const uint8_t *data, size_t len, struct service_outgoing *out);
	enum service_piece (*from_backend)(struct service *s, const uint8_t *data, size_t len);
	enum service_end (*backend_ended)(struct service *s);

	/* The rest is for services that follow. NULL in a service that never does. */

	/* Also called after the service gave up. */
	size_t (*state_len)(void);             /* of a block */
	void (*drop_state)(struct service *s); /* there is one; it goes back to its slabs */
	int (*said_last)(const struct service *s);
	int (*save)(const struct service *s, uint8_t **out, size_t *len);
	size_t (*kept_len)(const struct service *s); /* NULL: it keeps nothing */

	/* Called only while it follows. */
	enum service_place (*place)(const struct service *s);
	int (*is_being_asked)(const struct service *s);
	uint32_t (*head_under_way)(const struct service *s);
	enum service_reuse (*backend_reuse)(const struct service *s);
	const char *(*last_words)(const struct service *s, enum service_parting why, size_t *len);
	unsigned (*outstanding)(const struct service *s);
	enum service_repeat (*repeat)(const struct service *s);
	int (*may_ask_again)(const struct service *s);                        /* NULL: never */
	void (*restore)(struct service *s, const uint8_t *state, size_t len); /* gives up if it cannot */

	const struct service_note_ops *notes;      /* NULL: it leaves none */
	const struct service_between_ops *between; /* NULL: it does not stand between */

	/* For a service that ends conversations itself or sends words of its own. NULL in others. */
	enum service_parting (*parting)(const struct service *s);
	void (*strand)(struct service *s);
	int (*is_stranded)(const struct service *s);
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

#endif
