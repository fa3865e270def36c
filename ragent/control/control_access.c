/* control_access.c: each refusal is logged with its source, never with what was offered. */
#include "ragent/control/control_access.h"

#include <stdio.h>
#include <string.h>

#include "net/address.h"
#include "net/log.h"
#include "ragent/control/control_inside.h"
#include "ragent/control/control_routes.h"

static const char *authorization(const struct exchange *e)
{
	return MHD_lookup_connection_value(exchange_connection(e), MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
}

static void log_refusal(const struct exchange *e, const char *why)
{
	char text[ADDRESS_TEXT_MAX];
	const struct sockaddr *source = (const struct sockaddr *)&exchange_client(e)->address;

	log_event(LOG_WARNING, NULL, "control access refused", "source=%s path=%s cause=%s",
		address_format(source, text), exchange_path(e), why);
}

static void refuse_unknown(struct exchange *e)
{
	struct control_client *client = exchange_client(e);
	const int offered = authorization(e) != NULL;

	if (offered) { /* who offers nothing guesses nothing */
		control_guard_failed(&client->control->guard, (const struct sockaddr *)&client->address,
			worker_now_ms(client->control->worker));
		log_refusal(e, "unknown token");
	}
	exchange_header(e, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"cssl\"");
	exchange_fail(e, MHD_HTTP_UNAUTHORIZED,
		offered ? "unknown token" : "a token is needed: the header `Authorization: Bearer TOKEN`");
}

static void refuse_for_now(struct exchange *e, unsigned wait_s)
{
	char text[16];

	snprintf(text, sizeof text, "%u", wait_s);
	exchange_header(e, MHD_HTTP_HEADER_RETRY_AFTER, text);
	exchange_fail(e, MHD_HTTP_TOO_MANY_REQUESTS, "too many unknown tokens from this address: wait %u s", wait_s);
}

int access_granted(struct exchange *e)
{
	struct control_client *client = exchange_client(e);
	const enum control_role need = routes_role(exchange_method(e), exchange_path(e));
	const char *name;

	if (client->address.ss_family == AF_UNIX)
		control_client_proven(client);
	if (client->address.ss_family == AF_UNIX || need == CONTROL_ROLE_NONE)
		return 1;
	const unsigned wait_s = control_guard_wait_s(&client->control->guard, (const struct sockaddr *)&client->address,
		worker_now_ms(client->control->worker));
	if (wait_s) {
		refuse_for_now(e, wait_s);
		return 0;
	}
	const enum control_role has = control_tokens_role(client->control->tokens, authorization(e), &name);
	if (has >= need) {
		control_client_proven(client);
		return 1;
	}
	if (has == CONTROL_ROLE_NONE) {
		refuse_unknown(e);
		return 0;
	}
	log_refusal(e, "role");
	exchange_fail(e, MHD_HTTP_FORBIDDEN, "the token '%s' has the role %s, this needs %s", name,
		control_role_name(has), control_role_name(need));
	return 0;
}

const char *access_name(const struct exchange *e)
{
	const struct control_client *client = exchange_client(e);
	const char *name = NULL;

	if (client->address.ss_family == AF_UNIX)
		return "socket";
	control_tokens_role(client->control->tokens, authorization(e), &name);
	return name ? name : "nobody";
}
