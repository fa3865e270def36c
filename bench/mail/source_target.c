/* source_target.c: an address is taken as it is. Anything else with a port is a name for getaddrinfo(). */
#include "bench/mail/source_target.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "net/address.h"
#include "proto/error.h"

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

int source_target_find(const char *text, int family, struct sockaddr_storage *out)
{
	char host[NI_MAXHOST];

	if (strncmp(text, "inet:", 5) == 0)
		text += 5;
	if (address_parse(text, out) == 0)
		return family == AF_UNSPEC || out->ss_family == family ? 0 : CSSL_E_CONFIG;
	const char *colon = strrchr(text, ':');
	if (!colon || colon == text || strchr(text, ':') != colon || (size_t)(colon - text) >= sizeof host)
		return CSSL_E_CONFIG;
	snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
	return look_up(host, colon + 1, family, out);
}
