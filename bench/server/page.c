/* page.c: a table has the kinds of the 50 parts. */
#include "bench/server/page.h"

#include <stdio.h>
#include <string.h>

static const struct part_kind {
	unsigned first, end;
	const char *suffix, *content_type;
	const char *element; /* printf format; gets the part's number */
	const char *content; /* the same, three times */
} kinds[] = {
	{ 0, 10, ".css", "text/css", "<link rel=stylesheet href=/page/%u.css onload=loaded()>\n",
		"#part%u { color: hsl(%u, 60%%, 40%%) } /* %u */\n" },
	{ 10, 20, ".js", "text/javascript", "<script src=/page/%u.js onload=loaded()></script>\n",
		"ran.push(%u); // %u %u\n" },
	{ 20, PAGE_PARTS, ".svg", "image/svg+xml", "<img src=/page/%u.svg alt='' onload=loaded()>\n",
		"<svg xmlns='http://www.w3.org/2000/svg' id='p%u' width='32' height='32'>"
		"<circle cx='16' cy='16' r='14' fill='hsl(%u,60%%,60%%)'/><text x='8' y='20'>%u</text></svg>\n" },
};

#define KINDS (sizeof kinds / sizeof kinds[0])

static const char opening[] = "<!doctype html>\n<html lang=en><meta charset=utf-8><title>0 of 50 loaded</title>\n"
			      "<script>let count = 0; const ran = [];\n"
			      "function loaded() { document.title = ++count + ' of 50 loaded' }</script>\n"
			      "<h1>A page with 50 parts</h1>\n";

size_t page_write(char out[static PAGE_MAX])
{
	size_t len = sizeof opening - 1;
	memcpy(out, opening, len);
	for (size_t k = 0; k < KINDS; k++) {
		for (unsigned i = kinds[k].first; i < kinds[k].end; i++)
			len += (size_t)snprintf(out + len, PAGE_MAX - len, kinds[k].element, i);
	}
	return len;
}

const char *page_part(const char *name, char out[static PAGE_PART_MAX], size_t *len)
{
	unsigned number;
	int digits = 0;
	if (sscanf(name, "%2u%n", &number, &digits) != 1)
		return NULL;
	for (size_t k = 0; k < KINDS; k++) {
		if (number < kinds[k].first || number >= kinds[k].end || strcmp(name + digits, kinds[k].suffix) != 0)
			continue;
		*len = (size_t)snprintf(out, PAGE_PART_MAX, kinds[k].content, number, number * 7, number);
		return kinds[k].content_type;
	}
	return NULL;
}
