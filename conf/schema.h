/* schema.h: the keys of a cluster file as tables, one row for each key. Loading, freeing, messages and the manual
 * (--help-config) all use these rows. */
#pragma once

#include <stddef.h>

#include "conf/tree.h"

enum schema_type {
	/* scalars */
	SCHEMA_NAME,        /* char *: 1 to 63 of [A-Za-z0-9._-] */
	SCHEMA_STRING,      /* char *: not empty, no control characters */
	SCHEMA_PATH,        /* char *: a relative one is taken from the file's folder */
	SCHEMA_SOCKET_PATH, /* char *: as PATH, and fits a UNIX address */
	SCHEMA_COUNT,       /* unsigned integer of the field's size */
	SCHEMA_DURATION_MS, /* unsigned integer; `200ms`, `3s`, `5min`, `2h`, `1d` */
	SCHEMA_DURATION_S,
	SCHEMA_SIZE,    /* unsigned integer; `64KiB`, `256MiB`, `1GiB` */
	SCHEMA_REAL,    /* double */
	SCHEMA_WORD,    /* integer of the field's size, one of @words */
	SCHEMA_ADDRESS, /* struct sockaddr_storage */
	SCHEMA_HOST,    /* struct sockaddr_storage with port 0 */
	SCHEMA_NET,     /* struct address_net */
	/* made of others */
	SCHEMA_ITEMS, /* array and count: a list of scalars of type @item */
	SCHEMA_MAP,   /* an embedded struct described by @map */
	SCHEMA_LIST,  /* array and count: a list of maps described by @map */
};

enum schema_presence {
	SCHEMA_OPTIONAL, /* @fallback, or the field stays zero */
	SCHEMA_REQUIRED, /* a list: with at least one element */
	SCHEMA_INHERITED /* MAP: keys that are not set are copied from the root's field at @inherits */
};

/* Where a value may occur only once. */
enum schema_unique {
	SCHEMA_REPEATABLE,
	SCHEMA_ONCE_IN_LIST,  /* among the elements of its list */
	SCHEMA_ONCE_A_NODE,   /* node names: among all ragents and agents */
	SCHEMA_ONCE_A_SOCKET, /* in the cluster, among all addresses and paths that others connect to */
	SCHEMA_ONCE_BOUND,    /* among RAgents' listening addresses (port 0 repeats) */
};

struct schema_word {
	const char *word;
	int value;
};

struct schema_row {
	const char *key;
	enum schema_type type;
	enum schema_presence presence;
	size_t offset, size; /* of the field; of an array's pointer */
	size_t count_offset; /* ITEMS, LIST: of its size_t count */
	const char *fallback;
	double min, max;     /* of COUNT, DURATION (in the field's unit), SIZE, REAL; max also of a list's elements */
	const char *off;     /* this word is allowed too, and means zero */
	const char *derived; /* the same, and means all bits one: the value follows from something else */
	const struct schema_word *words; /* WORD: a NULL word ends them; synonyms follow the first word of a value */
	enum schema_type item;           /* ITEMS */
	size_t item_size;                /* of an element of ITEMS, LIST */
	const struct schema_map *map;    /* MAP, LIST */
	size_t inherits;
	const char *refers_to; /* key of a list of the root; it must have an element of this name */
	enum schema_unique unique;
	const char *help;
};

struct schema_map {
	const struct schema_row *rows; /* a NULL key ends them */
	/* Rules between keys, called if all values of the map are good. May be NULL. */
	void (*check)(struct complaints *c, const struct node *map, const void *object);
};

extern const struct schema_map schema_cluster; /* struct conf */

const struct schema_row *schema_find(const struct schema_map *map, const char *key);

/* The key of @map that was probably meant by @key; NULL: none is near. */
const char *schema_nearest(const struct schema_map *map, const char *key);

/* Free the memory of the rows' fields, not @object itself. */
void schema_free(const struct schema_map *map, void *object);
