/* xtext.c: one byte at a time. */
#include "smtp/xtext.h"

#include "proto/error.h"

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int smtp_xtext_read(struct wire_writer *w, struct smtp_span xtext)
{
	if (!smtp_span_is_graphic(xtext, "="))
		return CSSL_E_RANGE;
	for (size_t i = 0; i < xtext.len; i++) {
		if (xtext.at[i] != '+') {
			wire_put_u8(w, (uint8_t)xtext.at[i]);
			continue;
		}
		int high = i + 2 < xtext.len ? hex_value(xtext.at[i + 1]) : -1;
		int low = i + 2 < xtext.len ? hex_value(xtext.at[i + 2]) : -1;
		if (high < 0 || low < 0)
			return CSSL_E_RANGE;
		wire_put_u8(w, (uint8_t)(high << 4 | low));
		i += 2;
	}
	return 0;
}
