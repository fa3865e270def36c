/* queue_stats_json.h: what a queue counts, and the memory of this process. */
#pragma once

#include <jansson.h>

#include "smtpproxy/queue/queue_stats.h"

/* The caller owns it. */
json_t *queue_stats_json(const struct queue_stats *s);
