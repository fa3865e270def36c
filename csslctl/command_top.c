/* command_top.c: the cluster at work, a page each second: RAgent's rates, and all agents side by side. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "csslctl/ask.h"
#include "csslctl/rates.h"

#define EVERY_MS 1000u

/* A terminal below WIDE columns has no room for the last ones. */
#define WIDE 104u
enum { COLUMNS_BEFORE_RATES = 6, COLUMNS_NARROW = 9, COLUMNS_WIDE = 12 };

/* One look at the cluster. */
struct look {
	json_t *status, *counters;
	uint64_t at_ms;
};

static void look_clear(struct look *l)
{
	json_decref(l->status);
	json_decref(l->counters);
	*l = (struct look){ .status = NULL };
}

static enum exit_code look_take(struct invocation *in, struct look *out)
{
	struct path status, counters;

	path_start(&status, "/v1/status");
	path_start(&counters, "/v1/counters");
	*out = (struct look){ .at_ms = ask_now_ms() };
	enum exit_code code = ask(in, "GET", &status, NULL, &out->status);
	if (code == EXIT_DONE)
		code = ask(in, "GET", &counters, NULL, &out->counters);
	if (code != EXIT_DONE)
		look_clear(out);
	return code;
}

static void show_head(const struct invocation *in, const struct look *now)
{
	char age[QUANTITY_TEXT_MAX];
	const struct screen *s = &in->screen;

	fprintf(s->out, "%s%s%s  up for %s   %" PRIu64 " connections, %" PRIu64 " of them resting   q ends\n\n",
		screen_style(s, STYLE_HEAD), member_text(now->status, "name"), screen_plain(s),
		duration_text(member_integer(now->status, "uptime_s") * 1000000, age),
		member_integer(now->counters, "ragent.connections_open"),
		member_integer(now->counters, "ragent.connections_resting"));
}

/* RAgent's rates per second. */
static void show_ragent(const struct invocation *in, const struct rates *r)
{
	static const struct {
		const char *label, *counter;
		enum { AS_NUMBER, AS_SIZE } kind;
	} rows[] = {
		{ "accepted", "connections_accepted", AS_NUMBER },
		{ "handed off", "handed_off", AS_NUMBER },
		{ "adopted", "adopted", AS_NUMBER },
		{ "moved", "moves_done", AS_NUMBER },
		{ "from clients", "client_bytes", AS_SIZE },
		{ "to clients", "server_bytes", AS_SIZE },
	};
	char text[QUANTITY_TEXT_MAX];

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const double rate = rate_of(r, NULL, rows[i].counter);
		fprintf(in->screen.out, "%s%s %s/s",
			i == 0                             ? ""
			: rows[i].kind != rows[i - 1].kind ? "\n"
							   : "   ",
			rows[i].label, rows[i].kind == AS_SIZE ? size_text(rate, text) : rate_text(rate, text));
	}
	fputs("\n\n", in->screen.out);
}

static void show_agents(const struct invocation *in, const struct look *now, const struct rates *r)
{
	static const struct column columns[] = { { "AGENT" }, { "STATE" }, { "OPEN", COLUMN_RIGHT },
		{ "SENT/s", COLUMN_RIGHT }, { "SESSIONS", COLUMN_RIGHT }, { "BUSY", COLUMN_RIGHT },
		{ "FULL/s", COLUMN_RIGHT }, { "RESUMED/s", COLUMN_RIGHT }, { "FAILED/s", COLUMN_RIGHT },
		{ "OFF/s", COLUMN_RIGHT }, { "ADOPTED/s", COLUMN_RIGHT }, { "RECORDS/s", COLUMN_RIGHT } };
	static const char *const counters[] = { "handshakes_full", "handshakes_resumed", "handshakes_failed",
		"handed_off", "adopted", "records_sealed" };
	const unsigned count = screen_width(&in->screen) < WIDE ? COLUMNS_NARROW : COLUMNS_WIDE;
	struct table *t = table_create(columns, count);
	char text[QUANTITY_TEXT_MAX];
	size_t i;
	json_t *agent;

	json_array_foreach(member(now->status, "agents"), i, agent)
	{
		const char *name = member_text(agent, "name");
		table_cell(t, STYLE_PLAIN, "%s", name);
		agent_state_cell(t, agent);
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(agent, "connections"));
		table_cell(t, STYLE_PLAIN, "%s", size_text(rate_of(r, name, "bytes_to_client"), text));
		table_cell(t, STYLE_PLAIN, "%" PRIu64, member_integer(agent, "sessions"));
		agent_busy_cell(t, agent);
		for (size_t c = 0; c < count - COLUMNS_BEFORE_RATES; c++)
			table_cell(t, STYLE_PLAIN, "%s", rate_text(rate_of(r, name, counters[c]), text));
	}
	table_show(t, &in->screen);
}

static void show_page(const struct invocation *in, const struct look *before, const struct look *now)
{
	const struct rates r = { before->counters, now->counters, now->at_ms - before->at_ms };

	live_page_begin(&in->screen);
	show_head(in, now);
	show_ragent(in, &r);
	show_agents(in, now, &r);
	live_page_end(&in->screen);
}

enum exit_code command_top(struct invocation *in)
{
	struct look before, now;

	if (in->screen.form == SCREEN_JSON)
		return misused(in, "a live view has no JSON; ask `csslctl --json counters` now and then");
	enum exit_code code = look_take(in, &before);
	if (code != EXIT_DONE)
		return code;
	if (live_terminal_begin(&in->screen) < 0) {
		look_clear(&before);
		return misused(in, "a live view needs a terminal; `csslctl counters` does not");
	}
	do {
		code = look_take(in, &now);
		if (code == EXIT_DONE) {
			show_page(in, &before, &now);
			look_clear(&before);
			before = now;
		}
	} while (code == EXIT_DONE && live_wait(EVERY_MS) == LIVE_GO_ON);
	live_terminal_end();
	look_clear(&before);
	return code;
}
