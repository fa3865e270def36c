/* content.h: the plain forms of the items that are sealed into the backups. Numbers are big endian.
 *
 *   message  u8 1, u64 accepted (wall clock, ms), u8 length and destination, u32 length and envelope, body to the end
 *   state    u8 1, u16 attempts, u64 due (wall clock, ms), u8 held (0 or 1), note of the delivery side to the end;
 *            with steps: u8 2, u16 attempts, u64 due, u8 held, u16 steps, note
 *   decided  u8 1, u64 decided (wall clock, ms), u8 length and name, reply to the end
 *   order    u8 1, u8 stopped (0 or 1), u32 rate (messages a minute; 0: no limit), destination to the end
 *   grave    u8 1, u64 id of a message that was deleted
 */
#ifndef CSSL_SMTPPROXY_QUEUE_CONTENT_H
#define CSSL_SMTPPROXY_QUEUE_CONTENT_H

#include <stddef.h>
#include <stdint.h>

struct content_bytes {
	const uint8_t *data;
	size_t len;
};

struct content_message {
	int64_t accepted_ms;
	struct content_bytes destination; /* 1 to 255 bytes */
	struct content_bytes envelope, body;
};

struct content_state {
	uint16_t attempts;
	uint16_t steps; /* further states since that attempt: of two states, the one with more of them is the later one
			 */
	int64_t due_ms;
	unsigned held; /* 0 or 1 */
	struct content_bytes note;
};

struct content_decided {
	int64_t decided_ms;
	struct content_bytes name; /* 1 to 255 bytes */
	struct content_bytes reply;
};

struct content_order {
	unsigned stopped;                 /* 0 or 1 */
	uint32_t rate;                    /* messages a minute; 0: no limit */
	struct content_bytes destination; /* 1 to 255 bytes */
};

/* Of two states of one message: true if @s was written before the one with these numbers. */
static inline int content_state_is_earlier(const struct content_state *s, uint16_t attempts, uint16_t steps)
{
	return s->attempts != attempts ? s->attempts < attempts : s->steps < steps;
}

#define CONTENT_GRAVE_LEN 9u

/* Lengths of the plain forms. */
size_t content_message_len(const struct content_message *m);
size_t content_state_len(const struct content_state *s);
size_t content_decided_len(const struct content_decided *d);
size_t content_order_len(const struct content_order *o);

/* @out has room for that length. */
void content_message_write(const struct content_message *m, uint8_t *out);
void content_state_write(const struct content_state *s, uint8_t *out);
void content_decided_write(const struct content_decided *d, uint8_t *out);
void content_order_write(const struct content_order *o, uint8_t *out);
void content_grave_write(uint64_t id, uint8_t *out);

/* The results point into @in. 0, or CSSL_E_TRUNCATED, CSSL_E_VERSION, CSSL_E_RANGE. */
int content_message_read(struct content_message *m, const uint8_t *in, size_t len);
int content_state_read(struct content_state *s, const uint8_t *in, size_t len);
int content_decided_read(struct content_decided *d, const uint8_t *in, size_t len);
int content_order_read(struct content_order *o, const uint8_t *in, size_t len);
int content_grave_read(uint64_t *id, const uint8_t *in, size_t len);

#endif
