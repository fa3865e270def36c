/* nearest.h: finds the word that was probably meant by an unknown one. */
#ifndef CSSL_CONF_NEAREST_H
#define CSSL_CONF_NEAREST_H

#include <stddef.h>
#include <stdint.h>

/* Embedded; the caller owns the words. */
struct nearest {
	const char *written, *word;
	size_t distance;
};
#define NEAREST_TO(text)                                                                                               \
	{                                                                                                              \
		.written = (text), .distance = SIZE_MAX                                                                \
	}

void nearest_try(struct nearest *n, const char *word);

/* NULL: none is near. */
const char *nearest_found(const struct nearest *n);

#endif
