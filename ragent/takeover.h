/* takeover.h: what becomes of a connection whose owner, or whose adopter, is lost. One pure decision; the table in
 * takeover.c is the rule.
 */
#ifndef CSSL_RAGENT_TAKEOVER_H
#define CSSL_RAGENT_TAKEOVER_H

#include <stdint.h>

#include "ragent/position.h"

struct takeover_facts {
	enum position_stage stage;
	enum position_response response;
	uint64_t server_records;   /* committed */
	uint64_t response_records; /* of a response, since the checkpoint */
	uint64_t response_bytes;
	uint64_t sent_records;   /* client records that the lost agent got and nobody reported as consumed */
	uint64_t unsent_records; /* client records that no agent has seen */
	enum { TAKEOVER_NO_COPY, TAKEOVER_HAS_COPY } copy;
	enum {
		TAKEOVER_ALL_KEPT,
		TAKEOVER_SOME_DROPPED
	} from_start; /* are the records from the very first still kept? */
	/* Could somebody between the hosts have read what the lost agent sealed and RAgent never received? */
	enum { TAKEOVER_LINK_PRIVATE, TAKEOVER_LINK_EXPOSED } link;
	uint16_t protocol_version;
};

enum takeover {
	TAKEOVER_RESTART, /* the handshake begins again on another agent: its client has seen nothing yet */
	TAKEOVER_ADOPT,   /* another agent adopts now */
	TAKEOVER_REST,    /* another agent adopts when the next record comes */
	TAKEOVER_END      /* reset towards the client */
};

enum takeover takeover_decide(const struct takeover_facts *f);
const char *takeover_name(enum takeover t);

#endif
