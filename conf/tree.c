/* tree.c: turns libyaml's events into nodes, each with its line. @at is the open list or map. A key waits in @key
 * for its value. */
#include "conf/tree.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "proto/error.h"

struct builder {
	struct complaints *complaints;
	struct node *root, *at;
	char *key;
	unsigned key_line;
	unsigned depth, documents;
	int error;
};

const char *node_kind_text(enum node_kind k)
{
	static const char *const text[] = {
		[NODE_NOTHING] = "nothing",
		[NODE_SCALAR] = "a single value",
		[NODE_LIST] = "a list",
		[NODE_MAP] = "a map",
	};
	return text[k];
}

void node_destroy(struct node *n)
{
	if (!n)
		return;
	for (struct node *child = n->first, *next; child; child = next) {
		next = child->next;
		node_destroy(child);
	}
	free(n->key);
	free(n->text);
	free(n);
}

const struct node *node_child(const struct node *map, const char *key)
{
	if (!map || map->kind != NODE_MAP)
		return NULL;
	for (const struct node *n = map->first; n; n = n->next)
		if (strcmp(n->key, key) == 0)
			return n;
	return NULL;
}

unsigned node_line(const struct node *map, const char *key)
{
	const struct node *n = node_child(map, key);
	if (n)
		return n->key_line;
	return map ? map->line : 0;
}

static void builder_refuse(struct builder *b, unsigned line, const char *found, const char *expected)
{
	complain(b->complaints, line, b->key, found, "%s", expected);
	b->error = CSSL_E_CONFIG;
}

static struct node *builder_attach(struct builder *b, enum node_kind kind, unsigned line)
{
	struct node *n = calloc(1, sizeof *n);
	if (!n) {
		b->error = CSSL_E_NO_MEMORY;
		return NULL;
	}
	n->kind = kind;
	n->line = line;
	n->key = b->key;
	n->key_line = b->key ? b->key_line : line;
	b->key = NULL;
	n->parent = b->at;
	if (!b->at) {
		b->root = n;
		return n;
	}
	if (b->at->last)
		b->at->last->next = n;
	else
		b->at->first = n;
	b->at->last = n;
	b->at->count++;
	return n;
}

static bool key_is_due(const struct builder *b)
{
	return b->at && b->at->kind == NODE_MAP && !b->key;
}

static bool means_nothing(const yaml_event_t *e)
{
	const char *text = (const char *)e->data.scalar.value;
	if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	return text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0;
}

static void on_scalar(struct builder *b, const yaml_event_t *e, unsigned line)
{
	const char *text = (const char *)e->data.scalar.value;
	if (e->data.scalar.anchor || e->data.scalar.tag) {
		builder_refuse(b, line, "an anchor or a tag", "a plain value");
		return;
	}
	if (strlen(text) != e->data.scalar.length) {
		builder_refuse(b, line, "a zero byte", "text");
		return;
	}
	char *copy = strdup(text);
	if (!copy) {
		b->error = CSSL_E_NO_MEMORY;
		return;
	}
	if (key_is_due(b)) {
		b->key = copy;
		b->key_line = line;
		return;
	}
	struct node *n = builder_attach(b, means_nothing(e) ? NODE_NOTHING : NODE_SCALAR, line);
	if (n && n->kind == NODE_SCALAR)
		n->text = copy;
	else
		free(copy);
}

static void builder_on_open(struct builder *b, enum node_kind kind, const void *anchor, const void *tag, unsigned line)
{
	if (anchor || tag)
		builder_refuse(b, line, "an anchor or a tag", "a plain list or map");
	else if (key_is_due(b))
		builder_refuse(b, line, node_kind_text(kind), "a key");
	else if (b->depth >= TREE_DEPTH_MAX)
		builder_refuse(b, line, "lists and maps nested too deeply", "a flatter file");
	if (b->error)
		return;
	struct node *n = builder_attach(b, kind, line);
	if (!n)
		return;
	b->at = n;
	b->depth++;
}

static void builder_on_event(struct builder *b, const yaml_event_t *e)
{
	unsigned line = (unsigned)e->start_mark.line + 1;
	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->documents++ > 0)
			builder_refuse(b, line, "a second document", "one");
		break;
	case YAML_SCALAR_EVENT: on_scalar(b, e, line); break;
	case YAML_SEQUENCE_START_EVENT:
		builder_on_open(b, NODE_LIST, e->data.sequence_start.anchor, e->data.sequence_start.tag, line);
		break;
	case YAML_MAPPING_START_EVENT:
		builder_on_open(b, NODE_MAP, e->data.mapping_start.anchor, e->data.mapping_start.tag, line);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->at = b->at->parent;
		b->depth--;
		break;
	case YAML_ALIAS_EVENT: builder_refuse(b, line, "an alias", "the value itself"); break;
	default: break;
	}
}

static void complain_syntax(struct builder *b, const yaml_parser_t *p)
{
	if (p->error == YAML_MEMORY_ERROR) {
		b->error = CSSL_E_NO_MEMORY;
		return;
	}
	/* The reader's errors (bytes that are no UTF-8) have an offset and no mark. */
	unsigned line = p->error == YAML_READER_ERROR ? 0 : (unsigned)p->problem_mark.line + 1;
	complain_plain(b->complaints, line, "not YAML: %s%s%s", p->context ? p->context : "", p->context ? ": " : "",
		p->problem ? p->problem : "unknown fault");
	b->error = CSSL_E_CONFIG;
}

static void read_events(struct builder *b, yaml_parser_t *p)
{
	yaml_event_type_t type = YAML_NO_EVENT;
	while (!b->error && type != YAML_STREAM_END_EVENT) {
		yaml_event_t e;
		if (!yaml_parser_parse(p, &e)) {
			complain_syntax(b, p);
			return;
		}
		type = e.type;
		builder_on_event(b, &e);
		yaml_event_delete(&e);
	}
}

int tree_parse(const char *text, size_t len, struct complaints *c, struct node **out)
{
	struct builder b = { .complaints = c };
	yaml_parser_t parser;
	if (len > TREE_BYTES_MAX) {
		complain(c, 0, NULL, "a larger file", "at most %u bytes", TREE_BYTES_MAX);
		return CSSL_E_CONFIG;
	}
	if (!yaml_parser_initialize(&parser))
		return CSSL_E_NO_MEMORY;
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	read_events(&b, &parser);
	yaml_parser_delete(&parser);
	if (!b.error && !b.root)
		builder_refuse(&b, 0, "nothing", "a cluster");
	free(b.key);
	if (b.error) {
		node_destroy(b.root);
		return b.error;
	}
	*out = b.root;
	return 0;
}
