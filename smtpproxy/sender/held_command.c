/* held_command.c: see held_command.h. */
#include "smtpproxy/sender/held_command.h"

#include <stdlib.h>
#include <string.h>

int held_command_keep(struct held_command *h, const struct smtp_client_event *e)
{
	h->text = malloc(e->wire.len);
	if (!h->text)
		return -1;
	memcpy(h->text, e->wire.at, e->wire.len);
	h->len = (uint16_t)e->wire.len;
	return 0;
}

struct smtp_client_event held_command_event(const struct held_command *h, unsigned parse)
{
	struct smtp_client_event e = { .kind = SMTP_CLIENT_COMMAND, .wire = { h->text, h->len } };
	const struct smtp_span text = { h->text, h->len - strlen("\r\n") };
	smtp_command_parse(text, parse, &e.command);
	return e;
}

void held_command_free(struct held_command *h)
{
	free(h->text);
	*h = (struct held_command){ 0 };
}
