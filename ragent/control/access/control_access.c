/* control_access.c: each refusal is logged with its source, never with the offered token. */
#include "ragent/control/access/control_access.h"

#include <microhttpd.h> /* only for names: of headers, methods and statuses */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "net/report/log_pace.h"
#include "net/socket/address.h"

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
static const char *why_foreign(const struct access_claim *c)
{
	const char *site = c->fetch_site;

	if (strcmp(c->method, MHD_HTTP_METHOD_GET) == 0)
		return NULL;
	if ((site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0) ||
		(c->origin && !is_origin_of(c->origin, c->host)))
		return "a page of another site sent this";
	return is_json(c->content_type)
		       ? NULL
		       : "with a certificate alone this needs the header `Content-Type: application/json`";
}

/* --- refusals --- */

static enum access_verdict access_refuse(struct access_refusal *out, unsigned status, const char *reason, ...)
	__attribute__((format(printf, 3, 4)));
static enum access_verdict access_refuse(struct access_refusal *out, unsigned status, const char *reason, ...)
{
	va_list args;

	out->status = status;
	va_start(args, reason);
	vsnprintf(out->reason, sizeof out->reason, reason, args);
	va_end(args);
	return ACCESS_REFUSED;
}

static void access_log_refusal(const struct access_claim *c, const char *why)
{
	char text[ADDRESS_TEXT_MAX];

	log_paced(LOG_WARNING, NULL, "control access refused", "source=%s path=%s cause=%s",
		address_format(c->source, text), c->path, why);
}

static enum access_verdict access_refuse_unknown(
	struct control_access *a, const struct access_claim *c, uint64_t now_ms, struct access_refusal *out)
{
	if (c->authorization) { /* a request without a token is no guess */
		control_guard_failed(&a->guard, c->source, now_ms);
		access_log_refusal(c, "unknown token");
	}
	out->header_name = MHD_HTTP_HEADER_WWW_AUTHENTICATE;
	snprintf(out->header_value, sizeof out->header_value, "Bearer realm=\"cssl\"");
	return access_refuse(out, MHD_HTTP_UNAUTHORIZED, "%s",
		c->authorization ? "unknown token"
		: *c->common_name
			? "the name in this client certificate has no role, and no token was shown"
			: "a token is needed: the header `Authorization: Bearer TOKEN`, or a client certificate");
}

static enum access_verdict access_refuse_for_now(unsigned wait_s, struct access_refusal *out)
{
	out->header_name = MHD_HTTP_HEADER_RETRY_AFTER;
	snprintf(out->header_value, sizeof out->header_value, "%u", wait_s);
	return access_refuse(
		out, MHD_HTTP_TOO_MANY_REQUESTS, "too many unknown tokens from this address: wait %u s", wait_s);
}

static enum access_verdict access_refuse_role(const struct access_claim *c, const char *what, const char *name,
	enum control_role has, struct access_refusal *out)
{
	static const char *const roles[] = { "none", "read", "operate" };

	access_log_refusal(c, "role");
	return access_refuse(out, MHD_HTTP_FORBIDDEN, "the %s '%s' has the role %s, this needs %s", what, name,
		roles[has], roles[c->need]);
}

/* --- who may --- */

static enum access_verdict access_judge_token(
	struct control_access *a, const struct access_claim *c, uint64_t now_ms, struct access_refusal *out)
{
	const unsigned wait_s = control_guard_wait_s(&a->guard, c->source, now_ms);
	const char *name;

	/* A known token counts even while others behind the same address guess. Nobody guesses 256 random bits. */
	const enum control_role has = control_tokens_role(a->tokens, c->authorization, &name);
	if (has >= c->need)
		return ACCESS_PROVEN;
	if (has != CONTROL_ROLE_NONE)
		return access_refuse_role(c, "token", name, has, out);
	return wait_s ? access_refuse_for_now(wait_s, out) : access_refuse_unknown(a, c, now_ms, out);
}

enum access_verdict access_judge(
	struct control_access *a, const struct access_claim *c, uint64_t now_ms, struct access_refusal *out)
{
	const char *name, *foreign;

	*out = (struct access_refusal){ 0 };
	if (c->source->sa_family == AF_UNIX)
		return ACCESS_PROVEN;
	if (c->need == CONTROL_ROLE_NONE)
		return ACCESS_OPEN;
	foreign = why_foreign(c);
	const enum control_role has = control_tokens_certificate_role(a->tokens, c->common_name, &name);
	if (has >= c->need && !foreign)
		return ACCESS_PROVEN;
	if (has == CONTROL_ROLE_NONE || c->authorization) /* a token beside a certificate may allow more */
		return access_judge_token(a, c, now_ms, out);
	if (has < c->need)
		return access_refuse_role(c, "certificate of", name, has, out);
	access_log_refusal(c, foreign);
	return access_refuse(out, MHD_HTTP_FORBIDDEN, "%s", foreign);
}

const char *access_name(const struct control_access *a, const struct access_claim *c)
{
	const char *of_token, *of_certificate;

	if (c->source->sa_family == AF_UNIX)
		return "socket";
	const enum control_role token = control_tokens_role(a->tokens, c->authorization, &of_token);
	const enum control_role certificate =
		control_tokens_certificate_role(a->tokens, c->common_name, &of_certificate);
	if (certificate >= token && of_certificate)
		return of_certificate;
	return of_token ? of_token : "nobody";
}

int access_load(struct control_access *a, const char *path, char *error, size_t error_cap)
{
	struct control_tokens *tokens = control_tokens_load(path, a->names, error, error_cap);

	if (!tokens)
		return -1;
	free(a->tokens);
	a->tokens = tokens;
	return 0;
}
