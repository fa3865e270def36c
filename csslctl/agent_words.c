/* agent_words.c: good, watch it, bad. */
#include "csslctl/agent_words.h"

#include <string.h>

#include "csslctl/member.h"

#define BUSY_PERMILLE 900u

enum style agent_state_style(const char *state)
{
	if (strcmp(state, "up") == 0)
		return STYLE_GOOD;
	return strcmp(state, "lost") == 0 ? STYLE_BAD : STYLE_WARN;
}

void agent_state_cell(struct table *t, const json_t *agent)
{
	const char *state = member_text(agent, "state");
	table_cell(t, agent_state_style(state), "%s", state);
}

void agent_busy_cell(struct table *t, const json_t *agent)
{
	const unsigned permille = (unsigned)member_integer(agent, "busy_permille");
	table_cell(t, permille >= BUSY_PERMILLE ? STYLE_WARN : STYLE_PLAIN, "%u.%u%%", permille / 10, permille % 10);
}
