/* command_config.c: the cluster file, read as every daemon reads it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "csslctl/ask.h"
#include "csslctl/memory.h"

#define FAULTS_LEN 65536u

/* One element for each line. */
static json_t *lines_json(const char *text)
{
	json_t *out = must(json_array());

	while (*text != '\0') {
		const size_t len = strcspn(text, "\n");
		json_array_append_new(out, must(json_stringn(text, len)));
		text += len + (text[len] == '\n');
	}
	return out;
}

/* With --json the faults are the answer; else they go to standard error. @unread: files that were not judged. */
static void tell(const struct invocation *in, const struct conf *c, const char *faults, const char *unread)
{
	if (in->screen.form == SCREEN_JSON) {
		json_t *out = must(json_pack("{s:b, s:o, s:o}", "good", *faults == '\0', "faults", lines_json(faults),
			"unread", lines_json(unread)));
		show_json(in, out);
		json_decref(out);
		return;
	}
	if (*faults == '\0')
		conf_check_print(c, in->screen.out);
	else
		fprintf(stderr, "%s\n", faults);
	if (*unread != '\0')
		fprintf(in->screen.out,
			"not judged, because this host or user has not what the file names "
			"(`--check` of a daemon judges it on its host):\n%s\n",
			unread);
}

enum exit_code command_config_check(struct invocation *in)
{
	char *faults = must(calloc(1, FAULTS_LEN)), *unread = must(calloc(1, FAULTS_LEN));
	struct conf *c = NULL;
	const int bad = conf_load(in->operands[0], &c, faults, FAULTS_LEN) < 0 ||
			conf_check_anywhere(c, faults, FAULTS_LEN, unread, FAULTS_LEN) < 0;

	tell(in, c, faults, unread);
	conf_destroy(c);
	free(unread);
	free(faults);
	return bad ? EXIT_REFUSED : EXIT_DONE;
}
