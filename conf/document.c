/* document.c: reads, parses and loads one file. */
#include "conf/document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/complaints.h"
#include "proto/error.h"

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return strdup("");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int load(struct complaints *c, const char *text, size_t len, const struct schema_map *map, void *object,
	struct marks *marks)
{
	struct node *root = NULL;
	int r = tree_parse(text, len, c, &root);
	if (r)
		return r;
	char *folder = folder_of(c->file);
	r = folder ? load_object(c, map, root, folder, object, marks) : CSSL_E_NO_MEMORY;
	free(folder);
	node_destroy(root);
	return r ? r : c->count > 0 ? CSSL_E_CONFIG : 0;
}

int document_parse(const char *text, size_t len, const char *name, const struct schema_map *map, void *object,
	struct marks *marks, const struct document_errors *errors)
{
	struct complaints c;
	complaints_start(&c, name, errors->out, errors->cap);
	int r = load(&c, text, len, map, object, marks);
	if (r == CSSL_E_NO_MEMORY)
		complain_plain(&c, 0, "out of memory");
	return r;
}

/* One byte more than allowed, so that the parser sees that there is more. */
static char *read_all(FILE *f, size_t *len)
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

char *document_read(const char *path, size_t *len, const struct document_errors *errors)
{
	struct complaints c;
	FILE *f = fopen(path, "re");
	char *text = f ? read_all(f, len) : NULL;
	if (!text) {
		complaints_start(&c, path, errors->out, errors->cap);
		complain_plain(&c, 0, "cannot be read: %s", strerror(errno));
	}
	if (f)
		fclose(f);
	return text;
}
