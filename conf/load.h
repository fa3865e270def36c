/* load.h: turns a file into a C object, by a schema. Each fault makes a line in @error, each scalar a mark. */
#pragma once

#include "conf/schema.h"

/* Parse @text of the file @name into a new object of @size bytes, described by @map, which begins with a struct
 * conf_file. Relative paths are relative to the folder of @name. 0 with *@out (a pointer to its pointer), or
 * CSSL_E_CONFIG or CSSL_E_NO_MEMORY. */
int load_text(const struct schema_map *map, size_t size, const char *text, size_t len, const char *name, void *out,
	char *error, size_t error_cap);
/* The same for what the file @path has. */
int load_file(const struct schema_map *map, size_t size, const char *path, void *out, char *error, size_t error_cap);
/* NULL is legal. */
void load_free(const struct schema_map *map, void *object);
