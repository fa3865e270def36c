/* agents_key.c: reads the text of a key file, and derives subkeys. After any error in the text the whole ring is
 * wiped, because a part of it would open less than its owner expects. */
#include "proto/agents_key.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "proto/error.h"

#define HEX_LEN        (2 * KEY_LEN)
#define SUBKEY_CONTEXT "csslkeys"

_Static_assert(KEY_LEN == crypto_kdf_KEYBYTES, "crypto_kdf takes a ring's keys");
_Static_assert(sizeof SUBKEY_CONTEXT - 1 == crypto_kdf_CONTEXTBYTES, "crypto_kdf takes the context");

/* A piece of the text. */
struct span {
	const char *at;
	size_t len;
};

static bool agents_key_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static struct span next_line(struct span *text)
{
	const char *end = memchr(text->at, '\n', text->len);
	struct span line = { text->at, end ? (size_t)(end - text->at) : text->len };
	size_t used = line.len + (end ? 1 : 0);

	text->at += used;
	text->len -= used;
	return line;
}

/* Take the next word from @line; empty if there is none. */
static struct span agents_key_next_word(struct span *line)
{
	while (line->len > 0 && agents_key_is_blank(*line->at)) {
		line->at++;
		line->len--;
	}
	struct span word = { line->at, 0 };
	while (line->len > 0 && !agents_key_is_blank(*line->at)) {
		word.len++;
		line->at++;
		line->len--;
	}
	return word;
}

static int id_parse(struct span word, char out[static KEY_ID_MAX + 1])
{
	if (word.len > KEY_ID_MAX)
		return CSSL_E_TYPE;
	for (size_t i = 0; i < word.len; i++)
		if (!is_word(word.at[i]))
			return CSSL_E_TYPE;
	memcpy(out, word.at, word.len);
	out[word.len] = '\0';
	return 0;
}

/* sodium_hex2bin takes the same time for every key. */
static int key_parse(struct span word, uint8_t out[static KEY_LEN])
{
	size_t len;

	if (word.len != HEX_LEN)
		return CSSL_E_RANGE;
	if (sodium_hex2bin(out, KEY_LEN, word.at, word.len, NULL, &len, NULL) != 0 || len != KEY_LEN)
		return CSSL_E_RANGE;
	return 0;
}

/* Is the newest key in the ring already, with the same id or the same value? */
static bool is_duplicate(const struct key_ring *ring)
{
	unsigned last = ring->count;

	for (unsigned i = 0; i < last; i++)
		if (strcmp(ring->keys[i].id, ring->keys[last].id) == 0 ||
			sodium_memcmp(ring->keys[i].key, ring->keys[last].key, KEY_LEN) == 0)
			return true;
	return false;
}

static int line_parse(struct span line, struct key_ring *ring)
{
	struct span id = agents_key_next_word(&line);
	struct span key = agents_key_next_word(&line);

	if (id.len == 0 || *id.at == '#')
		return 0;
	if (key.len == 0 || agents_key_next_word(&line).len > 0)
		return CSSL_E_CONFIG;
	if (ring->count == KEY_RING_MAX)
		return CSSL_E_FULL;
	int r = id_parse(id, ring->keys[ring->count].id);
	if (r)
		return r;
	r = key_parse(key, ring->keys[ring->count].key);
	if (r)
		return r;
	if (is_duplicate(ring))
		return CSSL_E_MISMATCH;
	ring->count++;
	return 0;
}

int key_ring_parse(const char *text, size_t len, struct key_ring *out, unsigned *line)
{
	struct span left = { text, len };
	int r = 0;

	sodium_memzero(out, sizeof *out);
	for (*line = 0; left.len > 0 && !r; ++*line)
		r = line_parse(next_line(&left), out);
	if (!r && out->count == 0)
		r = CSSL_E_NOT_FOUND;
	if (*line == 0)
		*line = 1;
	if (r)
		sodium_memzero(out, sizeof *out);
	return r;
}

int key_ring_find(const struct key_ring *ring, const char *id, size_t id_len)
{
	for (unsigned i = 0; i < ring->count; i++)
		if (strlen(ring->keys[i].id) == id_len && memcmp(ring->keys[i].id, id, id_len) == 0)
			return (int)i;
	return CSSL_E_KEY_UNKNOWN;
}

void key_ring_subkey(const struct key_ring *ring, unsigned index, enum subkey purpose, uint8_t *out, size_t len)
{
	assert(index < ring->count);
	assert(len >= crypto_kdf_BYTES_MIN && len <= crypto_kdf_BYTES_MAX);
	crypto_kdf_derive_from_key(out, len, (uint64_t)purpose, SUBKEY_CONTEXT, ring->keys[index].key);
}
