/* sess_obj_check.h: the rules for the values of a SESS_OBJ, checked before encoding and after decoding. */
#ifndef CSSL_PROTO_SESS_OBJ_CHECK_H
#define CSSL_PROTO_SESS_OBJ_CHECK_H

#include "proto/sess_obj.h"

/* 0; CSSL_E_TYPE: TLS version or suite unknown, or the two do not belong together; CSSL_E_TOO_LONG; CSSL_E_RANGE. */
int sess_obj_check(const struct sess_obj *o);

#endif
