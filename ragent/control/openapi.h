/* openapi.h: RAgent serves openapi.yaml, which describes the control API. */
#ifndef CSSL_RAGENT_CONTROL_OPENAPI_H
#define CSSL_RAGENT_CONTROL_OPENAPI_H

extern const char openapi_text[];

#endif
