/* agent_words.c: good, watch it, bad. */
#include "csslctl/agent_words.h"

#include <string.h>

#include "csslctl/text.h"

#define BUSY_PERMILLE 900u

enum style agent_state_style(const char *state)
{
	if (strcmp(state, "ready") == 0 || strcmp(state, "up") == 0) /* of the release before */
		return STYLE_GOOD;
	return strcmp(state, "lost") == 0 || strcmp(state, "no backend") == 0 ? STYLE_BAD : STYLE_WARN;
}

void agent_state_cell(struct table *t, const json_t *agent)
{
	const char *state = member_text(agent, "state");
	const int fails = json_string_length(member(agent, "failing_backends")) > 0;
	table_cell(t, fails ? STYLE_BAD : agent_state_style(state), fails ? "%s!" : "%s", state);
}

void agent_busy_cell(struct table *t, const json_t *agent)
{
	const unsigned permille = (unsigned)member_integer(agent, "busy_permille");
	table_cell(t, permille >= BUSY_PERMILLE ? STYLE_WARN : STYLE_PLAIN, "%u.%u%%", permille / 10, permille % 10);
}
