/* page.h: an HTML page with 50 sub-resources, for browsers: style sheets, scripts and pictures. Its title becomes "50
 * of 50 loaded". */
#pragma once

#include <stddef.h>

#define PAGE_PARTS    50u
#define PAGE_MAX      8192u
#define PAGE_PART_MAX 256u

size_t page_write(char out[static PAGE_MAX]);

/* The sub-resource of that name ("7.css"). Its content type, or NULL. */
const char *page_part(const char *name, char out[static PAGE_PART_MAX], size_t *len);
