/* api.c: HTTP by libcurl. It puts each error into words, with a remedy. */
#include "csslctl/api.h"

#include <curl/curl.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "csslctl/text.h"

#define CONNECT_MS  5000L
#define ANSWER_MS   30000L /* RAgent itself gives up earlier, and says so */
#define BODY_MAX    (64u * 1024u * 1024u)
#define TOKEN_MAX   256u
#define SOCKET_HOST "http://ragent"
#define AUTHORIZE   "Authorization: Bearer "

/* --- paths: all but unreserved characters are encoded (RFC 3986 2.3) --- */

static void path_put(struct path *p, const char *bytes, size_t len)
{
	if (p->len + len >= sizeof p->text) {
		p->whole = PATH_CUT;
		return;
	}
	memcpy(p->text + p->len, bytes, len);
	p->len += len;
	p->text[p->len] = '\0';
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("-._~", c) != NULL);
}

static void put_encoded(struct path *p, const char *text)
{
	static const char digits[] = "0123456789ABCDEF";

	for (; *text != '\0'; text++) {
		const unsigned char byte = (unsigned char)*text;
		const char encoded[] = { '%', digits[byte >> 4], digits[byte & 15] };
		if (is_unreserved(*text))
			path_put(p, text, 1);
		else
			path_put(p, encoded, sizeof encoded);
	}
}

void path_start(struct path *p, const char *fixed)
{
	*p = (struct path){ .len = 0 };
	path_put(p, fixed, strlen(fixed));
}

void path_segment(struct path *p, const char *segment)
{
	path_put(p, "/", 1);
	put_encoded(p, segment);
}

void path_query(struct path *p, const char *name, const char *value)
{
	if (!value)
		return;
	path_put(p, p->query == QUERY_NONE ? "?" : "&", 1);
	p->query = QUERY_BEGUN;
	path_put(p, name, strlen(name));
	path_put(p, "=", 1);
	put_encoded(p, value);
}

/* --- the connection --- */

struct api {
	CURL *curl;
	struct curl_slist *headers;
	char *socket; /* NULL: use @base only */
	char *base;
	char fault[CURL_ERROR_SIZE];
};

struct body {
	char *text;
	size_t len;
};

static size_t on_bytes(char *bytes, size_t size, size_t count, void *ctx)
{
	struct body *b = ctx;

	if (b->len + count > BODY_MAX)
		return 0;
	b->text = must(realloc(b->text, b->len + count + 1));
	memcpy(b->text + b->len, bytes, count);
	b->len += count;
	return count;
}

static bool host_is_here(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0 || strcasecmp(host, "localhost") == 0;
}

/* A token in clear stays on this host. */
static bool url_is_safe(const char *url, const char *token_file, char *error)
{
	char *scheme = NULL, *host = NULL;
	CURLU *parts = must(curl_url());
	bool safe = false;

	if (curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
		curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
		curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
		(strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0))
		snprintf(error, API_ERROR_MAX, "--api '%.200s' is no http or https URL", url);
	else if (token_file && strcmp(scheme, "http") == 0 && !host_is_here(host))
		snprintf(error, API_ERROR_MAX, "--api %.200s would carry the token in clear: say https", url);
	else
		safe = true;
	curl_free(scheme);
	curl_free(host);
	curl_url_cleanup(parts);
	return safe;
}

static int token_read(const char *path, char token[static TOKEN_MAX], char *error)
{
	FILE *in = fopen(path, "re");
	struct stat st;
	int result = -1;

	if (!in || fstat(fileno(in), &st) < 0)
		snprintf(error, API_ERROR_MAX, "--token-file %.200s: %s", path, strerror(errno));
	else if (st.st_mode & (S_IRWXG | S_IRWXO))
		snprintf(error, API_ERROR_MAX, "--token-file %.200s can be read by others: chmod 600 it", path);
	else if (!fgets(token, TOKEN_MAX, in) || token[strcspn(token, "\r\n")] == '\0' || strcspn(token, "\r\n") == 0)
		snprintf(error, API_ERROR_MAX, "--token-file %.200s: expected one line with a token", path);
	else
		result = 0;
	if (result == 0)
		token[strcspn(token, "\r\n")] = '\0';
	if (in)
		fclose(in);
	return result;
}

static int headers_make(struct api *a, const struct place *p, char *error)
{
	char line[sizeof AUTHORIZE + TOKEN_MAX] = AUTHORIZE;
	int result = 0;

	/* Without this libcurl waits for a "100 Continue" before larger bodies. */
	a->headers = must(curl_slist_append(NULL, "Expect:"));
	a->headers = must(curl_slist_append(a->headers, "Content-Type: application/json"));
	if (p->token_file)
		result = token_read(p->token_file, line + strlen(AUTHORIZE), error);
	if (p->token_file && result == 0)
		a->headers = must(curl_slist_append(a->headers, line));
	sodium_memzero(line, sizeof line);
	return result;
}

static void settings_make(struct api *a, const struct place *p)
{
	CURL *c = a->curl;

	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, ANSWER_MS);
	curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, a->fault);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, a->headers);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "csslctl");
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_bytes);
	/* Use no proxy: a proxy cannot reach the socket or a local address, and must not see the token. */
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	if (p->socket)
		curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, p->socket);
	if (p->ca_file)
		curl_easy_setopt(c, CURLOPT_CAINFO, p->ca_file);
	if (p->certificate_file) {
		curl_easy_setopt(c, CURLOPT_SSLCERT, p->certificate_file);
		curl_easy_setopt(c, CURLOPT_SSLKEY, p->key_file);
	}
}

