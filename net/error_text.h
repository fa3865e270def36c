/* error_text.h: the sentence for an error that may be CSSL's own (proto/error.h) or one of libuv (also: a negative
 * errno).
 */
#ifndef CSSL_NET_ERROR_TEXT_H
#define CSSL_NET_ERROR_TEXT_H

/* For logs. Never NULL; "success" for 0. */
const char *error_text(int error);

#endif
