/* opening_pair.c: an opening whose messages go from one side to the other by hand. */
#include <check.h>
#include <string.h>

#include "tests/unit/proto/opening_pair.h"

void ring_make(struct key_ring *ring, const char *text)
{
	unsigned line;

	ck_assert_int_eq(key_ring_parse(text, strlen(text), ring, &line), 0);
}

static struct link_hello hello(enum link_role role, const char *name)
{
	struct link_hello h = {
		.version_min = 1,
		.version_max = LINK_VERSION,
		.role = role,
		.protection = LINK_SEALED,
		.aead = AEAD_AES_256_GCM,
		.boot_id = role,
		.workers = 2,
		.target_worker = 1,
		.id_check_key = "the check key 16",
	};

	strcpy(h.name, name);
	return h;
}

struct both both(void)
{
	struct both b = {
		.ragent = hello(LINK_ROLE_RAGENT, "ragent-1"),
		.agent = hello(LINK_ROLE_AGENT, "agent-1"),
		.expected_by_ragent = LINK_ROLE_AGENT,
		.expected_by_agent = LINK_ROLE_RAGENT,
	};

	ring_make(&b.ragent_ring, "k1 " HEX_1 "\n");
	ring_make(&b.agent_ring, "k1 " HEX_1 "\n");
	return b;
}

void both_begin(struct both *b)
{
	b->initiator = opening_start(&b->ragent_ring, b->key, &b->ragent, b->expected_by_ragent);
	b->responder = opening_answer(&b->agent_ring, &b->agent, b->expected_by_agent);
	ck_assert_ptr_nonnull(b->initiator);
	ck_assert_ptr_nonnull(b->responder);
}

void both_end(struct both *b)
{
	opening_destroy(b->initiator);
	opening_destroy(b->responder);
}

int give(struct opening *o, const struct message *in, struct message *out)
{
	size_t taken;
	int result = opening_step(o, in->bytes, in->len, &taken, out->bytes, &out->len);

	if (result > 0)
		ck_assert_uint_eq(taken, result == OPENING_DONE || out->len > 0 ? in->len : 0);
	return result;
}

const struct message nothing;

void run(struct both *b, struct message m[static 3])
{
	struct message none;

	ck_assert_int_eq(give(b->initiator, &nothing, &m[0]), OPENING_MORE);
	ck_assert_int_eq(give(b->responder, &m[0], &m[1]), OPENING_MORE);
	ck_assert_int_eq(give(b->initiator, &m[1], &m[2]), OPENING_DONE);
	ck_assert_int_eq(give(b->responder, &m[2], &none), OPENING_DONE);
	ck_assert_uint_eq(none.len, 0);
}

int refusal(struct both *b)
{
	struct message m[3] = { 0 }, none;
	int result;

	both_begin(b);
	result = give(b->initiator, &nothing, &m[0]);
	if (result == OPENING_MORE)
		result = give(b->responder, &m[0], &m[1]);
	if (result == OPENING_MORE)
		result = give(b->initiator, &m[1], &m[2]);
	if (result == OPENING_DONE)
		result = give(b->responder, &m[2], &none);
	both_end(b);
	return result;
}
