/* http_connection.h: one client of the backend, from accept to close.
 *
 * The server owns the connection's memory. on_gone, once, tells it that everything in the connection is closed; before
 * that it must not free it. No memory is allocated for a request.
 */
#pragma once

#include <openssl/evp.h>
#include <sys/queue.h>

#include "bench/server/agent_identity.h"
#include "bench/server/answer.h"
#include "bench/server/http_request.h"
#include "bench/server/resource.h"
#include "net/loop/wheel.h"
#include "net/stream/stream.h"

enum proxy_expectation { PROXY_EXPECT_NONE, PROXY_EXPECT_MAYBE, PROXY_EXPECT_ALWAYS };

struct http_connection;

/* Shared by all connections of a server. */
struct http_host {
	struct worker *worker;
	struct resources *resources;
	EVP_MD *sha256;
	struct agent_map agents;
	unsigned proxy;                    /* enum proxy_expectation */
	uint64_t idle_ms;                  /* 0: a silent client may stay */
	enum http_persistence persistence; /* HTTP_CLOSE: the server is stopping */
	uint64_t requests;
	uint64_t date_s;
	char date[32];
	void (*on_gone)(struct http_host *host, struct http_connection *c);
};

enum http_connection_state {
	HTTP_PREFACE, /* a PROXY header is awaited */
	HTTP_READING, /* a request is read, or awaited */
	HTTP_HOLDING, /* the answer has to wait */
	HTTP_SENDING, /* the answer is being produced */
	HTTP_BLOCKED, /* enough output waits for the kernel */
	HTTP_PACED,   /* the answer has to be slow */
	HTTP_LEAVING, /* our last bytes and FIN are on their way; input is thrown away */
	HTTP_CLOSED,
	HTTP_CONNECTION_STATES
};

struct http_connection {
	LIST_ENTRY(http_connection) in; /* the server's list */
	struct http_host *host;
	enum http_connection_state state;
	enum { PEER_OPEN, PEER_FINISHED } peer;
	enum http_persistence persistence; /* after the current answer */
	struct deadline deadline;
	const struct resource *resource;
	struct request_body body;
	EVP_MD_CTX *digest;
	uint64_t left; /* of the answer's body */
	uint64_t started_ms;
	struct answer answer;
	struct agent_identity identity;
	struct http_request request;
	struct stream stream;
};

/* @c is zeroed, or was used before. @fd is taken over in any case. 0, or a negative libuv error: then on_gone will not
 * come. */
int http_connection_open(struct http_connection *c, struct http_host *host, int fd, const struct sockaddr *peer);

/* Finish what is under way, then close. */
void http_connection_drain(struct http_connection *c);
/* Close now. */
void http_connection_close(struct http_connection *c);
/* Free the memory that @c keeps for its next use. */
void http_connection_wipe(struct http_connection *c);
