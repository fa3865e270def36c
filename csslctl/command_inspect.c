/* command_inspect.c: files and key files of an inspection, and its result for people. */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/ask.h"
#include "csslctl/inspect.h"
#include "csslctl/memory.h"
#include "csslctl/quantity.h"
#include "csslctl/table.h"
#include "proto/error.h"

#define MESSAGE_MAX 8192u

/* The files that the command line names; each may be absent. */
struct sources {
	uint8_t *bytes;
	struct key_ring *key;
	struct conf *conf;
	struct connection_id connection;
};

static void sources_free(struct sources *s)
{
	free(s->bytes);
	sodium_free(s->key);
	conf_destroy(s->conf);
}

static int read_blob(const struct invocation *in, struct sources *s, size_t *len)
{
	FILE *f = fopen(in->operands[0], "re");

	if (!f) {
		complain_of(in, NULL, "%s", strerror(errno));
		return -1;
	}
	s->bytes = must(malloc(INSPECT_LEN_MAX + 1));
	*len = fread(s->bytes, 1, INSPECT_LEN_MAX + 1, f);
	const int good = !ferror(f) && *len <= INSPECT_LEN_MAX;
	if (!good)
		complain_of(in, NULL, "%s", ferror(f) ? strerror(errno) : "too long for a SESS_OBJ or a sealed copy");
	fclose(f);
	return good ? 0 : -1;
}

static int read_conf(const struct invocation *in, struct sources *s)
{
	static char message[MESSAGE_MAX];
	const char *key_path = in->options[OPTION_AGENTS_KEY];

	if (in->options[OPTION_CONFIG] &&
		conf_load(in->options[OPTION_CONFIG], &s->conf, message, sizeof message) < 0) {
		complain_of(in, "`csslctl config check` says all that is wrong with it", "%.*s",
			(int)strcspn(message, "\n"), message);
		return -1;
	}
	if (!key_path && s->conf)
		key_path = s->conf->agents_key;
	if (key_path && !(s->key = conf_read_key(key_path, message, sizeof message))) {
		complain_of(in, NULL, "%s", message);
		return -1;
	}
	return 0;
}

static enum exit_code read_bindings(const struct invocation *in, struct sources *s, struct inspection *out)
{
	const char *id = in->options[OPTION_CONNECTION], *kept = in->options[OPTION_KEPT];
	uint32_t kept_ms = 0;

	if (id && (strlen(id) != 2 * CONNECTION_ID_LEN || sodium_hex2bin(s->connection.bytes, CONNECTION_ID_LEN, id,
								  strlen(id), NULL, NULL, NULL) != 0))
		return misused(
			in, "--connection: '%s' is no connection id: %u hexadecimal digits", id, 2 * CONNECTION_ID_LEN);
	if (kept && duration_parse(kept, DURATION_MAX_MS, &kept_ms) < 0)
		return misused(in, "--kept: '%s' is no time up to 1d, such as 30s", kept);
	out->connection = id ? &s->connection : NULL;
	out->listener = in->options[OPTION_LISTENER];
	out->kept_s = kept_ms / 1000;
	return EXIT_DONE;
}

/* --- for people --- */

static void add_members(struct table *t, const json_t *object, int depth)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		char label[64];
		snprintf(label, sizeof label, "%*s%s", 2 * depth, "", name);
		for (char *p = label; *p != '\0'; p++)
			*p = *p == '_' ? ' ' : *p;
		if (json_is_string(value))
			facts_add(t, label, STYLE_PLAIN, "%s", json_string_value(value));
		else if (json_is_integer(value))
			facts_add(t, label, STYLE_PLAIN, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		else if (json_is_object(value))
			facts_add(t, label, STYLE_PLAIN, "%s", "");
		else
			facts_add(t, label, STYLE_PLAIN, "%s",
				json_is_true(value)    ? "yes"
				: json_is_false(value) ? "no"
						       : "-");
		add_members(t, value, depth + 1);
	}
}

static void show(const struct invocation *in, const json_t *found)
{
	struct table *t = facts_create();

	add_members(t, found, 0);
	table_show(t, &in->screen);
}

enum exit_code command_inspect(struct invocation *in)
{
	struct sources s = { .bytes = NULL };
	struct inspection what = { .bytes = NULL };
	enum exit_code code = read_bindings(in, &s, &what);

	if (code == EXIT_DONE && (read_blob(in, &s, &what.len) < 0 || read_conf(in, &s) < 0))
		code = EXIT_REFUSED;
	if (code == EXIT_DONE) {
		what.bytes = s.bytes;
		what.agents_key = s.key;
		what.conf = s.conf;
		json_t *found = inspect(&what);
		if (in->screen.form == SCREEN_JSON)
			show_json(in, found);
		else
			show(in, found);
		code = json_is_true(json_object_get(found, "importable")) ? EXIT_DONE : EXIT_REFUSED;
		json_decref(found);
	}
	sources_free(&s);
	return code;
}
