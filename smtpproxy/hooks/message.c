/* message.c: the message stays where it came to; only changed fields have memory of their own. */
#include "smtpproxy/hooks/message.h"

#include <stdlib.h>
#include <string.h>

#include "net/memory/array.h"
#include "proto/error.h"

#define ROOM_FIRST 16384u
#define END_LEN    3u                 /* ".\r\n" */
#define MBOX_NAME  "X-Mailbox-Line: " /* as Postfix calls it */

void message_free(struct message *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->fields[i].own);
	free(m->fields);
	free(m->at);
	*m = (struct message){ 0 };
}

size_t message_cap_with(const struct message *m, size_t len, size_t most)
{
	size_t cap = m->cap ? m->cap : ROOM_FIRST;

	while (cap < m->len + len)
		cap *= 2;
	return cap < most ? cap : most;
}

int message_add(struct message *m, const void *data, size_t len, size_t most)
{
	const size_t cap = message_cap_with(m, len, most);
	char *at;

	if (len > most || m->len > most - len)
		return CSSL_E_TOO_LONG;
	at = cap > m->cap ? realloc(m->at, cap) : m->at;
	if (!at)
		return CSSL_E_NO_MEMORY;
	memcpy(at + m->len, data, len);
	m->at = at;
	m->cap = cap;
	m->len += len;
	return 0;
}

/* Reading */

static struct smtp_span message_take_line(struct smtp_span *rest)
{
	const char *lf = rest->len ? memchr(rest->at, '\n', rest->len) : NULL;
	struct smtp_span line = { rest->at, lf ? (size_t)(lf - rest->at) + 1 : rest->len };

	*rest = (struct smtp_span){ rest->at + line.len, rest->len - line.len };
	return line;
}

static bool message_is_name(struct smtp_span name)
{
	return name.len > 0 && smtp_span_is_graphic(name, ":");
}

static bool is_folded(struct smtp_span line)
{
	return line.len > 0 && (line.at[0] == ' ' || line.at[0] == '\t');
}

static bool begins_field(struct smtp_span line)
{
	const char *colon = line.len ? memchr(line.at, ':', line.len) : NULL;
	struct smtp_span name = { line.at, colon ? (size_t)(colon - line.at) : 0 };

	return message_is_name(smtp_span_trim(name)) && !is_folded(line);
}

/* Servers read a line that ends with LF alone, too. */
static bool is_empty(struct smtp_span line)
{
	size_t at = 0;

	while (at < line.len && (line.at[at] == '\r' || line.at[at] == '\n'))
		at++;
	return at == line.len;
}

size_t message_mbox_line(struct smtp_span text, char out[static MESSAGE_MBOX_NAME])
{
	struct smtp_span rest = text;

	if (begins_field(message_take_line(&rest)))
		return 0;
	while (text.len > 0 && text.at[0] == '>')
		text = (struct smtp_span){ text.at + 1, text.len - 1 };
	memcpy(out, MBOX_NAME, MESSAGE_MBOX_NAME);
	return text.len > 5 && memcmp(text.at, "From ", 5) == 0 ? MESSAGE_MBOX_NAME : 0;
}

/* Room for one more at @at. */
static struct message_field *open_place(struct message *m, size_t at)
{
	struct message_field *fields;

	if (array_make_room(&m->fields, &m->field_cap, m->count, sizeof *m->fields))
		return NULL;
	fields = m->fields;
	memmove(&fields[at + 1], &fields[at], (m->count - at) * sizeof *fields);
	m->count++;
	fields[at] = (struct message_field){ 0 };
	return &fields[at];
}

/* The first field, with all its lines: it gets a name, in memory of its own, if it is an mbox line. */
static int name_first(struct message_field *f)
{
	char name[MESSAGE_MBOX_NAME];
	const struct smtp_span text = f->text;
	const size_t len = message_mbox_line(text, name);

	if (len == 0)
		return 0;
	f->own = malloc(len + text.len);
	if (!f->own)
		return CSSL_E_NO_MEMORY;
	memcpy(f->own, name, len);
	memcpy(f->own + len, text.at, text.len);
	f->text = (struct smtp_span){ f->own, len + text.len };
	return 0;
}

static int read_fields(struct message *m)
{
	char name[MESSAGE_MBOX_NAME];
	struct smtp_dots dots = { 0 };
	struct smtp_span rest, line;

	m->len = smtp_dots_remove(&dots, m->at, m->len - END_LEN, m->at);
	rest = (struct smtp_span){ m->at, m->len };
	for (struct smtp_span before = rest; rest.len > 0; before = rest) {
		line = message_take_line(&rest);
		if (m->count > 0 && is_folded(line)) {
			m->fields[m->count - 1].text.len += line.len;
		} else if (begins_field(line) || (m->count == 0 && message_mbox_line(line, name))) {
			struct message_field *f = m->count < MESSAGE_FIELDS_MAX ? open_place(m, m->count) : NULL;

			if (!f)
				return m->count < MESSAGE_FIELDS_MAX ? CSSL_E_NO_MEMORY : CSSL_E_TOO_LONG;
			f->text = line;
			/* A line that is no field ends the header, also without an empty line before it. */
		} else {
			m->gap = is_empty(line) ? line : (struct smtp_span){ 0 };
			m->body = is_empty(line) ? rest : before;
			return 0;
		}
	}
	return 0;
}

