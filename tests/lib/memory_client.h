/* memory_client.h: an OpenSSL client on memory BIOs: bytes in, bytes out. For unit tests in one process with the
 * server. */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

#include "sslagent/tls/live.h"

struct memory_client;

struct memory_client_config {
	int version;                                        /* TLS1_2_VERSION, TLS1_3_VERSION; 0: both */
	uint16_t suite;                                     /* the only one offered; 0: all */
	const char *groups;                                 /* NULL: default */
	const char *server_name;                            /* NULL: none */
	const char *alpn;                                   /* comma separated; NULL: none */
	unsigned max_fragment;                              /* 512 ... 4096; 0: not asked for */
	enum { CLIENT_TICKETS, CLIENT_NO_TICKETS } tickets; /* of TLS 1.2 */
	X509 *certificate;                                  /* of the client, with its key; NULL: none */
	EVP_PKEY *key;
	X509 *ca;            /* verify the server against it; NULL: do not */
	SSL_SESSION *resume; /* NULL: full handshake */
	enum { CLIENT_MIDDLEBOX_CCS, CLIENT_NO_CCS } ccs;
	/* Handshake messages go in records of up to so many bytes, of which one may hold several; 0: as OpenSSL does.
	 * In TLS 1.2 data goes in such records, too. */
	size_t record_len;
	enum { CLIENT_WITH_EMS, CLIENT_WITHOUT_EMS } ems; /* extended master secret */
};

struct memory_client *memory_client_create(const struct memory_client_config *config);
void memory_client_destroy(struct memory_client *c);
SSL *memory_client_ssl(struct memory_client *c);

/* From the server. */
void memory_client_feed(struct memory_client *c, const void *bytes, size_t len);
/* To the server: what OpenSSL wrote and was not taken. */
size_t memory_client_output(struct memory_client *c, const uint8_t **bytes);
void memory_client_output_taken(struct memory_client *c, size_t len);

/* 1: complete, 0: wants more, -1: failed. */
int memory_client_handshake(struct memory_client *c);

void memory_client_write(struct memory_client *c, const void *data, size_t len);
/* Bytes, 0: nothing there, or negative: the end, see memory_client_end. */
ptrdiff_t memory_client_read(struct memory_client *c, void *out, size_t cap);
enum memory_client_end { CLIENT_OPEN, CLIENT_CLOSE_NOTIFY, CLIENT_ALERT, CLIENT_FAILED };
enum memory_client_end memory_client_end(const struct memory_client *c);
int memory_client_alert(const struct memory_client *c); /* the last received; -1: none */

/* @request: ask the server for the same. Leaves with the output at once. */
void memory_client_update_keys(struct memory_client *c, int request);
void memory_client_close(struct memory_client *c); /* close_notify */

/* The newest session, with a reference of the caller's; NULL: none. */
SSL_SESSION *memory_client_session(struct memory_client *c);
unsigned memory_client_sessions(const struct memory_client *c); /* how many came */

/* Keys and position of its writing side, as the part of a live in the client's role would have them (record_forge.h). 0
 * or negative. */
int memory_client_writing(struct memory_client *c, struct direction_keys *keys, uint64_t *sequence);
