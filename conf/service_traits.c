/* service_traits.c: the rows of the services as values. */
#include "conf/service_traits.h"

const struct service_traits service_traits[CONF_SERVICE_COUNT] = {
#define X(id, name, rest, loss, first, ends, following, start, help)                                                   \
	[CONF_##id] = { name, rest, loss, first, ends, following, start },
	CONF_SERVICES(X)
#undef X
};
