/* session_tx_remote.h: the process that has replaced this one asks about transactions that were named here. */
#ifndef CSSL_SMTPPROXY_SESSION_TX_REMOTE_H
#define CSSL_SMTPPROXY_SESSION_TX_REMOTE_H

#include "smtpproxy/sender/session_inside.h"

/* The way of the answers. */
struct remote_channel {
	void (*send)(void *ctx, const uint8_t *data, size_t len);
	void *ctx;
};

/* A QUESTION. It is answered now or later, or session_tx_forget_remote() comes before. @c lives as long. */
void session_tx_ask_remote(struct sender_home *home, const struct remote_channel *c, const struct tx_message *m);
/* The channel ends. */
void session_tx_forget_remote(struct sender_home *home);

#endif
