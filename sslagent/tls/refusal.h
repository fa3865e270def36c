/* refusal.h: why handshakes fail: reasons from OpenSSL, and reasons outside of it. */
#ifndef CSSL_SSLAGENT_REFUSAL_H
#define CSSL_SSLAGENT_REFUSAL_H

/* In the order of their counters (counters.h). */
enum refusal {
	REFUSAL_VERSION,
	REFUSAL_CIPHER, /* or group, or signature algorithm */
	REFUSAL_ALPN,
	REFUSAL_CERTIFICATE,
	REFUSAL_ALERT, /* the client's */
	REFUSAL_MESSAGE,
	REFUSAL_TIMEOUT,
	REFUSAL_CLIENT_GONE,
	REFUSAL_OTHER
};

/* The refusal for an error of OpenSSL's queue in a handshake. @error 0: the queue was empty. */
enum refusal refusal_of_error(unsigned long error);

#endif
