/* manual.h: a table of keys for people. */
#ifndef CSSL_CONF_MANUAL_H
#define CSSL_CONF_MANUAL_H

#include <stdio.h>

#include "conf/schema.h"

/* Every key of @map: what it takes, its default, and what it is for. */
void manual_print_keys(const struct schema_map *map, FILE *out);

#endif
