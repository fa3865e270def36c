/* link_words.h: words for the numbers of link.proto, for the logs of both tiers. A number from the other tier may be
 * one of a later release: every number outside the table is "unknown".
 */
#pragma once

#include "proto/link.pb-c.h"

const char *link_cause_name(Cssl__Cause cause);
const char *link_refusal_name(Cssl__LinkRefused__Reason reason);
const char *link_response_name(Cssl__ResponseState response);
