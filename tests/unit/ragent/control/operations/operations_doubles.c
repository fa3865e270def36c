/* operations_doubles.c: answers of the control socket that are noted. */
#include "tests/unit/ragent/control/operations/operations_doubles.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ragent/control/http/control_exchange.h"
#include "tests/unit/ragent/dispatcher.h"

struct answers_noted got;
struct control_request *const request = (struct control_request *)&got;

void request_answer(struct control_request *r, unsigned status, json_t *body)
{
	ck_assert_ptr_eq(r, request);
	ck_assert_ptr_nonnull(body);
	json_decref(got.body);
	got.answers++;
	got.status = status;
	got.body = body;
	got.reason[0] = '\0';
}

void request_answer_text(struct control_request *r, const char *type, char *text)
{
	ck_assert_ptr_nonnull(text);
	free(got.text);
	got.answers++;
	got.status = MHD_HTTP_OK;
	got.text = text;
}

void request_fail(struct control_request *r, unsigned status, const char *reason, ...)
{
	va_list args;

	json_decref(got.body);
	got.body = NULL;
	got.answers++;
	got.status = status;
	va_start(args, reason);
	vsnprintf(got.reason, sizeof got.reason, reason, args);
	va_end(args);
}

void answered(void)
{
	wait_until(got.answers > 0);
	ck_assert_uint_eq(got.answers, 1);
	got.answers = 0;
}

void answered_with(unsigned status)
{
	answered();
	ck_assert_msg(got.status == status, "%u: %s", got.status, got.reason);
}

const json_t *told(const char *path)
{
	const json_t *at = got.body;
	char name[64];

	while (at && *path) {
		const size_t len = strcspn(path, ".");
		snprintf(name, sizeof name, "%.*s", (int)len, path);
		at = json_is_array(at) ? json_array_get(at, strtoul(name, NULL, 10)) : json_object_get(at, name);
		path += len + (path[len] != '\0');
	}
	return at;
}

uint64_t told_integer(const char *path)
{
	ck_assert_msg(json_is_integer(told(path)), "%s is no integer", path);
	return (uint64_t)json_integer_value(told(path));
}

const char *told_text(const char *path)
{
	const char *text = json_string_value(told(path));

	return text ? text : "";
}

size_t told_size(const char *path)
{
	const json_t *at = told(path);

	ck_assert_msg(json_is_array(at) || json_is_object(at), "%s is no list", path);
	return json_is_array(at) ? json_array_size(at) : json_object_size(at);
}

Cssl__LinkRequest *request_at(int agent, Cssl__LinkResponse *answer)
{
	struct fake_frame *f = frame_at(agent, FRAME_REQUEST);
	Cssl__LinkRequest *m = cssl__link_request__unpack(NULL, f->len, f->payload);

	ck_assert_ptr_nonnull(m);
	free(f);
	cssl__link_response__init(answer);
	answer->token = m->token;
	return m;
}
