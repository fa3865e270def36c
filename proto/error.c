/* error.c: the list of error.h as sentences. */
#include "proto/error.h"

#include <stddef.h>

static const char *sentence_of(int error)
{
	switch (error) {
#define X(name, value, sentence)                                                                                       \
	case value: return sentence;
		CSSL_ERRORS(X)
#undef X
	}
	return NULL;
}

bool cssl_error_is_own(int error)
{
	return sentence_of(error) != NULL;
}

const char *cssl_strerror(int error)
{
	const char *sentence = error ? sentence_of(error) : "success";
	return sentence ? sentence : "unknown error";
}
