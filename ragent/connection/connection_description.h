/* connection_description.h: one connection as the API describes it. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "proto/ids.h"
#include "proto/session_id.h"

/* @agent NULL: no agent. @pause_us: how long no agent owned it before. */
struct ownership_description {
	const char *agent, *cause;
	uint32_t epoch;
	uint64_t ago_ms, pause_us;
};

struct connection_description {
	struct connection_id id;
	struct sockaddr_storage client, server; /* ss_family 0: unknown */
	const char *listener, *state;
	const char *owner, *handshake_agent, *affinity_agent;
	const char *preamble_agent; /* the agent that speaks with the client in clear; NULL: none, or TLS has begun */
	uint32_t epoch, moves;
	uint64_t age_ms, idle_ms;
	uint64_t client_records, client_bytes; /* read from the client */
	uint64_t server_records, server_bytes; /* committed towards the client */
	uint32_t read_generation, write_generation;
	uint16_t protocol_version, cipher_suite; /* 0: the handshake has not ended */
	enum { HANDSHAKE_FULL, HANDSHAKE_RESUMED } handshake;
	const char *server_name, *alpn;
	uint8_t session_id[SESSION_ID_LEN];
	size_t session_id_len;
	uint8_t family_id[FAMILY_ID_LEN];            /* zero: none */
	const struct ownership_description *history; /* oldest first; NULL: not read */
	size_t history_count;
};

struct connection;

/* For people. The strings in @out are valid as long as the connection exists. */
void connection_describe(const struct connection *c, struct connection_description *out);
