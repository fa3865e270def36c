/* connection_fixture.h: a connection in one process: an OpenSSL client in memory, RAgent's half (fake_carrier.h), two
 * agents' workers on the test's own loop with a cluster that obeys the test (fake_cluster.h), and a real socket as
 * backend (served_backend.h).
 */
#pragma once

#include "sslagent/connection/connection_life.h"
#include "sslagent/counters.h"
#include "tests/lib/memory_client.h"
#include "tests/lib/record_forge.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/sslagent/connection/fake_carrier.h"
#include "tests/unit/sslagent/connection/fake_cluster.h"
#include "tests/unit/sslagent/connection/served_backend.h"

#define WINDOW 65536u

#define GET    "GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n"
#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/* Bytes that show every shift; as many as the kernel never takes for a backend that does not read; a part of them. */
extern uint8_t lots[2u << 20];
#define MOST  (32u << 20)
#define PIECE (256u << 10)

/* One agent. */
struct home {
	struct connection_home worker;
	struct cluster cluster;
	struct backend_state backend_states[16];
};

extern struct home a1, a2;
extern struct fake_ragent r; /* RAgent's half of the connection */
extern struct memory_client *client;
extern struct record_forge *forge; /* after forge_begin() */
extern struct key_ring agents_key;

/* What the client got, decrypted, and how it ended. */
extern uint8_t got[4u << 20];
extern size_t got_len;

/* How far carry() goes. */
extern struct manners {
	enum { CLIENT_READS, CLIENT_DOES_NOT_READ } client;
	enum { COMMITS_TOLD, COMMITS_HELD } commits; /* does the owner hear ACCEPTED? */
	enum { PASSES_ARRIVE, PASSES_HELD } passes;
	size_t step; /* client records in one go; 0: as many as there are */
	enum {
		RAGENT_HOLDS_A_WINDOW,
		RAGENT_HOLDS_TWO
	} generous; /* set before hello(): more than the agent has room for */
} manners;

uint64_t counted(enum agent_counter which); /* since the test began */

/* Move everything that can move, without waiting. */
void carry(void);
/* carry() and the loop's turns until @condition. */
#define carry_until(condition)                                                                                         \
	do {                                                                                                           \
		uint64_t limit_ = now_ms() + WAIT_LIMIT_MS;                                                            \
		while (carry(), !(condition)) {                                                                        \
			ck_assert_msg(now_ms() < limit_, "never: %s", #condition);                                     \
			turn();                                                                                        \
		}                                                                                                      \
	} while (0)
/* A while without anything that should not happen. */
void carry_on(void);

#define TLS12                                                                                                          \
	&(struct memory_client_config)                                                                                 \
	{                                                                                                              \
		.version = TLS1_2_VERSION                                                                              \
	}
#define TLS13                                                                                                          \
	&(struct memory_client_config)                                                                                 \
	{                                                                                                              \
		.version = TLS1_3_VERSION                                                                              \
	}
const struct memory_client_config *tls_version(int i); /* 0: TLS12, 1: TLS13 */

/* A client says hello at @home; nothing is carried yet. Listeners: tcp, http, repeats (http, repeat_downloads of
 * 150 KiB), pooled (http, backend connections are reused), still (tcp, migration off), anew (tcp that reconnects after
 * a loss), proxied and shown (tcp and http, with a PROXY header),
 * nowhere and unreachable (tcp and http whose backend cannot be reached).
 */
void hello(const char *listener, struct home *home, Cssl__LinkOpen__Disposition disposition,
	const struct memory_client_config *config);
/* The same where memory may be short: 1 or 0. */
int try_hello(const char *listener, struct home *home, Cssl__LinkOpen__Disposition disposition,
	const struct memory_client_config *config);
/* The whole handshake, kept at @home. */
void keep(const char *listener, struct home *home, const struct memory_client_config *config);
/* The same with the tcp backend; something went both ways. */
void converse(const struct memory_client_config *config);
/* A handshake at @home that ends in HANDED_OFF. */
void hand_off(const char *listener, struct home *home, const struct memory_client_config *config);
/* The tcp backend and the client say something to each other. */
void ping_pong(void);
enum connection_state state(void); /* of the connection at its current owner */
/* The client says something; what it says before the handshake has ended leaves in one flight with Finished. */
void say(const void *data, size_t len);
void say_text(const char *text);
/* From now on the test seals the client's records itself. */
void forge_begin(void);
void say_forged(const struct forged_record *record);
void say_key_update(int request);

/* Check writes a line for each assertion; this one is one. */
void assert_same(const char *where, const uint8_t *have, const uint8_t *wanted, size_t len);

void client_expect(const void *data, size_t len);
void client_expect_text(const char *text);

/* The owner said END. */
void expect_end(enum end_reason reason, enum carrier_end how);
/* The client saw that fatal alert, and no close_notify; close_notify; no close_notify. */
void expect_alert(enum tls_alert alert);
void expect_close_notify(void);
void expect_nothing_certified(void);

/* A commanded move, carried through: to the other agent; returns RAgent's SSL_ID's outcome. */
void move_to(struct home *home);
/* HANDED_OFF by the current owner. */
void hand_off_to(struct home *home);
/* SSL_ID there: 1 adopted, 0 refused. */
int adopt(struct home *home);

/* Run each fact with a fixture of its own; @times: once for each _i below it, as Check's loop tests. */
struct connection_fact {
	const TTest *fact;
	int times;
};
int connection_suite_run(const char *name, const struct connection_fact *facts, size_t count);
