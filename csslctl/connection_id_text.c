/* connection_id_text.c: ids are numbers of 32 hexadecimal digits here. */
#include "csslctl/connection_id_text.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

int id_is_beginning(const char *text)
{
	const size_t len = strlen(text);
	return len >= ID_DIGITS_MIN && len <= ID_DIGITS && strspn(text, digits) == len;
}

/* Fill the beginning up with zeros, and subtract one. */
int id_before(const char *beginning, char out[static ID_DIGITS + 1])
{
	int i = ID_DIGITS - 1;

	memset(out, '0', ID_DIGITS);
	memcpy(out, beginning, strlen(beginning));
	out[ID_DIGITS] = '\0';
	while (i >= 0 && out[i] == '0')
		out[i--] = 'f';
	if (i < 0)
		return 1;
	out[i] = strchr(digits, out[i])[-1];
	return 0;
}
