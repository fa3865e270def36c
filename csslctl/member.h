/* member.h: members of the API's JSON, by a path of names ("drain.state"), with a default if one is absent.
 */
#ifndef CSSL_CSSLCTL_MEMBER_H
#define CSSL_CSSLCTL_MEMBER_H

#include <jansson.h>
#include <stdint.h>

/* Owned by @object. NULL: there is none. */
json_t *member(const json_t *object, const char *path);

/* 0: there is none. */
uint64_t member_integer(const json_t *object, const char *path);
double member_real(const json_t *object, const char *path);
/* "-": there is none. */
const char *member_text(const json_t *object, const char *path);

#endif