void api_wait_at_most(struct api *a, long ms)
{
	curl_easy_setopt(a->curl, CURLOPT_TIMEOUT_MS, ms < ANSWER_MS ? ms : ANSWER_MS);
}

struct api *api_create(const struct place *p, char error[static API_ERROR_MAX])
{
	struct api *a = must(calloc(1, sizeof *a));

	if ((p->url && !url_is_safe(p->url, p->token_file, error)) || headers_make(a, p, error) < 0) {
		api_destroy(a);
		return NULL;
	}
	a->curl = must(curl_easy_init());
	a->socket = p->socket ? text_format("%s", p->socket) : NULL;
	a->base = text_format("%s", p->url ? p->url : SOCKET_HOST);
	while (a->base[0] != '\0' && a->base[strlen(a->base) - 1] == '/')
		a->base[strlen(a->base) - 1] = '\0';
	settings_make(a, p);
	return a;
}

void api_destroy(struct api *a)
{
	if (!a)
		return;
	if (a->curl)
		curl_easy_cleanup(a->curl);
	for (struct curl_slist *h = a->headers; h; h = h->next)
		sodium_memzero(h->data, strlen(h->data));
	curl_slist_free_all(a->headers);
	free(a->socket);
	free(a->base);
	free(a);
}

/* --- why no answer came --- */

static const char *connect_remedy(const struct api *a, long system_error)
{
	if (!a->socket)
		return "is RAgent up, and does its cluster file say `control` with that address?";
	switch (system_error) {
	case EACCES: return "only root and RAgent's own user may use the socket";
	case ENOENT: return "nobody made that socket: is RAgent (or smtpproxy) up, and does its file say `control`?";
	case ECONNREFUSED: return "nobody serves that socket any more: is RAgent (or smtpproxy) up?";
	default: return NULL;
	}
}

static void no_answer(const struct api *a, CURLcode code, struct answer *out)
{
	long system_error = 0;

	curl_easy_getinfo(a->curl, CURLINFO_OS_ERRNO, &system_error);
	out->status = 0;
	if (code == CURLE_COULDNT_CONNECT && a->socket)
		snprintf(out->error, sizeof out->error, "%.300s: %s", a->socket,
			system_error ? strerror((int)system_error) : "cannot connect");
	else
		snprintf(out->error, sizeof out->error, "%.200s: %.250s", a->socket ? a->socket : a->base,
			a->fault[0] ? a->fault : curl_easy_strerror(code));
	if (code == CURLE_COULDNT_CONNECT)
		out->remedy = connect_remedy(a, system_error);
	else if (code == CURLE_PEER_FAILED_VERIFICATION)
		out->remedy = "name the CA that signed its certificate: --cacert FILE";
	else if (code == CURLE_OPERATION_TIMEDOUT)
		out->remedy = "RAgent hangs or is cut off";
}

/* The remedy for a refusal. */
static const char *status_remedy(long status)
{
	switch (status) {
	case 401: return "show a token: --token-file FILE";
	case 403: return "this needs a token with the role `operate`";
	case 404:
	case 405: return "`csslctl status` shows whether RAgent is of another version";
	case 503: return "`csslctl agents` shows who is ready";
	default: return NULL;
	}
}

static void api_answered(struct answer *out, const struct body *text)
{
	const char *reason;

	out->body = text->text ? json_loadb(text->text, text->len, 0, NULL) : NULL;
	if (out->status >= 200 && out->status < 300 && out->body)
		return;
	reason = json_string_value(json_object_get(out->body, "error"));
	if (out->body && !reason)
		reason = "no reason given";
	out->remedy = out->body ? status_remedy(out->status) : "what answers there is no RAgent";
	snprintf(out->error, sizeof out->error, "%.400s (%ld)", reason ? reason : "the answer is no JSON", out->status);
	if (!out->body)
		out->status = 0;
}

void api_ask(struct api *a, const char *method, const struct path *path, json_t *body, struct answer *out)
{
	char *url = text_format("%s%s", a->base, path->text);
	char *text = body ? must(json_dumps(body, JSON_COMPACT)) : NULL;
	struct body in = { .len = 0 };

	*out = (struct answer){ .status = 0 };
	a->fault[0] = '\0';
	curl_easy_setopt(a->curl, CURLOPT_URL, url);
	curl_easy_setopt(a->curl, CURLOPT_WRITEDATA, &in);
	if (text)
		curl_easy_setopt(a->curl, CURLOPT_COPYPOSTFIELDS, text);
	else
		curl_easy_setopt(a->curl, CURLOPT_HTTPGET, 1L);
	curl_easy_setopt(a->curl, CURLOPT_CUSTOMREQUEST, method);
	const CURLcode code = curl_easy_perform(a->curl);
	if (code != CURLE_OK) {
		no_answer(a, code, out);
	} else {
		curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &out->status);
		api_answered(out, &in);
	}
	json_decref(body);
	free(text);
	free(url);
	free(in.text);
}

void answer_clear(struct answer *a)
{
	json_decref(a->body);
	*a = (struct answer){ .status = 0 };
}
