/* kept_bytes.c: plaintext that is kept and wiped. */
#include "sslagent/connection/kept_bytes.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "proto/error.h"

#define KEPT_BYTES_MIN 120u

void kept_bytes_wipe(struct kept_bytes **k)
{
	if (*k)
		sodium_memzero((*k)->bytes, (*k)->len);
	free(*k);
	*k = NULL;
}

/* Without realloc(), so that no plaintext is left in memory. */
static int kept_bytes_grow(struct kept_bytes **h, size_t len)
{
	const size_t need = (*h ? (*h)->len : 0) + len, wish = (*h ? (*h)->cap : 0) * 2 + len;
	const size_t most = need > HEAD_KEPT_MAX ? wish : HEAD_KEPT_MAX;
	const size_t cap = wish < KEPT_BYTES_MIN ? KEPT_BYTES_MIN : wish < most ? wish : most;
	struct kept_bytes *bigger = malloc(sizeof *bigger + cap);

	if (!bigger)
		return CSSL_E_NO_MEMORY;
	bigger->len = *h ? (*h)->len : 0;
	bigger->cap = (uint32_t)cap;
	if (*h)
		memcpy(bigger->bytes, (*h)->bytes, (*h)->len);
	kept_bytes_wipe(h);
	*h = bigger;
	return 0;
}

int kept_bytes_add(struct kept_bytes **k, const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	if ((!*k || (*k)->cap - (*k)->len < len) && kept_bytes_grow(k, len) < 0)
		return CSSL_E_NO_MEMORY;
	memcpy((*k)->bytes + (*k)->len, data, len);
	(*k)->len += (uint32_t)len;
	return 0;
}
