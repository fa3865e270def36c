/* message_assembler.c: a whole message is delivered without a copy. */
#include "sslagent/cluster/peers/message_assembler.h"

#include <openssl/crypto.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

#define FIRST_CAP 4096u

void message_assembler_clear(struct message_assembler *a)
{
	OPENSSL_clear_free(a->kept, a->kept_cap);
	*a = (struct message_assembler){ 0 };
}

static int assembler_keep(struct message_assembler *a, const uint8_t *in, size_t len)
{
	size_t cap = a->kept_cap ? a->kept_cap : FIRST_CAP;
	uint8_t *grown;

	if (len == 0)
		return 0;
	while (cap < a->kept_len + len)
		cap *= 2;
	if (cap > a->kept_cap) {
		grown = OPENSSL_clear_realloc(a->kept, a->kept_cap, cap);
		if (!grown)
			return CSSL_E_NO_MEMORY;
		a->kept = grown;
		a->kept_cap = cap;
	}
	memcpy(a->kept + a->kept_len, in, len);
	a->kept_len += len;
	return 0;
}

/* Bytes of the message at @in with its length, 0: not known yet. */
static size_t assembler_whole_len(const uint8_t *in, size_t len)
{
	return len < MESSAGE_LENGTH_LEN ? 0 : (size_t)MESSAGE_LENGTH_LEN + wire_load_u32(in);
}

/* How many of the @len bytes belong to the message that was begun. */
static size_t assembler_still_needed(const struct message_assembler *a, size_t len)
{
	size_t whole = assembler_whole_len(a->kept, a->kept_len);
	size_t needed = (whole > 0 ? whole : MESSAGE_LENGTH_LEN) - a->kept_len;

	return needed < len ? needed : len;
}

typedef int (*message_fn)(void *ctx, const uint8_t *message, size_t len);

static int assembler_deliver_kept(struct message_assembler *a, size_t max, message_fn on_message, void *ctx)
{
	size_t whole = assembler_whole_len(a->kept, a->kept_len);
	int result;

	if (whole > max + MESSAGE_LENGTH_LEN)
		return CSSL_E_TOO_LONG;
	if (whole == 0 || a->kept_len < whole)
		return 0;
	result = on_message(ctx, a->kept + MESSAGE_LENGTH_LEN, whole - MESSAGE_LENGTH_LEN);
	message_assembler_clear(a);
	return result;
}

int message_assembler_feed(struct message_assembler *a, const uint8_t *in, size_t len, size_t max,
	int (*on_message)(void *ctx, const uint8_t *message, size_t len), void *ctx)
{
	size_t whole;
	int result;

	while (len > 0 && a->kept_len > 0) {
		size_t taken = assembler_still_needed(a, len);

		result = assembler_keep(a, in, taken);
		if (!result)
			result = assembler_deliver_kept(a, max, on_message, ctx);
		if (result)
			return result;
		in += taken;
		len -= taken;
	}
	for (whole = assembler_whole_len(in, len); whole > 0 && whole <= len && whole <= max + MESSAGE_LENGTH_LEN;
		whole = assembler_whole_len(in, len)) {
		result = on_message(ctx, in + MESSAGE_LENGTH_LEN, whole - MESSAGE_LENGTH_LEN);
		if (result)
			return result;
		in += whole;
		len -= whole;
	}
	return whole > max + MESSAGE_LENGTH_LEN ? CSSL_E_TOO_LONG : assembler_keep(a, in, len);
}
