/* operations_mail.c: connects to smtpproxy's status socket, which tells one JSON object and ends the connection. It is
 * another program's, so its bytes and its time are bounded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "net/memory/container_of.h"
#include "net/report/error_text.h"
#include "net/stream/stream.h"
#include "ragent/control/http/control_exchange.h"
#include "ragent/control/http/control_json.h"
#include "ragent/control/operations/operations.h"

#define STATUS_MAX 65536u
#define STATUS_MS  1000u

struct mail_look {
	struct stream stream; /* first */
	struct deadline deadline;
	struct control_request *request; /* NULL: answered */
	size_t len;
	char text[STATUS_MAX];
};

/* The object is another program's: nothing here relies on its members. @text NULL: there is no smtpproxy, or @error
 * tells why it gave none. */
static void mail_answer(struct control_request *r, const char *error, const char *text, size_t len)
{
	json_t *status = text ? json_loadb(text, len, 0, NULL) : NULL;

	if (text && !json_is_object(status)) {
		json_decref(status);
		status = NULL;
		error = "its answer is no JSON object";
	}
	if (!status)
		status = error ? json_pack("{s:o}", "error", text_json(error)) : json_null();
	request_answer(r, MHD_HTTP_OK, json_pack("{s:o}", "smtpproxy", status));
}

/* The look itself is freed later. */
static void mail_finish(struct mail_look *l, const char *error)
{
	if (l->request)
		mail_answer(l->request, error, error ? NULL : l->text, l->len);
	l->request = NULL;
	deadline_cancel(&l->deadline);
	stream_close(&l->stream);
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct mail_look *l = (struct mail_look *)s;

	if (len > sizeof l->text - l->len) {
		mail_finish(l, "its answer is too long");
		return len;
	}
	memcpy(l->text + l->len, data, len);
	l->len += len;
	return len;
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	mail_finish((struct mail_look *)s, end == STREAM_EOF ? NULL : error_text(uv_error));
}

static void on_connected(struct stream *s, int uv_error)
{
	if (uv_error)
		mail_finish((struct mail_look *)s, error_text(uv_error));
	else
		stream_read_start(s);
}

static void on_closed(struct stream *s)
{
	free(s); /* the first member */
}

static void on_deadline(struct deadline *d)
{
	mail_finish(container_of(d, struct mail_look, deadline), "no answer in time");
}

static const struct stream_ops stream_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_connected = on_connected,
	.on_closed = on_closed,
};

void operations_mail(struct operations *o, const struct control_input *in, struct control_request *r)
{
	const char *path = o->shared->self->mail_status;
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct mail_look *l = path ? calloc(1, sizeof *l) : NULL;

	if (!path) {
		mail_answer(r, NULL, NULL, 0);
		return;
	}
	if (!l) {
		request_fail(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
		return;
	}
	l->request = r;
	l->deadline.fn = on_deadline;
	snprintf(to.sun_path, sizeof to.sun_path, "%s", path); /* the schema has checked its length */
	const int result = stream_connect(&l->stream, o->main, &stream_ops, (const struct sockaddr *)&to, NULL);
	if (result < 0) {
		mail_answer(r, error_text(result), NULL, 0);
		free(l);
		return;
	}
	deadline_set(o->main, &l->deadline, STATUS_MS);
}
