/* agent_words.h: how an agent's state and load are shown, in every view alike. */
#ifndef CSSL_CSSLCTL_AGENT_WORDS_H
#define CSSL_CSSLCTL_AGENT_WORDS_H

#include <jansson.h>

#include "csslctl/table.h"

/* Cells. @agent: an element of /v1/status or /v1/agents. */
void agent_state_cell(struct table *t, const json_t *agent);
void agent_busy_cell(struct table *t, const json_t *agent);
enum style agent_state_style(const char *state);

#endif
