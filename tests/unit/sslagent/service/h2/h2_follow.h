/* h2_follow.h: a follower that follows scripts (h2_script.h), and what it says, as text. */
#pragma once

#include <check.h>
#include <stdio.h>

#include "sslagent/service/h2/h2_follower.h"
#include "tests/unit/sslagent/service/h2/h2_script.h"
#include "tests/unit/unit.h"

#define BEGUN ">P >S <S100 >Sa <Sa "

static struct slabs blocks;

static inline void say(struct h2_follower *h, char direction, const uint8_t *data, size_t len)
{
	struct service_outgoing ignored;

	for (size_t used = 0; direction == '>' && used < len;)
		used += h2_from_client(h, data + used, len - used, &ignored);
	if (direction == '<')
		h2_from_backend(h, data, len);
}

static inline const char *begin(struct h2_follower *h, const char *script)
{
	if (*script == '=')
		h->phase = H2_STRANDED;
	return script + (*script == '=');
}

static inline void follow(struct h2_follower *h, const char *script)
{
	uint8_t frame[H2_SCRIPT_FRAME_MAX];
	char direction;

	script = begin(h, script);
	for (size_t len; (len = h2_script_next(&script, &direction, frame)) > 0;)
		say(h, direction, frame, len);
}

static inline struct h2_follower *followed(const char *script)
{
	struct h2_follower *h = h2_follower_create(&blocks);

	follow(h, script);
	return h;
}

static inline struct h2_follower *moved(struct h2_follower *h)
{
	uint8_t state[H2_STATE_MAX];
	size_t len = h2_follower_save(h, state);

	if (len == 0)
		return h;
	h2_follower_destroy(&blocks, h);
	h = h2_follower_restore(&blocks, state, len);
	ck_assert_ptr_nonnull(h);
	return h;
}

/* The frames in words of a script: types and the last stream of a GOAWAY. */
static inline void read_frames(const uint8_t *data, size_t len, char out[static 64])
{
	struct wire_reader r = wire_reader(data, len);
	size_t at = 0;

	out[0] = '\0';
	while (wire_left(&r) > 0) {
		struct wire_reader head = r;
		uint32_t payload_len = wire_u24(&head);
		uint8_t type = wire_u8(&head), flags = wire_u8(&head);
		uint32_t stream = wire_u32(&head);
		ck_assert_uint_eq(stream != 0, type == H2_RST_STREAM || type == H2_HEADERS);
		const uint8_t *payload = wire_bytes(&head, payload_len);
		ck_assert_ptr_nonnull(payload);
		if (type == H2_GOAWAY)
			at += (size_t)snprintf(
				out + at, 64 - at, "G%u/%u ", wire_load_u32(payload), wire_load_u32(payload + 4));
		else if (type == H2_RST_STREAM)
			at += (size_t)snprintf(out + at, 64 - at, "R%u/%u ", stream, wire_load_u32(payload));
		else if (type == H2_HEADERS)
			at += (size_t)snprintf(out + at, 64 - at, "H%u/%.*s ", stream, 3, (const char *)payload + 2);
		else
			at += (size_t)snprintf(
				out + at, 64 - at, "%c%s ", "DHTRSUpGWC"[type], flags & H2_ACK ? "a" : "");
		if (type == H2_PING)
			ck_assert_mem_eq(payload, flags & H2_ACK ? "pingpong" : "CSSLseen", 8);
		r = head;
	}
}

static inline void must_say(struct h2_follower *h, const char *expected)
{
	char said[64] = "";
	size_t len;
	const uint8_t *words = h2_words(h, &len);

	if (words)
		read_frames(words, len, said);
	ck_assert_str_eq(said, expected);
	if (words)
		h2_from_backend(h, words, len);
}
