/* openapi.h: openapi.yaml, which describes the control API, as RAgent serves it. */
#ifndef CSSL_RAGENT_CONTROL_OPENAPI_H
#define CSSL_RAGENT_CONTROL_OPENAPI_H

extern const char openapi_text[];

#endif
