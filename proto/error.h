/* error.h: every negative result of CSSL's own functions.
 *
 * 0 is success. Negative is fatal for the object at hand and is passed up untouched; one object's failure never ends a
 * daemon. Positive is a documented condition that the direct caller handles. libuv's own results stay libuv's.
 */
#ifndef CSSL_PROTO_ERROR_H
#define CSSL_PROTO_ERROR_H

/* What a caller does about it. */
enum error_class {
	ERROR_CLASS_RETRY,  /* may succeed later or elsewhere */
	ERROR_CLASS_CLOSE,  /* the peer broke the protocol or went away: close that object */
	ERROR_CLASS_REFUSE, /* the request is refused, nothing changed */
	ERROR_CLASS_BUG,    /* our own mistake or out of memory */
};

/* X(name, value, class, sentence). Values start far below libuv's so that the two cannot be confused. */
#define CSSL_ERRORS(X)                                                                                                 \
	X(TRUNCATED, -20001, CLOSE, "message ends too early")                                                          \
	X(TRAILING, -20002, CLOSE, "bytes are left over behind the message")                                           \
	X(RANGE, -20003, CLOSE, "a value is out of its range")                                                         \
	X(TYPE, -20004, CLOSE, "unknown type")                                                                         \
	X(VERSION, -20005, REFUSE, "version not supported")                                                            \
	X(AUTH, -20006, CLOSE, "authentication failed")                                                                \
	X(REPLAY, -20007, REFUSE, "replayed or too old")                                                               \
	X(KEY_UNKNOWN, -20008, REFUSE, "key not known")                                                                \
	X(TOO_LONG, -20009, CLOSE, "too long")                                                                         \
	X(EXHAUSTED, -20010, CLOSE, "a counter reached its limit")                                                     \
	X(STATE, -20011, REFUSE, "not possible in this state")                                                         \
	X(EXPIRED, -20012, REFUSE, "expired")                                                                          \
	X(MISMATCH, -20013, REFUSE, "does not belong to this object")                                                  \
	X(NOT_FOUND, -20014, REFUSE, "not found")                                                                      \
	X(FULL, -20015, RETRY, "no room")                                                                              \
	X(BUSY, -20016, RETRY, "busy")                                                                                 \
	X(NO_MEMORY, -20017, BUG, "out of memory")                                                                     \
	X(CRYPTO, -20018, BUG, "the crypto library failed")                                                            \
	X(SYSTEM, -20019, RETRY, "a system call failed")                                                               \
	X(CONFIG, -20020, REFUSE, "bad configuration")                                                                 \
	X(UNSAFE, -20021, REFUSE, "would reuse a nonce")

enum cssl_error {
#define X(name, value, class, sentence) CSSL_E_##name = value,
	CSSL_ERRORS(X)
#undef X
};

/* The sentence, for logs. Never NULL. */
const char *cssl_strerror(int error);

enum error_class cssl_error_class(int error);

#endif
