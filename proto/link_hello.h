/* link_hello.h: the message in which each side of a link tells about itself. The opening seals it (opening.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/aead.h"
#include "proto/session_id.h"

#define LINK_VERSION       1u
#define LINK_HELLO_LEN_MAX 102u

enum link_role { LINK_ROLE_RAGENT = 1, LINK_ROLE_AGENT = 2 };
enum link_protection { LINK_TRUSTED = 1, LINK_SEALED = 2 };
/* How an open link carries bytes: on its socket, or in memory that both processes share (net/stream/rings.h). */
enum link_bytes { LINK_BYTES_ON_SOCKET = 0, LINK_BYTES_IN_MEMORY = 1 };

struct link_hello {
	uint16_t version_min, version_max; /* LINK_VERSION is the highest there is */
	enum link_role role;
	enum link_protection protection; /* must be the same on both sides */
	enum aead aead;                  /* aead_preferred() */
	char name[64];                   /* printable ASCII, terminated, not empty */
	uint64_t boot_id;
	uint16_t worker;                                /* of the sender */
	uint16_t target_worker;                         /* initiator: the worker of the responder that it wants */
	uint16_t workers;                               /* of the sender's process */
	uint8_t id_check_key[SESSION_ID_CHECK_KEY_LEN]; /* from a responding agent to RAgent; else zero */
	enum link_bytes bytes; /* IN_MEMORY: the sender can. If both can, RAgent's last message brings the memory */
};

/* Bytes written, or CSSL_E_RANGE: a field breaks the rule in its comment above. */
ptrdiff_t link_hello_write(const struct link_hello *h, uint8_t out[static LINK_HELLO_LEN_MAX]);

/* 0, CSSL_E_TRUNCATED or CSSL_E_RANGE. Bytes behind the fields are ignored, because a later version may have more
 * fields. */
int link_hello_read(const uint8_t *in, size_t len, struct link_hello *out);

/* May these two have a link? 0: yes, and *version is the highest that both know. CSSL_E_VERSION: they know none in
 * common. CSSL_E_MISMATCH: @theirs does not have the role @expected or the protection of @mine. */
int link_hello_match(
	const struct link_hello *mine, const struct link_hello *theirs, enum link_role expected, uint16_t *version);
