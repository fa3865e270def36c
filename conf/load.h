/* load.h: from a tree to C values, under a schema. */
#ifndef CSSL_CONF_LOAD_H
#define CSSL_CONF_LOAD_H

#include "conf/schema.h"

/* Where the value of a field came from. */
struct marks {
	struct mark {
		const void *field;
		unsigned line;
	} * at;
	size_t count, cap;
};

/* Fill the zeroed @object, described by @map, from @root; @folder: what relative paths are relative to ("" for none).
 * Everything wrong is complained about; each scalar read leaves a mark. 0; CSSL_E_NO_MEMORY. In both cases @object may
 * hold values: schema_free(). */
int load_object(struct complaints *c, const struct schema_map *map, const struct node *root, const char *folder,
	void *object, struct marks *marks);

#endif
