/* service_traits.h: the services that a listener may have, one row each, and what RAgent and agents have to know of a
 * service without knowing its protocol. The operations of a service are the agents' (sslagent/service/service.h).
 *
 * A conversation that its service no longer understands has the traits of tcp from then on. Only the agent knows that;
 * RAgent goes by the listener.
 */
#pragma once

/* May a connection be without an owner while everything that was asked is answered? Not where the backend may speak
 * without being asked, nor where no other backend connection can go on with the conversation. */
enum service_rest { SERVICE_NEVER_RESTS, SERVICE_MAY_REST };

/* The owner was lost and something was under way. An adopter may hear the client's records again and judge whether to
 * ask the backend again; or nobody knows what the bytes meant, and only a conversation that has not begun can begin
 * anew; or the service finds out itself what to do, by a note on the whole conversation, which RAgent keeps beyond
 * checkpoints. */
enum service_loss { SERVICE_CUT_BY_LOSS, SERVICE_MAY_REPEAT, SERVICE_RESOLVES_LOSS };

/* Who speaks first? The agent opens the backend connection as soon as it owns the connection, or with the client's
 * first bytes. */
enum service_first { SERVICE_BACKEND_FIRST, SERVICE_CLIENT_FIRST };

/* One side ends in order. The service may judge that this ends the whole conversation, and whether something was cut
 * off; or each direction ends by itself, and the other goes on. */
enum service_ends { SERVICE_HALVES_END, SERVICE_JUDGES_ENDS };

/* Does the agent follow the conversation, so that checkpoints come again behind the first byte? */
enum service_following { SERVICE_NOT_FOLLOWED, SERVICE_FOLLOWED };

/* How does a client begin? With TLS; or, where its listener allows it, in clear with the SMTP dialogue up to STARTTLS
 * (key `smtp`). Another protocol's beginning in clear needs words of its own (doc/hacking.md, "A service whose clients
 * begin in clear"). */
enum service_start { SERVICE_STARTS_WITH_TLS, SERVICE_MAY_START_AS_SMTP };

/* A backend connection whose conversation is at a checkpoint. Another client's conversation may go on with it (key
 * `reuse`); or it belongs to one client for good. */
enum service_sharing { SERVICE_OWN_BACKENDS, SERVICE_SHARES_BACKENDS };

/* No byte passes for `idle_timeout`. The owner ends the connection; or, in the middle of something, it may go on for
 * `end_timeout`, because the backend has got all and only its verdict is missing. */
enum service_silence { SERVICE_ENDS_SILENT, SERVICE_MAY_AWAIT_VERDICT };

/* Handshakes of others wait their turn while established connections have records (connection_home.h). Then loop turns
 * are short, which costs CPU; or, because its clients do not notice milliseconds, its records make no turn shorter. */
enum service_haste { SERVICE_IN_HASTE, SERVICE_HAS_TIME };

/*        id    name    rest                 loss                 first                  ends                 following,
 *        start, sharing, silence, haste, help */
#define CONF_SERVICES(X)                                                                                               \
	X(TCP, "tcp", SERVICE_NEVER_RESTS, SERVICE_CUT_BY_LOSS, SERVICE_BACKEND_FIRST, SERVICE_HALVES_END,             \
		SERVICE_NOT_FOLLOWED, SERVICE_STARTS_WITH_TLS, SERVICE_OWN_BACKENDS, SERVICE_ENDS_SILENT,              \
		SERVICE_IN_HASTE, "bytes of any protocol")                                                             \
	X(HTTP, "http", SERVICE_MAY_REST, SERVICE_MAY_REPEAT, SERVICE_CLIENT_FIRST, SERVICE_JUDGES_ENDS,               \
		SERVICE_FOLLOWED, SERVICE_STARTS_WITH_TLS, SERVICE_SHARES_BACKENDS, SERVICE_ENDS_SILENT,               \
		SERVICE_IN_HASTE, "agents follow messages of HTTP/1.1, and connections move between answers")          \
	X(SMTP, "smtp", SERVICE_NEVER_RESTS, SERVICE_RESOLVES_LOSS, SERVICE_CLIENT_FIRST, SERVICE_JUDGES_ENDS,         \
		SERVICE_FOLLOWED, SERVICE_MAY_START_AS_SMTP, SERVICE_OWN_BACKENDS, SERVICE_MAY_AWAIT_VERDICT,          \
		SERVICE_HAS_TIME, "mail behind STARTTLS or TLS (key `smtp`); connections move between mails")          \
	X(H2, "h2", SERVICE_NEVER_RESTS, SERVICE_MAY_REPEAT, SERVICE_CLIENT_FIRST, SERVICE_JUDGES_ENDS,                \
		SERVICE_FOLLOWED, SERVICE_STARTS_WITH_TLS, SERVICE_OWN_BACKENDS, SERVICE_ENDS_SILENT,                  \
		SERVICE_IN_HASTE,                                                                                      \
		"agents follow streams of HTTP/2; the backend speaks HTTP/2 without TLS (h2c, prior knowledge)")

/* Services whose clients first agree on a protocol with ALPN (RFC 7301): X(id, protocol) */
#define CONF_SERVICE_PROTOCOLS(X) X(H2, "h2")

/* Protocols that a client may name with ALPN on a listener without rows of `alpn`: X(id, protocols). A client that
 * names only others meant a server of another protocol, and is refused (RFC 7301 3.2; the ALPACA attacks). A client
 * that names none is served. A service without a row here does not look at ALPN. */
#define CONF_SERVICE_ALPN(X) X(SMTP, "smtp", "esmtp")

enum conf_service {
#define X(id, ...) CONF_##id,
	CONF_SERVICES(X)
#undef X
		CONF_SERVICE_COUNT
};

struct service_traits {
	const char *name; /* as in the cluster file */
	enum service_rest rest;
	enum service_loss loss;
	enum service_first first;
	enum service_ends ends;
	enum service_following following;
	enum service_start start;
	enum service_sharing sharing;
	enum service_silence silence;
	enum service_haste haste;
};

/* By enum conf_service. */
extern const struct service_traits service_traits[CONF_SERVICE_COUNT];

/* The protocol without which no client speaks to this service; NULL: there is none. */
const char *service_protocol(enum conf_service service);
/* The row of CONF_SERVICE_ALPN, ended by NULL. Never NULL itself. */
const char *const *service_alpn(enum conf_service service);
