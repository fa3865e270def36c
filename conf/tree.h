/* tree.h: a YAML document as a tree that remembers lines. Only scalars, lists and maps; an anchor, alias, tag or second
 * document is a complaint. Depth and size are bounded. */
#pragma once

#include <stddef.h>

#include "conf/complaints.h"

#define TREE_BYTES_MAX (1u << 20)
#define TREE_DEPTH_MAX 16u

enum node_kind { NODE_NOTHING, NODE_SCALAR, NODE_LIST, NODE_MAP }; /* NOTHING: `key:`, `~` or `null` */

struct node {
	enum node_kind kind;
	unsigned line;     /* where the value starts; the key, if there is no value */
	char *key;         /* in a map; else NULL */
	unsigned key_line; /* in a map; else @line */
	char *text;        /* of a scalar; else NULL */
	struct node *parent, *first, *last, *next;
	size_t count; /* children */
};

/* 0: *out is the root, of any kind. CSSL_E_CONFIG: there are complaints. CSSL_E_NO_MEMORY. */
int tree_parse(const char *text, size_t len, struct complaints *c, struct node **out);
void node_destroy(struct node *n); /* with all nodes below; NULL is legal */

/* The first child of that key, or NULL. @map may be NULL. */
const struct node *node_child(const struct node *map, const char *key);

/* The line of @key, or of @map if it has no such key; 0: @map is NULL. */
unsigned node_line(const struct node *map, const char *key);

/* "a list", "a map", "nothing": for complaints. */
const char *node_kind_text(enum node_kind k);
