/* source_target.c: an address is taken as it is. A name, and what has no port, is for getaddrinfo(). */
#include "bench/mail/source_target.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "net/address.h"
#include "proto/error.h"

#define SMTP_PORT "25"

static int look_up(const char *host, const char *port, int family, struct sockaddr_storage *out)
{
	const struct addrinfo wanted = { .ai_family = family, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (getaddrinfo(host, port, &wanted, &found))
		return CSSL_E_CONFIG;
	memcpy(out, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

/* As Postfix splits it: HOST or [HOST], and perhaps a port. NULL: it is neither. */
static const char *split(const char *text, char host[static NI_MAXHOST])
{
	const int bracketed = *text == '[';
	const char *begin = text + bracketed;
	const size_t len = strcspn(begin, bracketed ? "]" : ":");
	const char *rest = begin + len;

	if (len == 0 || len >= NI_MAXHOST || (bracketed && *rest++ != ']'))
		return NULL;
	snprintf(host, NI_MAXHOST, "%.*s", (int)len, begin);
	if (*rest == 0)
		return SMTP_PORT;
	return rest[0] == ':' && rest[1] && !strchr(rest + 1, ':') ? rest + 1 : NULL;
}

int source_target_find(const char *text, int family, struct sockaddr_storage *out)
{
	char host[NI_MAXHOST];

	if (strncmp(text, "inet:", 5) == 0)
		text += 5;
	if (address_parse(text, out) == 0)
		return family == AF_UNSPEC || out->ss_family == AF_UNIX || out->ss_family == family ? 0 : CSSL_E_CONFIG;
	const char *port = split(text, host);
	return port ? look_up(host, port, family, out) : CSSL_E_CONFIG;
}
