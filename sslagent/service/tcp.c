/* tcp.c: service tcp: it does not follow the bytes. It only remembers whether any passed. service.c answers from
 * that, for tcp and for every conversation that its own service gave up.
 */
#include "sslagent/service/service_ops.h"

static void from_client(struct service *s, const uint8_t *data, size_t len)
{
	service_touch(s);
}

static size_t from_client_to_end(struct service *s, const uint8_t *data, size_t len)
{
	service_touch(s);
	return len;
}

static enum service_piece from_backend(struct service *s, const uint8_t *data, size_t len)
{
	service_touch(s);
	return SERVICE_RESPONSE;
}

static enum service_end backend_ended(struct service *s)
{
	return s->passed == SERVICE_DOUBTED ? SERVICE_END_CUT : SERVICE_END_WHOLE;
}

const struct service_ops service_tcp = {
	.from_client = from_client,
	.from_client_to_end = from_client_to_end,
	.from_backend = from_backend,
	.backend_ended = backend_ended,
};
