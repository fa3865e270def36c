/* session_id.h: the 32-byte id of a session in the whole cluster (as session id in TLS 1.2, as PSK identity in
 * TLS 1.3): origin (2) | issue time in coarse ticks (3) | keyed check (5) | random (22). With the check key, a process
 * tells such an id from the random legacy_session_id of a new TLS 1.3 client, without a look-up. The check proves
 * nothing else. The check key derives one-way from agents.key; agents give it to RAgent in the opening. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SESSION_ID_LEN           32u
#define SESSION_ID_CHECK_KEY_LEN 16u
#define SESSION_ID_TICK_S        16u /* one tick of the coarse issue time */

/* Make an id. @origin: the agent's number; @now_s: the agent's clock in seconds; @random: 22 fresh random bytes. */
void session_id_make(uint8_t out[static SESSION_ID_LEN], uint16_t origin, uint64_t now_s,
	const uint8_t random[static 22], const uint8_t check_key[static SESSION_ID_CHECK_KEY_LEN]);

struct session_id_facts {
	uint16_t origin;
	uint32_t issued_tick; /* 24 bit, wraps */
};

/* 0: an id of this cluster; @out (which may be NULL) is filled. CSSL_E_MISMATCH: another id, or a wrong length. */
int session_id_check(const uint8_t *id, size_t len, const uint8_t check_key[static SESSION_ID_CHECK_KEY_LEN],
	struct session_id_facts *out);

/* Compare like memcmp(), by the random parts: all agents list sessions in this order. */
int session_id_compare(const uint8_t a[static SESSION_ID_LEN], const uint8_t b[static SESSION_ID_LEN]);
/* The first 64 bits of the part that session_id_compare() compares: uniformly distributed. */
uint64_t session_id_rank(const uint8_t id[static SESSION_ID_LEN]);

/* The number of an agent, from its name: the same in every process. Two agents may have the same number, which is
 * unlikely: a pull asks all agents with that number. */
uint16_t session_id_origin(const char *agent_name);
