/* relay.h: passes the bytes of a client to a server, and back: mails byte for byte, and commands and replies unchanged,
 * except those that a client may not send or see here. transaction.h tells commands, replies and mail apart.
 *
 *     BANNER --220--> GREETING --reply to our greeting--> OPEN --> OVER
 *        '-------------- without one ----------------------^
 *
 * The relay reads the client's bytes when it is OPEN; until then they wait with the caller.
 */
#pragma once

#include "smtp/transaction.h"
#include "smtp/tx_name.h"

#define SMTP_RELAY_LINE_MAX    SMTP_AUTH_LINE_MAX /* of a client */
#define SMTP_RELAY_REPLY_MAX   1024u              /* of the server; RFC 5321 4.5.3.1.5 has 512 */
#define SMTP_RELAY_REFUSAL_MAX (SMTP_RELAY_REPLY_MAX + 1)
#define SMTP_RELAY_OWN_MAX     2048u /* one of ours: the reply to EHLO */

enum smtp_relay_state { SMTP_RELAY_BANNER, SMTP_RELAY_GREETING, SMTP_RELAY_OPEN, SMTP_RELAY_OVER };

/* The server's banner: the client had one already, or gets it with our name. */
enum smtp_relay_banner { SMTP_BANNER_SWALLOWED, SMTP_BANNER_RENAMED };

/* Who has answered the client's greeting, which the relay repeats to the server. US: the client does not know the
 * server's extensions, so a server without PIPELINING gets each command when the command or mail before is answered
 * (RFC 2920 3.1). A server that does not know EHLO is greeted by HELO. And where the server refuses the greeting, each
 * MAIL gets the refusal, until the client greets in another way. SERVER: then another server has accepted it, so a
 * refusal ends the relay. */
enum smtp_relay_greeted { SMTP_GREETED_BY_SERVER, SMTP_GREETED_BY_US };

/* Whom does the server take for its client: the agent; or the real one, by a PROXY header? A server that refuses its
 * client in place of a banner (RFC 5321 3.1) then means the real one, who is told its words. */
enum smtp_relay_seen { SMTP_AGENT_IS_SEEN, SMTP_CLIENT_IS_SEEN };

/* Lives as long as the relays that use it. */
struct smtp_relay_rules {
	const char *name;       /* of the cluster; at most SMTP_DOMAIN_MAX */
	const uint8_t *refused; /* by verb: enum smtp_own that answers it in the server's place, or 0 */
	uint32_t hidden;        /* SMTP_CAP_BIT()s that the reply to EHLO does not show */
	uint32_t data_refuse;   /* SMTP_DATA_BIT()s: content with such a flaw ends the session by 550 */
	enum smtp_relay_banner banner;
	enum smtp_relay_greeted greeted;
	enum smtp_relay_seen seen;
	unsigned refusals_max; /* in place of so many refusals of our own the session gets 421 and ends; 0: no limit */
	uint8_t parse;         /* bits of enum smtp_parse_flag */
};

/* PART: the reply goes on. REPLY: it ends, and another is due. WHOLE: it ends, and no other is due. */
enum smtp_relay_words { SMTP_WORDS_PART, SMTP_WORDS_REPLY, SMTP_WORDS_WHOLE };
struct smtp_relay_ops {
	void (*to_client)(void *ctx, const char *words, size_t len, enum smtp_relay_words what);
	void (*to_server)(void *ctx, const char *words, size_t len);
	/* NULL: transactions have no name. Otherwise it names the transaction that begins now, for a server that
	 * offers XCSSLTX (tx_name.h). 1, or 0: this transaction has no name. Its MAIL ends with the first @at bytes
	 * that smtp_relay_client() was given. */
	int (*name)(void *ctx, size_t at, struct smtp_tx_name *out);
	/* NULL: there always is. 1, or 0: the client has to take replies before more of its bytes are used. The
	 * caller gives the rest again when there is room. */
	int (*has_room)(const void *ctx);
};

