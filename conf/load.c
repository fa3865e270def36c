/* load.c: walks schema and tree together, row by row. A wrong value leaves its field zero and a complaint. Rules
 * between keys are checked only in maps without a complaint so far, so that one mistake gives one message. */
#include "conf/load.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "conf/value.h"
#include "net/memory/array.h"
#include "net/socket/address.h"
#include "proto/error.h"

#define CLAIM_TEXT_MAX 160u

/* A value that may be given only once, and the line where it was given. */
struct claim {
	struct claim *next;
	enum schema_unique unique;
	const struct node *list; /* ONCE_IN_LIST: this list */
	unsigned line;
	char text[CLAIM_TEXT_MAX];
};

struct loader {
	struct complaints *complaints;
	const struct node *root;
	struct conf_file *object; /* of the root */
	const char *folder;
	struct claim *claims;
	int error; /* CSSL_E_NO_MEMORY */
};

enum fill { FILL_DEFAULTS, FILL_INHERITED };

static void load_map(
	struct loader *l, const struct schema_map *map, const struct node *node, char *object, enum fill fill);

/* The list whose elements @n must differ from: its own for an item, the one of maps around it for a key. */
static const struct node *list_around(const struct node *n)
{
	const struct node *list = n->parent;
	while (list && list->kind != NODE_LIST)
		list = list->parent;
	return list;
}

/* Addresses are compared as addresses: "[::0]:1" is "[::]:1". @field NULL: not a value that others could collide with.
 */
static bool claim_text(const struct schema_row *row, enum schema_type type, const struct node *n, const void *field,
	char out[static CLAIM_TEXT_MAX])
{
	_Static_assert(ADDRESS_TEXT_MAX <= CLAIM_TEXT_MAX, "addresses fit");
	if (type == SCHEMA_ADDRESS) {
		const struct sockaddr *address = field;
		if (address->sa_family != AF_UNIX && address_port(address) == 0 && row->unique != SCHEMA_ONCE_A_SOCKET)
			return false;
		address_format(address, out);
		return true;
	}
	const size_t len = strlen(n->text);
	if (len >= CLAIM_TEXT_MAX) /* longer than any name; such paths are not compared */
		return false;
	memcpy(out, n->text, len + 1);
	return true;
}

static void loader_claim(
	struct loader *l, const struct schema_row *row, enum schema_type type, const struct node *n, const void *field)
{
	struct claim *mine = calloc(1, sizeof *mine);
	if (!mine)
		l->error = CSSL_E_NO_MEMORY;
	if (!mine || !claim_text(row, type, n, field, mine->text)) {
		free(mine);
		return;
	}
	mine->unique = row->unique;
	mine->list = row->unique == SCHEMA_ONCE_IN_LIST ? list_around(n) : NULL;
	mine->line = n->line;
	for (const struct claim *other = l->claims; other; other = other->next) {
		if (other->unique != mine->unique || other->list != mine->list || strcmp(other->text, mine->text) != 0)
			continue;
		complain_value(l->complaints, n->line, row->key, n->text, "one that line %u does not have already",
			other->line);
		break;
	}
	mine->next = l->claims;
	l->claims = mine;
}

static void check_reference(struct loader *l, const struct schema_row *row, const struct node *n)
{
	const struct node *list = node_child(l->root, row->refers_to);
	for (const struct node *element = list ? list->first : NULL; element; element = element->next) {
		const struct node *name = node_child(element, "name");
		if (name && name->kind == NODE_SCALAR && strcmp(name->text, n->text) == 0)
			return;
	}
	complain_value(l->complaints, n->line, row->key, n->text, "the name of one of the %s", row->refers_to);
}

static void loader_mark(struct loader *l, const void *field, unsigned line)
{
	struct conf_file *f = l->object;
	if (array_make_room(&f->marks, &f->mark_cap, f->mark_count, sizeof *f->marks))
		l->error = CSSL_E_NO_MEMORY;
	else
		f->marks[f->mark_count++] = (struct conf_mark){ .field = field, .line = line };
}

