/* listing.h: lists that the API gives a page at a time, up to --limit of them as one. */
#ifndef CSSL_CSSLCTL_LISTING_H
#define CSSL_CSSLCTL_LISTING_H

#include "csslctl/ask.h"

/* Of the query; without a value it is left out. An array of them ends with a NULL name. */
struct listing_filter {
	const char *name, *value;
};

/* The list @list of @fixed_path: with --json as one object of the API's form, else by @show and a line that says
 * whether there is more. */
enum exit_code listing_show(struct invocation *in, const char *fixed_path, const char *list,
	const struct listing_filter *filters, show_answer *show);

#endif
