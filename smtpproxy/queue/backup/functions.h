/* functions.h: the Redis Functions by which a gateway changes its backups. Each of them first compares the caller's
 * token with the one in the server, in the same atomic step as the change: a gateway that was replaced can change
 * nothing, and neither can requests that an abandoned path still delivers.
 *
 * Two keys for each gateway:
 *
 *   cssl:{NAME}:owner   hash: epoch, generation, nonce, token ("epoch.generation"), renewals,
 *                       and the marker (marker.h): version, run_id, member0, member1, apart0, apart1,
 *                       apart_version, left0, left1, left_version0, left_version1, left_sent0, left_sent1,
 *                       left_by0, left_by1, unread, owners, replaced, key, by
 *   cssl:{NAME}:items   hash: kind and id of an item ("m00000a..."), its sealed bytes
 *
 * All take KEYS owner, items. A caller whose token is not the present one gets the error "STALE <present epoch>".
 */
#pragma once

/* The library's text (functions.lua), for FUNCTION LOAD, and its name. The number in the name, and in those of the
 * functions, rises with each change that a gateway of another version would not work with: gateways of two versions can
 * use one server. A library that is there is not loaded again, because a server whose memory is full refuses to load.
 */
extern const char functions_text[];
#define FUNCTIONS_LIBRARY "cssl_queue1"

/* epoch generation nonce: become the owner; returns the owner's hash as it was before. Refused for an epoch below the
 * present one, and for the present epoch with another nonce or without a higher generation. */
#define FUNCTION_CLAIM   "cssl_queue1_claim"
/* token, then field value ...: store those that are not there; returns how many were new. Refused as a whole ("OOM
 * ...") when the server's memory is full. Repeating it changes nothing. */
#define FUNCTION_PUT     "cssl_queue1_put"
/* token, then field value ...: replace the state ("s...") of messages that are there; returns how many. */
#define FUNCTION_REPLACE "cssl_queue1_replace"
/* token, then field ...: returns how many were there. Works when memory is full. */
#define FUNCTION_DELETE  "cssl_queue1_delete"
/* token cursor count: HSCAN, but each message ("m...") has the value ""; and as a third element, how many bytes all
 * values have in the server. */
#define FUNCTION_NAMES   "cssl_queue1_names"
/* token, then name value ...: write these fields of the marker. */
#define FUNCTION_MARK    "cssl_queue1_mark"
/* token: the owner lives; counts it for a standby to see. */
#define FUNCTION_RENEW   "cssl_queue1_renew"
