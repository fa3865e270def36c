/* queue_stats_json.h: what a queue counts, and the memory of this process. */
#ifndef CSSL_TESTS_LIB_QUEUE_STATS_JSON_H
#define CSSL_TESTS_LIB_QUEUE_STATS_JSON_H

#include <jansson.h>

#include "smtpproxy/queue/queue_stats.h"

/* The caller owns it. */
json_t *queue_stats_json(const struct queue_stats *s);

#endif
