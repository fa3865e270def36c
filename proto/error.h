/* error.h: every negative result of CSSL's own functions.
 *
 * 0 is success. Negative is fatal for the object at hand and is passed up untouched; one object's failure never ends a
 * daemon. Positive is a documented condition that the direct caller handles. libuv's own results stay libuv's.
 */
#pragma once

#include <stdbool.h>

/* X(name, value, sentence). The values are far below those of libuv, so that no number is an error of both. */
#define CSSL_ERRORS(X)                                                                                                 \
	X(TRUNCATED, -20001, "message ends too early")                                                                 \
	X(TRAILING, -20002, "bytes are left over behind the message")                                                  \
	X(RANGE, -20003, "a value is out of its range")                                                                \
	X(TYPE, -20004, "unknown type")                                                                                \
	X(VERSION, -20005, "version not supported")                                                                    \
	X(AUTH, -20006, "authentication failed")                                                                       \
	X(REPLAY, -20007, "replayed or too old")                                                                       \
	X(KEY_UNKNOWN, -20008, "key not known")                                                                        \
	X(TOO_LONG, -20009, "too long")                                                                                \
	X(EXHAUSTED, -20010, "a counter reached its limit")                                                            \
	X(STATE, -20011, "not possible in this state")                                                                 \
	X(EXPIRED, -20012, "expired")                                                                                  \
	X(MISMATCH, -20013, "does not belong to this object")                                                          \
	X(NOT_FOUND, -20014, "not found")                                                                              \
	X(FULL, -20015, "no room")                                                                                     \
	X(BUSY, -20016, "busy")                                                                                        \
	X(NO_MEMORY, -20017, "out of memory")                                                                          \
	X(CRYPTO, -20018, "the crypto library failed")                                                                 \
	X(SYSTEM, -20019, "a system call failed")                                                                      \
	X(CONFIG, -20020, "bad configuration")                                                                         \
	X(UNSAFE, -20021, "would reuse a nonce")

enum cssl_error {
#define X(name, value, sentence) CSSL_E_##name = value,
	CSSL_ERRORS(X)
#undef X
};

/* Is @error in the list? Other errors are libuv's: net/report/error_text.h has the sentences of both. */
bool cssl_error_is_own(int error);

/* The sentence of an error of the list, for logs. Never NULL. */
const char *cssl_strerror(int error);
