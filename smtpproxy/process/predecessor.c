/* predecessor.c: bytes between the channel and the ledger of the process before. */
#include "smtpproxy/process/predecessor.h"

#include "net/error_text.h"
#include "net/log.h"

static void send_message(void *ctx, const uint8_t *data, size_t len)
{
	struct predecessor *p = ctx;
	stream_write(&p->stream, data, len); /* a failure comes as on_end */
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct predecessor *p = (struct predecessor *)s;
	const int used = tx_before_read(p->before, data, len);
	if (used >= 0)
		return (size_t)used;
	log_event(LOG_ERROR, NULL, "process before sends no messages", NULL);
	stream_close(s);
	return len;
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	stream_close(s);
}

static void on_closed(struct stream *s)
{
	struct predecessor *p = (struct predecessor *)s;
	tx_before_close(p->before);
}

static const struct stream_ops stream_ops = { .on_data = on_data, .on_end = on_end, .on_closed = on_closed };

void predecessor_open(struct predecessor *p, struct worker *w, int fd, struct tx_before *before)
{
	int r;
	p->before = before;
	r = stream_open_fd(&p->stream, w, &stream_ops, fd);
	if (r < 0) {
		log_event(LOG_WARNING, NULL, "process before cannot be asked", "cause=%s", error_text(r));
		return;
	}
	tx_before_open(before, send_message, p);
	stream_read_start(&p->stream);
}

void predecessor_close(struct predecessor *p)
{
	if (p->before)
		stream_close(&p->stream);
}
