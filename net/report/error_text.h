/* error_text.h: the sentence for an error of CSSL (proto/error.h) or of libuv (a negative errno is one of those).
 */
#pragma once

/* For logs. Never NULL; "success" for 0. */
const char *error_text(int error);
