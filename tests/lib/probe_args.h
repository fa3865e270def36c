/* probe_args.h: one command line of tlsprobe: a verb and key=value pairs. Values may be quoted: "a b\r\n\x00". */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PROBE_ARGS_MAX 32

struct probe_arg {
	char *key;
	uint8_t *value; /* terminated, too */
	size_t len;
	enum { ARG_UNUSED, ARG_USED } use;
};

struct probe_args {
	char *verb;
	struct probe_arg at[PROBE_ARGS_MAX];
	size_t count;
};

/* Takes @line apart in place. 0, or -1: malformed. */
int probe_args_parse(char *line, struct probe_args *out);

const char *probe_text(struct probe_args *a, const char *key, const char *otherwise);
long long probe_number(struct probe_args *a, const char *key, long long otherwise); /* decimal or 0x */
/* Bytes of the argument; NULL without it. For the key "text", "hex" may stand instead. */
const uint8_t *probe_bytes(struct probe_args *a, const char *key, size_t *len);
/* The first key nobody asked for (a typing mistake of the test), or NULL. */
const char *probe_args_unused(const struct probe_args *a);
