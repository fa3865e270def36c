/* revoke_what.h: revocations and filters in one expression. */
#pragma once

#include "proto/scratch.h"
#include "sslagent/sessions/tombstones.h"

/* REVOKE(REVOKE_FAMILY, .family_id = bytes_of(family, FAMILY_ID_LEN)) */
#define REVOKE(by, ...) ((revoke_what){ MESSAGE(link_request__revoke), .which_case = (int)(by), __VA_ARGS__ })
/* FILTER(.cipher_suite = 0x1302) */
#define FILTER(...)     ((Cssl__SessionFilter){ MESSAGE(session_filter), __VA_ARGS__ })
