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

/* With --json the faults are the answer; else they go to standard error. */
static void tell(const struct invocation *in, const struct conf *c, const char *faults)
{
	if (in->screen.form == SCREEN_JSON) {
		json_t *out = must(json_pack("{s:b, s:o}", "good", *faults == '\0', "faults", lines_json(faults)));
		show_json(in, out);
		json_decref(out);
	} else if (*faults == '\0') {
		conf_check_print(c, in->screen.out);
	} else {
		fprintf(stderr, "%s\n", faults);
	}
}

enum exit_code command_config_check(struct invocation *in)
{
	char *faults = must(calloc(1, FAULTS_LEN));
	struct conf *c = NULL;
	const int bad = conf_load(in->operands[0], &c, faults, FAULTS_LEN) < 0 ||
			conf_check_files(c, CONF_FOR_ALL, faults, FAULTS_LEN) < 0;

	tell(in, c, faults);
	conf_destroy(c);
	free(faults);
	return bad ? EXIT_REFUSED : EXIT_DONE;
}