static void load_scalar(struct loader *l, const struct schema_row *row, enum schema_type type, const struct node *n,
	void *field, size_t size)
{
	char expected[VALUE_EXPECTED_MAX];
	if (n->kind != NODE_SCALAR) {
		complain(l->complaints, n->line, row->key, node_kind_text(n->kind), "%s",
			value_expected(row, type, expected));
		return;
	}
	const int r = value_parse(row, type, n->text, l->folder, field, size);
	if (r == CSSL_E_NO_MEMORY) {
		l->error = r;
		return;
	}
	if (r) {
		complain_value(l->complaints, n->line, row->key, n->text, "%s", value_expected(row, type, expected));
		return;
	}
	loader_mark(l, field, n->line);
	if (row->unique != SCHEMA_REPEATABLE)
		loader_claim(l, row, type, n, field);
	if (row->refers_to)
		check_reference(l, row, n);
}

static bool list_is_good(struct loader *l, const struct schema_row *row, const struct node *n)
{
	const char *what = row->map ? "a list of maps" : "a list";
	if (n->kind != NODE_LIST)
		complain(l->complaints, n->line, row->key, node_kind_text(n->kind), "%s", what);
	else if (n->count == 0 && row->presence == SCHEMA_REQUIRED)
		complain(l->complaints, n->line, row->key, "an empty list", "at least one element");
	else if ((double)n->count > row->max)
		complain(l->complaints, n->line, row->key, "a longer list", "at most %.0f elements", row->max);
	else
		return true;
	return false;
}

/* The count grows with each element begun, so that a half-loaded array can be freed. */
static void load_array(struct loader *l, const struct schema_row *row, const struct node *n, char *object)
{
	size_t count = 0;
	if (!list_is_good(l, row, n))
		return;
	char *at = calloc(n->count > 0 ? n->count : 1, row->item_size);
	if (!at) {
		l->error = CSSL_E_NO_MEMORY;
		return;
	}
	memcpy(object + row->offset, &at, sizeof at);
	for (const struct node *element = n->first; element; element = element->next, at += row->item_size) {
		count++;
		memcpy(object + row->count_offset, &count, sizeof count);
		if (!row->map)
			load_scalar(l, row, row->item, element, at, row->item_size);
		else if (element->kind == NODE_MAP)
			load_map(l, row->map, element, at, FILL_DEFAULTS);
		else
			complain(l->complaints, element->line, row->key, node_kind_text(element->kind), "a map");
	}
}

static void load_missing(
	struct loader *l, const struct schema_row *row, const struct node *map, char *object, enum fill fill)
{
	char expected[VALUE_EXPECTED_MAX];
	char *field = object + row->offset;
	if (row->type == SCHEMA_MAP && row->presence != SCHEMA_REQUIRED) {
		load_map(l, row->map, NULL, field, row->presence == SCHEMA_INHERITED ? FILL_INHERITED : FILL_DEFAULTS);
		return;
	}
	if (row->presence == SCHEMA_REQUIRED) {
		assert(map); /* optional maps have no required keys */
		const char *what = row->type == SCHEMA_MAP     ? "a map"
				   : row->type == SCHEMA_LIST  ? "a list of maps"
				   : row->type == SCHEMA_ITEMS ? "a list"
							       : value_expected(row, row->type, expected);
		complain(l->complaints, map->line, row->key, "nothing", "%s", what);
		return;
	}
	if (fill == FILL_INHERITED || !row->fallback)
		return;
	if (value_parse(row, row->type, row->fallback, "", field, row->size))
		l->error = CSSL_E_NO_MEMORY; /* its test checks that defaults are valid */
}

static void load_row(
	struct loader *l, const struct schema_row *row, const struct node *map, char *object, enum fill fill)
{
	const struct node *n = node_child(map, row->key);
	char *field = object + row->offset;
	if (row->presence == SCHEMA_INHERITED)
		memcpy(field, (char *)l->object + row->inherits, row->size);
	if (!n) {
		load_missing(l, row, map, object, fill);
		return;
	}
	if (row->type == SCHEMA_ITEMS || row->type == SCHEMA_LIST)
		load_array(l, row, n, object);
	else if (row->type != SCHEMA_MAP)
		load_scalar(l, row, row->type, n, field, row->size);
	else if (n->kind != NODE_MAP)
		complain(l->complaints, n->line, row->key, node_kind_text(n->kind), "a map");
	else
		load_map(l, row->map, n, field, row->presence == SCHEMA_INHERITED ? FILL_INHERITED : FILL_DEFAULTS);
}

