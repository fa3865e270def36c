/* listing.h: fetches a list that the API gives in pages, up to --limit rows. */
#ifndef CSSL_CSSLCTL_LISTING_H
#define CSSL_CSSLCTL_LISTING_H

#include "csslctl/ask.h"

/* A parameter of the query; left out if @value is NULL. A NULL name ends an array. */
struct listing_filter {
	const char *name, *value;
};

/* Show the list @list of @fixed_path: with --json as one object in the API's form, else by @show and a line that tells
 * whether there is more. */
enum exit_code listing_show(struct invocation *in, const char *fixed_path, const char *list,
	const struct listing_filter *filters, show_answer *show);

#endif
