/* text.c: UTF-8 by the C library's tables. */
#include "csslctl/text.h"

#include <limits.h>
#include <locale.h>
#include <string.h>
#include <wchar.h>

void text_locale(void)
{
	setlocale(LC_CTYPE, "C.UTF-8");
}

/* It turns the direction of the text behind it, or separates lines. Control characters have no width anyway. */
static int is_treacherous(wchar_t c)
{
	return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

unsigned text_clean(char *text)
{
	mbstate_t state = { 0 };
	unsigned columns = 0;

	while (*text != '\0') {
		wchar_t c;
		const size_t len = mbrtowc(&c, text, strlen(text), &state);
		const int width = len > MB_LEN_MAX || is_treacherous(c) ? -1 : wcwidth(c);
		if (width < 0) {
			/* A whole character above ASCII leaves bytes that are none: they come next. */
			*text++ = '?';
			columns++;
			memset(&state, 0, sizeof state);
			continue;
		}
		columns += (unsigned)width;
		text += len;
	}
	return columns;
}
