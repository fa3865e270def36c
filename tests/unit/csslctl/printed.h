/* printed.h: a screen whose text a test looks at. */
#pragma once

#include <check.h>
#include <stdlib.h>

#include "csslctl/screen.h"

struct printed {
	struct screen screen;
	char *text;
	size_t len;
};

static inline void printed_begin(struct printed *p)
{
	*p = (struct printed){ .text = NULL };
	p->screen.out = open_memstream(&p->text, &p->len);
	ck_assert_ptr_nonnull(p->screen.out);
}

/* Returns the output; free it. */
static inline char *printed_end(struct printed *p)
{
	fclose(p->screen.out);
	return p->text;
}
