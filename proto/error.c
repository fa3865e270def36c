/* error.c: the table of error.h as sentences and classes. */
#include "proto/error.h"

const char *cssl_strerror(int error)
{
	switch (error) {
	case 0: return "success";
#define X(name, value, class, sentence)                                                                                \
	case value: return sentence;
		CSSL_ERRORS(X)
#undef X
	}
	return "unknown error";
}

enum error_class cssl_error_class(int error)
{
	switch (error) {
#define X(name, value, class, sentence)                                                                                \
	case value: return ERROR_CLASS_##class;
		CSSL_ERRORS(X)
#undef X
	}
	return ERROR_CLASS_BUG;
}
