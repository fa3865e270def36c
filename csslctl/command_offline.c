/* command_offline.c: commands that ask no cluster: the check of a cluster file, read as every daemon reads it, and a
 * new token for the control API. The secret goes to a file that only its owner can read, and its hash to standard
 * output, for RAgent's file of tokens. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "conf/conf.h"
#include "csslctl/ask.h"
#include "proto/control_token.h"

#define FAULTS_LEN   65536u
#define NAME_LEN_MAX 63u

/* --- config check --- */

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
static void offline_tell(const struct invocation *in, const struct conf *c, const char *faults, const char *unread)
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
	const bool bad = conf_load(in->operands[0], &c, faults, FAULTS_LEN) < 0 ||
			 conf_check_anywhere(c, faults, FAULTS_LEN, unread, FAULTS_LEN) < 0;

	offline_tell(in, c, faults, unread);
	conf_destroy(c);
	free(unread);
	free(faults);
	return bad ? EXIT_REFUSED : EXIT_DONE;
}

/* --- token make --- */

/* RAgent's file has words and comments, so a name must be one word. */
static bool offline_is_name(const char *name)
{
	return strlen(name) <= NAME_LEN_MAX && name[0] != '#' && strpbrk(name, " \t\r\n") == NULL;
}

static int token_save(const struct invocation *in, const char *path, const char *token)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	int result = fd < 0 ? -1 : 0;

	if (fd >= 0 && (write(fd, token, CONTROL_TOKEN_LEN) != (ssize_t)CONTROL_TOKEN_LEN || write(fd, "\n", 1) != 1))
		result = -1;
	if (fd >= 0 && close(fd) < 0)
		result = -1;
	if (result < 0)
		complain_of(in, errno == EEXIST ? "a token is never overwritten: name another file" : NULL, "%s: %s",
			path, strerror(errno));
	return result;
}

static void token_show(const struct invocation *in, const char *role, const uint8_t *hash)
{
	char hex[2 * CONTROL_TOKEN_HASH_LEN + 1];

	sodium_bin2hex(hex, sizeof hex, hash, CONTROL_TOKEN_HASH_LEN);
	if (in->screen.form == SCREEN_HUMAN) {
		fprintf(in->screen.out, "%s %s %s\n", in->operands[0], role, hex);
		return;
	}
	json_t *out = must(json_pack("{s:s, s:s, s:s}", "name", in->operands[0], "role", role, "hash", hex));
	show_json(in, out);
	json_decref(out);
}

enum exit_code command_token_make(struct invocation *in)
{
	const char *role = in->options[OPTION_ROLE] ? in->options[OPTION_ROLE] : "read";
	char token[CONTROL_TOKEN_LEN + 1];
	uint8_t hash[CONTROL_TOKEN_HASH_LEN];

	if (strcmp(role, "read") != 0 && strcmp(role, "operate") != 0)
		return misused(in, "--role: there is `read` and `operate`, not '%s'", role);
	if (!offline_is_name(in->operands[0]))
		return misused(in, "a name is one word of at most %u bytes that does not begin with '#'", NAME_LEN_MAX);
	control_token_make(token);
	control_token_hash(token, CONTROL_TOKEN_LEN, hash);
	const int saved = token_save(in, in->operands[1], token);
	sodium_memzero(token, sizeof token);
	if (saved < 0)
		return EXIT_REFUSED;
	token_show(in, role, hash);
	return EXIT_DONE;
}