int message_read(struct message *m)
{
	const int r = read_fields(m);

	return r < 0 || m->count == 0 ? r : name_first(&m->fields[0]);
}

void message_split(const struct message_field *f, struct smtp_span *name, struct smtp_span *value)
{
	struct smtp_span rest = f->text;

	*name = smtp_span_trim(smtp_span_until(&rest, ':'));
	while (rest.len > 0 && (rest.at[rest.len - 1] == '\n' || rest.at[rest.len - 1] == '\r'))
		rest.len--;
	*value = rest;
}

/* Changes */

/* Each line of it has something, and belongs to the field. */
static bool is_value(struct smtp_span value)
{
	unsigned lines = 0;

	if (value.len > 0 && value.at[value.len - 1] == '\n')
		return false;
	while (value.len > 0) {
		struct smtp_span line = smtp_span_until(&value, '\n');

		if (line.len > 0 && line.at[line.len - 1] == '\r')
			line.len--;
		if (memchr(line.at, '\r', line.len) || memchr(line.at, '\0', line.len))
			return false;
		/* A line that is not folded would be a field of its own, and an empty one would end the header. */
		if (lines++ > 0 && (!is_folded(line) || smtp_span_trim(line).len == 0))
			return false;
	}
	return true;
}

static size_t write_value(char *out, struct smtp_span value)
{
	size_t len = 0;

	for (size_t i = 0; i < value.len; i++) {
		if (value.at[i] == '\r')
			continue;
		if (value.at[i] == '\n')
			out[len++] = '\r';
		out[len++] = value.at[i];
	}
	return len;
}

/* Memory for the text of a field. */
static int write_field(struct message_field *f, struct smtp_span name, struct smtp_span value)
{
	char *own = malloc(name.len + 1 + 2 * value.len + 2);
	size_t len = name.len;

	if (!own)
		return CSSL_E_NO_MEMORY;
	memcpy(own, name.at, name.len);
	own[len++] = ':';
	len += write_value(own + len, value);
	memcpy(own + len, "\r\n", 2);
	free(f->own);
	f->own = own;
	f->text = (struct smtp_span){ own, len + 2 };
	return 0;
}

static void delete_field(struct message *m, size_t at)
{
	free(m->fields[at].own);
	m->count--;
	memmove(&m->fields[at], &m->fields[at + 1], (m->count - at) * sizeof *m->fields);
}

int message_insert(struct message *m, size_t at, struct smtp_span name, struct smtp_span value)
{
	struct message_field *f;
	struct message_field text = { 0 };
	int r;

	if (!message_is_name(name) || !is_value(value))
		return CSSL_E_RANGE;
	r = write_field(&text, name, value);
	f = r ? NULL : open_place(m, at < m->count ? at : m->count);
	if (!f) {
		free(text.own);
		return CSSL_E_NO_MEMORY;
	}
	*f = text;
	if (m->gap.len == 0) /* else the body would become a part of the header */
		m->gap = smtp_span_of("\r\n");
	return 0;
}

int message_change(struct message *m, size_t nth, struct smtp_span name, struct smtp_span value)
{
	struct smtp_span own, before;

	if (!message_is_name(name) || !is_value(value))
		return CSSL_E_RANGE;
	for (size_t i = 0; i < m->count; i++) {
		message_split(&m->fields[i], &own, &before);
		if (!smtp_span_equal(own, name))
			continue;
		if (nth > 1) {
			nth--;
			continue;
		}
		if (value.len > 0)
			return write_field(&m->fields[i], own, value);
		delete_field(m, i);
		return 0;
	}
	return value.len > 0 ? message_insert(m, m->count, name, value) : 0;
}

/* Sending */

bool message_piece(const struct message *m, size_t n, struct smtp_span *out)
{
	const struct smtp_span behind[] = { m->gap, m->body };

	*out = (struct smtp_span){ 0 };
	if (n >= m->count + 2)
		return false;
	*out = n < m->count ? m->fields[n].text : behind[n - m->count];
	return true;
}

size_t message_next(struct message *m, char *out, size_t cap)
{
	size_t len = 0;
	struct smtp_span end;

	while (m->part < m->count + 2) {
		struct smtp_span part;
		message_piece(m, m->part, &part);
		const size_t left = part.len - m->part_at, room = (cap - len) / 2, take = left < room ? left : room;

		if (take > 0)
			len += smtp_dots_add(&m->dots, part.at + m->part_at, take, out + len);
		m->part_at += take;
		if (m->part_at < part.len)
			return len;
		m->part++;
		m->part_at = 0;
	}
	end = smtp_dots_end(&m->dots);
	if (m->part > m->count + 2 || cap - len < end.len) /* the last part is the end of DATA */
		return len;
	memcpy(out + len, end.at, end.len);
	m->part++;
	return len + end.len;
}
