/* conf.c: the whole of loading: read, parse, load; and finding things by name. */
#include "conf/conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/complaints.h"
#include "conf/load.h"
#include "conf/memory.h"
#include "net/machine_memory.h"
#include "proto/error.h"

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return strdup("");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int load(struct complaints *c, const char *text, size_t len, struct conf *conf)
{
	struct node *root = NULL;
	int r = tree_parse(text, len, c, &root);
	if (r)
		return r;
	char *folder = folder_of(c->file);
	r = folder ? load_object(c, &schema_cluster, root, folder, conf, conf->marks) : CSSL_E_NO_MEMORY;
	free(folder);
	node_destroy(root);
	return r ? r : c->count > 0 ? CSSL_E_CONFIG : 0;
}

int conf_parse(const char *text, size_t len, const char *name, struct conf **out, char *error, size_t error_cap)
{
	struct complaints c;
	complaints_start(&c, name, error, error_cap);
	struct conf *conf = calloc(1, sizeof *conf);
	int r = CSSL_E_NO_MEMORY;
	if (conf && (conf->path = strdup(name)) && (conf->marks = calloc(1, sizeof *conf->marks)))
		r = load(&c, text, len, conf);
	if (r == CSSL_E_NO_MEMORY)
		complain_plain(&c, 0, "out of memory");
	if (r) {
		conf_destroy(conf);
		return r;
	}
	*out = conf;
	return 0;
}

/* One byte more than allowed, so that the parser sees that there is more. */
static char *read_file(FILE *f, size_t *len)
{
	const size_t cap = TREE_BYTES_MAX + 1;
	char *text = malloc(cap);
	if (!text)
		return NULL;
	*len = fread(text, 1, cap, f);
	if (!ferror(f))
		return text;
	free(text);
	return NULL;
}

int conf_load(const char *path, struct conf **out, char *error, size_t error_cap)
{
	struct complaints c;
	size_t len = 0;
	FILE *f = fopen(path, "re");
	char *text = f ? read_file(f, &len) : NULL;
	int r = CSSL_E_CONFIG;
	if (text) {
		r = conf_parse(text, len, path, out, error, error_cap);
		if (r == 0)
			memory_derive(*out, machine_memory(""));
	} else {
		complaints_start(&c, path, error, error_cap);
		complain_plain(&c, 0, "cannot be read: %s", strerror(errno));
	}
	free(text);
	if (f)
		fclose(f);
	return r;
}

void conf_destroy(struct conf *c)
{
	if (!c)
		return;
	schema_free(&schema_cluster, c);
	if (c->marks)
		free(c->marks->at);
	free(c->marks);
	free(c->path);
	free(c);
}

unsigned conf_line(const struct conf *c, const void *field)
{
	for (size_t i = 0; i < c->marks->count; i++) {
		if (c->marks->at[i].field == field)
			return c->marks->at[i].line;
	}
	return 0;
}

/* One shape for all five: an array of structs that have a name. */
#define FIND(what, array, array_count)                                                                                 \
	const struct conf_##what *conf_##what##_find(const struct conf *c, const char *name)                           \
	{                                                                                                              \
		for (size_t i = 0; i < c->array_count; i++) {                                                          \
			if (strcmp(c->array[i].name, name) == 0)                                                       \
				return &c->array[i];                                                                   \
		}                                                                                                      \
		return NULL;                                                                                           \
	}

FIND(agent, agents, agent_count)
FIND(ragent, ragents, ragent_count)
FIND(listener, listeners, listener_count)
FIND(backend, backends, backend_count)
FIND(certificate, certificates, certificate_count)
