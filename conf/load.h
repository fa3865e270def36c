/* load.h: turns a tree into C values, by a schema. */
#ifndef CSSL_CONF_LOAD_H
#define CSSL_CONF_LOAD_H

#include "conf/schema.h"

/* The line of each value. */
struct marks {
	struct mark {
		const void *field;
		unsigned line;
	} * at;
	size_t count, cap;
};

/* The line of the value of a field, by its address; 0: it is a default. */
unsigned marks_line(const struct marks *m, const void *field);

/* Fill the zeroed @object, described by @map, from @root. Relative paths are relative to @folder ("": stay). Each fault
 * makes a complaint, each scalar a mark. 0 or CSSL_E_NO_MEMORY; in both cases @object may hold values for
 * schema_free(). */
int load_object(struct complaints *c, const struct schema_map *map, const struct node *root, const char *folder,
	void *object, struct marks *marks);

#endif
