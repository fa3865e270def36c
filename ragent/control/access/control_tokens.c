/* control_tokens.c: the file is small and read as a whole; every look-up compares with every line. */
#include "ragent/control/access/control_tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/control_token.h"

#define FILE_MAX  (64u * 1024u)
#define TOKEN_MAX 128u
#define BEARER    "Bearer "
#define CN_PREFIX "cn="

struct token {
	char name[CONTROL_TOKEN_NAME_MAX + 1];
	enum control_role role;
	uint8_t hash[CONTROL_TOKEN_HASH_LEN];
	char common_name[CONTROL_CN_MAX + 1]; /* "": the line is a token with a hash */
};

struct control_tokens {
	size_t count;
	struct token at[CONTROL_TOKENS_MAX];
};

/* Each returns NULL, or a text with the expected form. */

static const char *token_parse_hash(const char *text, struct token *out)
{
	size_t len;

	if (sodium_hex2bin(out->hash, CONTROL_TOKEN_HASH_LEN, text, strlen(text), " \t", &len, NULL) != 0 ||
		len != CONTROL_TOKEN_HASH_LEN)
		return "a hash of 64 hexadecimal digits (csslctl token make prints it)";
	return NULL;
}

static const char *token_parse_common_name(const char *text, enum control_names names, struct token *out)
{
	const size_t len = strlen(text);

	if (names == CONTROL_NAMES_DOUBTED)
		return "a token: certificates count only where control_address is a UNIX socket (unix:PATH), as every "
		       "process of this host could claim one on a TCP address";
	if (len == 0 || len > CONTROL_CN_MAX || text[len - 1] == ' ' || text[len - 1] == '\r')
		return "a common name of 1 to 64 bytes, and nothing behind it";
	strcpy(out->common_name, text);
	return NULL;
}

static const char *token_parse_line(char *line, enum control_names names, struct token *out)
{
	char *rest = NULL, *name = strtok_r(line, " \t", &rest), *role = strtok_r(NULL, " \t", &rest);
	const char *proof = role ? rest + strspn(rest, " \t") : NULL;

	if (!proof || *proof == '\0')
		return "`name role hash` or `name role cn=COMMON NAME`";
	if (strlen(name) > CONTROL_TOKEN_NAME_MAX)
		return "a name of at most 63 bytes";
	strcpy(out->name, name);
	out->role = strcmp(role, "operate") == 0 ? CONTROL_ROLE_OPERATE
		    : strcmp(role, "read") == 0  ? CONTROL_ROLE_READ
						 : CONTROL_ROLE_NONE;
	if (out->role == CONTROL_ROLE_NONE)
		return "the role read or operate";
	return strncmp(proof, CN_PREFIX, strlen(CN_PREFIX)) == 0
		       ? token_parse_common_name(proof + strlen(CN_PREFIX), names, out)
		       : token_parse_hash(proof, out);
}

static int tokens_parse(
	struct control_tokens *t, char *text, const char *path, enum control_names names, char *error, size_t error_cap)
{
	unsigned number = 0;

	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		number++;
		if (line[0] == '\0' || line[0] == '#')
			continue;
		const char *expected = t->count == CONTROL_TOKENS_MAX ? "at most 256 tokens"
								      : token_parse_line(line, names, &t->at[t->count]);
		if (expected) {
			snprintf(error, error_cap, "%s:%u: found something else, expected %s", path, number, expected);
			return -1;
		}
		t->count++;
	}
	return 0;
}

static int tokens_open_file(const char *path, char *error, size_t error_cap)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) != 0) {
		snprintf(error, error_cap, "%s: cannot be read: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode) || st.st_mode & 022) {
		snprintf(error, error_cap,
			"%s: found mode %04o, expected a regular file that only its owner can write: chmod 644 %s",
			path, (unsigned)(st.st_mode & 07777), path);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

struct control_tokens *control_tokens_load(const char *path, enum control_names names, char *error, size_t error_cap)
{
	int fd = tokens_open_file(path, error, error_cap);
	if (fd < 0)
		return NULL;
	struct control_tokens *t = calloc(1, sizeof *t);
	char *text = malloc(FILE_MAX + 1);
	ssize_t len = text ? read(fd, text, FILE_MAX + 1) : -1;
	int result = -1;

	close(fd);
	if (!t || !text) {
		snprintf(error, error_cap, "%s: out of memory", path);
	} else if (len < 0 || len > (ssize_t)FILE_MAX) {
		snprintf(error, error_cap, "%s: found %s, expected at most %u bytes", path,
			len < 0 ? strerror(errno) : "a larger file", FILE_MAX);
	} else {
		text[len] = '\0';
		result = tokens_parse(t, text, path, names, error, error_cap);
	}
	free(text);
	if (result == 0)
		return t;
	free(t);
	return NULL;
}

enum control_role control_tokens_role(const struct control_tokens *t, const char *authorization, const char **name)
{
	uint8_t hash[CONTROL_TOKEN_HASH_LEN];
	enum control_role role = CONTROL_ROLE_NONE;

	*name = NULL;
	if (!authorization || strncasecmp(authorization, BEARER, strlen(BEARER)) != 0)
		return CONTROL_ROLE_NONE;
	const char *token = authorization + strlen(BEARER);
	size_t len = strnlen(token, TOKEN_MAX + 1);
	if (len > TOKEN_MAX)
		return CONTROL_ROLE_NONE;
	control_token_hash(token, len, hash);
	for (size_t i = 0; i < t->count; i++) {
		if (sodium_memcmp(hash, t->at[i].hash, CONTROL_TOKEN_HASH_LEN) != 0 || *t->at[i].common_name)
			continue;
		role = t->at[i].role;
		*name = t->at[i].name;
	}
	return role;
}

enum control_role control_tokens_certificate_role(
	const struct control_tokens *t, const char *common_name, const char **name)
{
	for (size_t i = 0; *common_name && i < t->count; i++) {
		if (strcmp(common_name, t->at[i].common_name) != 0)
			continue;
		*name = t->at[i].name;
		return t->at[i].role;
	}
	*name = NULL;
	return CONTROL_ROLE_NONE;
}
