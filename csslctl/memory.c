/* memory.c: the end of a process without memory. */
#include "csslctl/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "csslctl/command.h"

void *must(void *p)
{
	if (p)
		return p;
	fputs("csslctl: out of memory\n", stderr);
	exit(EXIT_REFUSED);
}

char *text_format(const char *format, ...)
{
	char *out;
	va_list arguments;

	va_start(arguments, format);
	const int len = vasprintf(&out, format, arguments);
	va_end(arguments);
	return must(len < 0 ? NULL : out);
}
