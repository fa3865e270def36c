/* probe_answer.h: what tlsprobe tells of its connection, as members of a JSON object. */
#pragma once

#include <jansson.h>

#include "tests/lib/probe_http.h"

void answer_put_state(json_t *answer, const struct probe *p);
/* Put the results of the handshake into the answer. */
void answer_put_agreed(json_t *answer, SSL *ssl);
void answer_put_exchange(json_t *answer, const struct http_response *r);
/* Status line and headers (lower case); takes r->head apart. */
void answer_put_head(json_t *answer, struct http_response *r);

/* The end in one word: what TLS said, else what TCP did. */
const char *answer_end_word(const struct probe *p);

/* Bytes as a string, each as its Latin-1 character, so that all survive. */
json_t *answer_latin1(const uint8_t *data, size_t len);
