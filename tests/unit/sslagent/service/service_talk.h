/* service_talk.h: a conversation with a service: what its client asks, and what its backend answers. */
#pragma once

#include <string.h>

#include "sslagent/service/service_ops.h"

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static struct service_blocks blocks;

static inline void ask(struct service *s, const char *text)
{
	service_from_client(s, (const uint8_t *)text, strlen(text));
}

static inline void answer(struct service *s, const char *text)
{
	service_from_backend(s, (const uint8_t *)text, strlen(text));
}

static inline struct service started(enum conf_service kind)
{
	struct service s;

	service_init(&s, kind, &blocks);
	return s;
}