/* The state that a client and a server had reached through another relay. */
struct smtp_relay_past {
	enum smtp_verb greeting; /* EHLO or HELO; UNKNOWN: the client has not greeted */
	const char *client;      /* the client's name for itself */
	uint32_t offers;         /* SMTP_CAP_BIT()s of the server's reply to EHLO */
	unsigned authenticated;  /* of struct smtp_tx */
	unsigned refusals;       /* commands that we answered in the server's place */
};

/* How commands are read of clients that do not see @hidden. The server judges names, paths, and SMTPUTF8 (RFC 6531
 * 3.1). */
static inline uint8_t smtp_relay_parse(uint32_t hidden)
{
	return SMTP_PARSE_LENIENT | SMTP_PARSE_JUDGED |
	       (hidden & SMTP_CAP_BIT(SMTP_CAP_SMTPUTF8) ? 0 : SMTP_PARSE_UTF8);
}

/* Embedded. */
struct smtp_relay {
	const struct smtp_relay_rules *rules;
	const struct smtp_relay_ops *ops;
	void *ctx;
	const char *greeting;
	enum smtp_relay_state state;
	uint8_t within; /* the client has got a part of a reply */
	uint8_t turn;   /* the command that is answered by the words that to_client() gets now: enum smtp_verb or enum
			   smtp_turn */
	unsigned refusals; /* commands that we answered in the server's place */
	size_t read;       /* how much it read of the bytes that smtp_relay_client() was given last */
	char refusal[SMTP_RELAY_REFUSAL_MAX]; /* the last line of the reply that refused the greeting, or of the banner
						 that refused the client; "": none */
	enum smtp_own over_for; /* OVER: the reply with which we ended it; RECEIVER_REFUSES: that was @refusal; NONE:
				   the server or the client ended it */
	struct smtp_tx tx;
	struct smtp_ehlo offers; /* of the server, unchanged */
	char client_line[SMTP_RELAY_LINE_MAX], reply_line[SMTP_RELAY_REPLY_MAX];
};

/* Begins after the connect. @greeting: EHLO or HELO with its CRLF, sent after the banner because the client has sent
 * it before; NULL: nothing. Has to stay valid until the relay is OPEN. */
void smtp_relay_begin(struct smtp_relay *r, const struct smtp_relay_rules *rules, const struct smtp_relay_ops *ops,
	void *ctx, const char *greeting);

/* Begins in the middle of a session, OPEN and at a checkpoint: on a connection that another relay had; or without a
 * server, to find out what a client's bytes mean. */
void smtp_relay_continue(struct smtp_relay *r, const struct smtp_relay_rules *rules, const struct smtp_relay_ops *ops,
	void *ctx, const struct smtp_relay_past *past);

/* OPEN, no reply is due: send a command of our own, with its CRLF. The reply goes to to_client() like all others. 0,
 * or CSSL_E_RANGE: it is no command. */
int smtp_relay_say(struct smtp_relay *r, const char *command);

/* The reply of our own that a command gets in place of the server's. SMTP_OWN_NONE: the server answers it. */
enum smtp_own smtp_relay_refusal(
	const struct smtp_relay_rules *rules, uint32_t offers, const struct smtp_client_event *command);

/* Bytes of the client. Returns how many were used: none before OPEN, and none that have to wait for a reply, or for
 * room (has_room). The server gets them, and the name of a transaction. May be OVER afterwards. */
size_t smtp_relay_client(struct smtp_relay *r, const char *in, size_t len);

/* Bytes of the server; all are used. May be OVER afterwards. */
void smtp_relay_server(struct smtp_relay *r, const char *in, size_t len);

/* The server ended, or cannot be reached. OVER. The client gets the reason, unless it was over before. */
void smtp_relay_server_ended(struct smtp_relay *r);

/* Wipe what it has seen, which may be a password. It cannot be used afterwards. */
void smtp_relay_wipe(struct smtp_relay *r);

/* OVER, by a reply of our own. In the middle of a reply nothing is sent, and the caller has to reset (@within). */
void smtp_relay_end(struct smtp_relay *r, enum smtp_own why);