static void complain_unknown(struct loader *l, const struct schema_map *map, const struct node *n)
{
	const char *nearest = schema_nearest(map, n->key);
	char keys[VALUE_EXPECTED_MAX * 2];
	size_t len = 0;
	if (nearest) {
		complain(l->complaints, n->key_line, n->key, "an unknown key", "'%s'?", nearest);
		return;
	}
	for (const struct schema_row *row = map->rows; row->key && len < sizeof keys; row++)
		len += (size_t)snprintf(keys + len, sizeof keys - len, "%s%s", row == map->rows ? "" : ", ", row->key);
	complain(l->complaints, n->key_line, n->key, "an unknown key", "one of %s", keys);
}

/* Every key known, and there once. */
static void check_keys(struct loader *l, const struct schema_map *map, const struct node *node)
{
	for (const struct node *n = node ? node->first : NULL; n; n = n->next) {
		if (!schema_find(map, n->key)) {
			complain_unknown(l, map, n);
			continue;
		}
		const struct node *first = node_child(node, n->key);
		if (first != n)
			complain(l->complaints, n->key_line, n->key, "it again", "it once; line %u has it already",
				first->key_line);
	}
}

/* @node NULL: the map is not in the file. */
static void load_map(
	struct loader *l, const struct schema_map *map, const struct node *node, char *object, enum fill fill)
{
	const unsigned before = l->complaints->count;
	check_keys(l, map, node);
	for (const struct schema_row *row = map->rows; row->key && !l->error; row++)
		load_row(l, row, node, object, fill);
	if (map->check && node && !l->error && l->complaints->count == before)
		map->check(l->complaints, node, object);
}

/* --- files --- */

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return strdup("");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int load_root(struct loader *l, const struct schema_map *map, void *object)
{
	if (l->root->kind != NODE_MAP)
		complain(l->complaints, l->root->line, NULL, node_kind_text(l->root->kind), "a map");
	else
		load_map(l, map, l->root, object, FILL_DEFAULTS);
	for (struct claim *claim = l->claims, *next; claim; claim = next) {
		next = claim->next;
		free(claim);
	}
	return l->error ? l->error : l->complaints->count > 0 ? CSSL_E_CONFIG : 0;
}

static int load_object(
	struct complaints *c, const struct schema_map *map, const char *text, size_t len, struct conf_file *object)
{
	struct node *root = NULL;
	int r = tree_parse(text, len, c, &root);
	if (r)
		return r;
	char *folder = folder_of(c->file);
	struct loader l = { .complaints = c, .root = root, .folder = folder, .object = object };
	r = folder ? load_root(&l, map, object) : CSSL_E_NO_MEMORY;
	free(folder);
	node_destroy(root);
	return r;
}

int load_text(const struct schema_map *map, size_t size, const char *text, size_t len, const char *name, void *out,
	char *error, size_t error_cap)
{
	struct complaints c;
	struct conf_file *object = calloc(1, size);
	int r = CSSL_E_NO_MEMORY;
	complaints_start(&c, name, error, error_cap);
	if (object && (object->path = strdup(name)))
		r = load_object(&c, map, text, len, object);
	if (r == CSSL_E_NO_MEMORY)
		complain_plain(&c, 0, "out of memory");
	if (r)
		load_free(map, object);
	else
		memcpy(out, &object, sizeof object);
	return r;
}

int load_file(const struct schema_map *map, size_t size, const char *path, void *out, char *error, size_t error_cap)
{
	const size_t cap =
		TREE_BYTES_MAX + 1; /* one byte more than allowed, so that the parser sees that there is more */
	FILE *f = fopen(path, "re");
	char *text = f ? malloc(cap) : NULL;
	const size_t len = text ? fread(text, 1, cap, f) : 0;
	struct complaints c;
	int r = CSSL_E_CONFIG;
	if (text && !ferror(f)) {
		r = load_text(map, size, text, len, path, out, error, error_cap);
	} else {
		complaints_start(&c, path, error, error_cap);
		complain_plain(&c, 0, "cannot be read: %s", strerror(errno));
	}
	if (f)
		fclose(f);
	free(text);
	return r;
}

void load_free(const struct schema_map *map, void *object)
{
	struct conf_file *file = object;
	if (!file)
		return;
	schema_free(map, object);
	free(file->marks);
	free(file->path);
	free(file);
}

unsigned conf_line(const struct conf_file *f, const void *field)
{
	for (size_t i = 0; i < f->mark_count; i++)
		if (f->marks[i].field == field)
			return f->marks[i].line;
	return 0;
}
