/* owner.h: an owner of a stream that writes its calls down. */
#pragma once

#include "fixture.h"
#include "net/stream/stream.h"

enum owner_event { OWNER_DATA, OWNER_END, OWNER_WRITTEN, OWNER_CONNECTED, OWNER_FLUSH, OWNER_FD, OWNER_EVENTS };

struct owner {
	struct stream s; /* first */
	uint8_t *got;    /* bytes that on_data used */
	size_t got_len;
	size_t use_max;  /* per call; what the owner leaves; set by owner_init() to all */
	size_t data_len; /* of the last on_data */
	size_t data_max; /* of all */
	unsigned told[OWNER_EVENTS];
	unsigned closed;
	enum stream_end end;
	int end_error;
	int connect_error;
	size_t written;
	int fd;
	size_t got_len_at_fd;
	void (*react)(struct owner *o, enum owner_event event); /* called last in every callback but on_closed */
};

extern const struct stream_ops owner_ops;

void owner_init(struct owner *o);
/* Open on fds[0] of a new pair and start reading; the other side's descriptor. */
int owner_open(struct owner *o, enum transport over);
/* Close, wait for on_closed, free the received bytes. */
void owner_finish(struct owner *o);
/* A pattern that shows every shift. */
void pattern(uint8_t *out, size_t len, size_t from);
void assert_pattern(const uint8_t *data, size_t len, size_t from);
