/* service_traits.c: the rows of the services as values. */
#include "conf/service_traits.h"

#include <stddef.h>

const struct service_traits service_traits[CONF_SERVICE_COUNT] = {
#define X(id, name, rest, loss, first, ends, following, start, sharing, silence, haste, help)                          \
	[CONF_##id] = { name, rest, loss, first, ends, following, start, sharing, silence, haste },
	CONF_SERVICES(X)
#undef X
};

const char *service_protocol(enum conf_service service)
{
	static const char *const protocols[CONF_SERVICE_COUNT] = {
#define X(id, protocol) [CONF_##id] = protocol,
		CONF_SERVICE_PROTOCOLS(X)
#undef X
	};

	return protocols[service];
}

const char *const *service_alpn(enum conf_service service)
{
	static const char *const protocols[CONF_SERVICE_COUNT][3] = {
#define X(id, ...) [CONF_##id] = { __VA_ARGS__, NULL },
		CONF_SERVICE_ALPN(X)
#undef X
	};

	return protocols[service];
}
