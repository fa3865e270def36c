/* sess_obj_check.h: the rules a SESS_OBJ's values keep, on their way in and on their way out. */
#ifndef CSSL_PROTO_SESS_OBJ_CHECK_H
#define CSSL_PROTO_SESS_OBJ_CHECK_H

#include "proto/sess_obj.h"

/* 0; CSSL_E_TYPE: version and suite unknown or not of each other; CSSL_E_TOO_LONG; CSSL_E_RANGE. */
int sess_obj_check(const struct sess_obj *o);

/* Does a live part of this suite carry R, the start of the explicit nonce? */
int suite_has_record_nonce(const struct cipher_suite *suite);

#endif
