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

unsigned text_clean(char *text)
{
	mbstate_t state = { 0 };
	unsigned columns = 0;

	while (*text != '\0') {
		wchar_t c;
		const size_t len = mbrtowc(&c, text, strlen(text), &state);
		const int width = len > MB_LEN_MAX ? -1 : wcwidth(c);
		if (width < 0) {
			/* A whole control character above ASCII leaves bytes that are none: they come next. */
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
