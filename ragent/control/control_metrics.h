/* control_metrics.h: the state and the counters of the cluster for Prometheus (text format 0.0.4). Each counter is a
 * family, and its samples have the process as label. All come from the same tables as the API and the manual.
 */
#ifndef CSSL_RAGENT_CONTROL_METRICS_H
#define CSSL_RAGENT_CONTROL_METRICS_H

#include "ragent/control/control.h"

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Sets as control_answer_counters() gets them. The caller frees the text; NULL: out of memory. */
char *metrics_text(const struct control_status *status, const struct control_counters *sets, size_t count);

#endif
