/* error_text.c: the only place that tells CSSL's errors from libuv's. */
#include "net/report/error_text.h"

#include <uv.h>

#include "proto/error.h"

const char *error_text(int error)
{
	return error == 0 || cssl_error_is_own(error) ? cssl_strerror(error) : uv_strerror(error);
}
