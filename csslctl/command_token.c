/* command_token.c: a new token for the control API: writes the secret to a file that only its owner can read, and its
 * hash to standard output, for RAgent's file of tokens. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "csslctl/ask.h"
#include "csslctl/memory.h"
#include "proto/control_token.h"

#define NAME_LEN_MAX 63u

/* RAgent's file has words and comments, so a name must be one word. */
static int is_name(const char *name)
{
	return strlen(name) <= NAME_LEN_MAX && name[0] != '#' && strpbrk(name, " \t\r\n") == NULL;
}

static int save(const struct invocation *in, const char *path, const char *token)
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

static void show(const struct invocation *in, const char *role, const uint8_t *hash)
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
	if (!is_name(in->operands[0]))
		return misused(in, "a name is one word of at most %u bytes that does not begin with '#'", NAME_LEN_MAX);
	control_token_make(token);
	control_token_hash(token, CONTROL_TOKEN_LEN, hash);
	const int saved = save(in, in->operands[1], token);
	sodium_memzero(token, sizeof token);
	if (saved < 0)
		return EXIT_REFUSED;
	show(in, role, hash);
	return EXIT_DONE;
}
