/* control_access.c: each refusal is logged with its source, never with the offered token. */
#include "ragent/control/control_inside.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "net/address.h"
#include "net/admission.h"
#include "net/log_pace.h"

/* --- guessed tokens: a flat table, one look-up for each request of an operator, two for IPv6 --- */

/* A row says which addresses count together, and how often they may fail within a period. */
static const struct width {
	uint8_t address_len; /* of the addresses to which the row applies */
	uint8_t prefix_len;
	uint32_t failures_max;
} widths[] = {
	{ 4, 4, GUARD_FAILURES_MAX }, { 16, 8, GUARD_FAILURES_MAX }, { 16, 6, GUARD_FAILURES_MAX *ADMISSION_OF_SITE },
	{ 0, 0, GUARD_FAILURES_MAX }, /* all that have no address */
};
#define WIDTHS (sizeof widths / sizeof widths[0])

/* 1: @out has what @source counts as in this width. 0: the width is for others. */
static bool key_of(const struct sockaddr *source, const struct width *w, struct guarded_source *out)
{
	uint8_t bytes[16];

	if (address_bytes(source, bytes) != w->address_len)
		return false;
	*out = (struct guarded_source){ .len = w->prefix_len };
	memcpy(out->bytes, bytes, w->prefix_len);
	return true;
}

static const struct guarded_source *find(const struct control_guard *g, const struct guarded_source *key)
{
	for (unsigned i = 0; i < g->count; i++) {
		const struct guarded_source *s = &g->sources[i];
		if (s->len == key->len && memcmp(s->bytes, key->bytes, sizeof s->bytes) == 0)
			return s;
	}
	return NULL;
}

static struct guarded_source *oldest(struct control_guard *g)
{
	struct guarded_source *s = &g->sources[0];

	for (unsigned i = 1; i < g->count; i++)
		s = g->sources[i].since_ms < s->since_ms ? &g->sources[i] : s;
	return s;
}

static struct guarded_source *add(struct control_guard *g, const struct guarded_source *key)
{
	struct guarded_source *s = g->count < GUARD_SOURCES_MAX ? &g->sources[g->count++] : oldest(g);

	*s = *key;
	return s;
}

static unsigned wait_of(const struct guarded_source *s, uint32_t failures_max, uint64_t now_ms)
{
	if (!s || s->failures < failures_max || now_ms - s->since_ms >= GUARD_PERIOD_MS)
		return 0;
	return (unsigned)((s->since_ms + GUARD_PERIOD_MS - now_ms + 999) / 1000);
}

unsigned control_guard_wait_s(const struct control_guard *g, const struct sockaddr *source, uint64_t now_ms)
{
	struct guarded_source key;
	unsigned longest = 0;

	for (size_t i = 0; i < WIDTHS; i++) {
		if (!key_of(source, &widths[i], &key))
			continue;
		const unsigned wait = wait_of(find(g, &key), widths[i].failures_max, now_ms);
		longest = wait > longest ? wait : longest;
	}
	return longest;
}

static void failed(struct control_guard *g, const struct guarded_source *key, uint64_t now_ms)
{
	struct guarded_source *s = (struct guarded_source *)find(g, key);

	if (!s)
		s = add(g, key);
	if (s->failures == 0 || now_ms - s->since_ms >= GUARD_PERIOD_MS) {
		s->failures = 0;
		s->since_ms = now_ms;
	}
	s->failures++;
}

void control_guard_failed(struct control_guard *g, const struct sockaddr *source, uint64_t now_ms)
{
	struct guarded_source key;

	for (size_t i = 0; i < WIDTHS; i++)
		if (key_of(source, &widths[i], &key))
			failed(g, &key, now_ms);
}

/* --- who may --- */

static const char *header(const struct exchange *e, const char *name)
{
	return MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND, name);
}

/* RFC 6454: the scheme, and then what Host has. Certificates come by TLS only. */
static bool is_origin_of(const char *origin, const char *host)
{
	const size_t scheme = strlen("https://");

	return host && strncasecmp(origin, "https://", scheme) == 0 && strcasecmp(origin + scheme, host) == 0;
}

static bool is_json(const char *type)
{
	const size_t len = strlen("application/json");

	return type && strncasecmp(type, "application/json", len) == 0 && strchr(" ;", type[len]) != NULL;
}

/* A browser shows its user's certificate for pages of every site, but not a token. So without one, whatever changes
 * something must be what only tools and our own page send: the type makes a browser ask us first (Fetch, CORS
 * preflight), which we refuse, and the two headers say whose page it is. NULL, or what is wrong. */
