/* tcp.c: service tcp: it does not follow the bytes. It only remembers whether any passed. service.c answers from
 * that, for tcp and for every conversation that its own service gave up.
 */
#include "sslagent/service/service_ops.h"

static size_t tcp_from_client(struct service *s, enum service_until until, const uint8_t *data, size_t len)
{
	service_touch(s);
	return len;
}

static enum service_piece tcp_from_backend(struct service *s, const uint8_t *data, size_t len)
{
	service_touch(s);
	return SERVICE_RESPONSE;
}

const struct service_ops service_tcp = {
	.from_client = tcp_from_client,
	.from_backend = tcp_from_backend,
};
