/* tx_name.c: id, slash, number. */
#include "smtp/tx_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "smtp/reply_write.h"

static int id_is_good(const char *id)
{
	size_t len = strspn(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
	return len > 0 && id[len] == 0;
}

int smtp_tx_name_parse(struct smtp_span value, struct smtp_tx_name *out)
{
	struct smtp_span number = value, id = smtp_span_until(&number, '/');
	if (smtp_span_copy(id, out->id, sizeof out->id) < 0 || strlen(out->id) != id.len || !id_is_good(out->id))
		return CSSL_E_RANGE;
	if (number.len == 0 || number.at[0] == '0') /* one name has one form */
		return CSSL_E_RANGE;
	return smtp_span_number(number, UINT64_MAX, &out->number);
}

void smtp_tx_name_write(struct wire_writer *w, const struct smtp_tx_name *name)
{
	char text[SMTP_TX_ID_MAX + 24];
	int len = snprintf(text, sizeof text, "%.*s/%" PRIu64, (int)SMTP_TX_ID_MAX, name->id, name->number);
	wire_put_bytes(w, text, (size_t)len);
}

void smtp_tx_name_add(struct wire_writer *w, struct smtp_span text, const struct smtp_tx_name *name)
{
	smtp_text_write(w, smtp_span_trim(text));
	smtp_word_write(w, " XCSSLTX=");
	smtp_tx_name_write(w, name);
	smtp_word_write(w, "\r\n");
}

void smtp_tx_name_remove(struct wire_writer *w, struct smtp_span line, struct smtp_span value)
{
	const char *behind = value.at + value.len;
	const char *before = value.at - strlen(" XCSSLTX=");
	wire_put_bytes(w, line.at, (size_t)(before - line.at));
	wire_put_bytes(w, behind, (size_t)(line.at + line.len - behind));
}