static const char *why_foreign(const struct exchange *e)
{
	const char *site = header(e, "Sec-Fetch-Site"), *origin = header(e, MHD_HTTP_HEADER_ORIGIN);

	if (strcmp(e->method, MHD_HTTP_METHOD_GET) == 0)
		return NULL;
	if ((site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0) ||
		(origin && !is_origin_of(origin, header(e, MHD_HTTP_HEADER_HOST))))
		return "a page of another site sent this";
	return is_json(header(e, MHD_HTTP_HEADER_CONTENT_TYPE))
		       ? NULL
		       : "with a certificate alone this needs the header `Content-Type: application/json`";
}

static const char *authorization(const struct exchange *e)
{
	return header(e, MHD_HTTP_HEADER_AUTHORIZATION);
}

static void log_refusal(const struct exchange *e, const char *why)
{
	char text[ADDRESS_TEXT_MAX];
	const struct sockaddr *source = (const struct sockaddr *)&e->client->address;

	log_paced(LOG_WARNING, NULL, "control access refused", "source=%s path=%s cause=%s",
		address_format(source, text), e->path, why);
}

static int refuse_unknown(struct exchange *e)
{
	struct control_client *client = e->client;
	const bool offered = authorization(e) != NULL;

	if (offered) { /* a request without a token is no guess */
		control_guard_failed(&client->control->guard, (const struct sockaddr *)&client->address,
			worker_now_ms(client->control->worker));
		log_refusal(e, "unknown token");
	}
	exchange_header(e, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"cssl\"");
	return exchange_fail(e, MHD_HTTP_UNAUTHORIZED,
		offered ? "unknown token"
		: *client->common_name
			? "the name in this client certificate has no role, and no token was shown"
			: "a token is needed: the header `Authorization: Bearer TOKEN`, or a client certificate");
}

static int refuse_for_now(struct exchange *e, unsigned wait_s)
{
	char text[16];

	snprintf(text, sizeof text, "%u", wait_s);
	exchange_header(e, MHD_HTTP_HEADER_RETRY_AFTER, text);
	return exchange_fail(
		e, MHD_HTTP_TOO_MANY_REQUESTS, "too many unknown tokens from this address: wait %u s", wait_s);
}

static enum control_role certificate_role(const struct control_client *client, const char **name)
{
	return control_tokens_certificate_role(client->control->tokens, client->common_name, name);
}

static int refuse_role(struct exchange *e, const char *what, const char *name, enum control_role has)
{
	log_refusal(e, "role");
	return exchange_fail(e, MHD_HTTP_FORBIDDEN, "the %s '%s' has the role %s, this needs %s", what, name,
		control_role_name(has), control_role_name(routes_role(e->method, e->path)));
}

static int token_grants(struct exchange *e, enum control_role need)
{
	struct control_client *client = e->client;
	const unsigned wait_s = control_guard_wait_s(&client->control->guard, (const struct sockaddr *)&client->address,
		worker_now_ms(client->control->worker));
	const char *name;

	/* A known token counts even while others behind the same address guess. Nobody guesses 256 random bits. */
	const enum control_role has = control_tokens_role(client->control->tokens, authorization(e), &name);
	if (has >= need)
		return 1;
	if (has != CONTROL_ROLE_NONE)
		return refuse_role(e, "token", name, has);
	return wait_s ? refuse_for_now(e, wait_s) : refuse_unknown(e);
}

/* A certificate is enough; a token beside it may allow more. */
static int client_grants(struct exchange *e, enum control_role need)
{
	const char *name, *foreign = why_foreign(e);
	const enum control_role has = certificate_role(e->client, &name);

	if (has >= need && !foreign)
		return 1;
	if (has == CONTROL_ROLE_NONE || authorization(e))
		return token_grants(e, need);
	if (has < need)
		return refuse_role(e, "certificate of", name, has);
	log_refusal(e, foreign);
	return exchange_fail(e, MHD_HTTP_FORBIDDEN, "%s", foreign);
}

bool access_granted(struct exchange *e)
{
	struct control_client *client = e->client;
	const enum control_role need = routes_role(e->method, e->path);

	if (client->address.ss_family != AF_UNIX && need == CONTROL_ROLE_NONE)
		return true;
	if (client->address.ss_family != AF_UNIX && !client_grants(e, need))
		return false;
	newcomer_proven(&client->place, worker_now_ms(client->control->worker));
	return true;
}

const char *access_name(const struct exchange *e)
{
	const struct control_client *client = e->client;
	const char *of_token, *of_certificate;

	if (client->address.ss_family == AF_UNIX)
		return "socket";
	const enum control_role token = control_tokens_role(client->control->tokens, authorization(e), &of_token);
	if (certificate_role(client, &of_certificate) >= token && of_certificate)
		return of_certificate;
	return of_token ? of_token : "nobody";
}
