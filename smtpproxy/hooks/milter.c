/* milter.c: one table has the parts of the conversation, another one the milter's replies. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "smtpproxy/hooks/call.h"

#define PENDING_MAX 262144u /* output that the milter has not taken; above this, the body waits */
#define ROOM        4096u   /* for a packet beside its text */

#define NOT_OF_PROTOCOL "it sends what is not of the protocol"

/* Commands: what stands behind the letter */

static void put_options(struct call *c, struct wire_writer *w)
{
	wire_put_u32(w, MILTER_VERSION);
	wire_put_u32(w, MILTER_ACTIONS);
	wire_put_u32(w, MILTER_FLAGS);
}

static void put_connect(struct call *c, struct wire_writer *w)
{
	const struct filter *f = c->filter;
	const bool v6 = f->client.ss_family == AF_INET6;
	const void *bytes = v6 ? (const void *)&((const struct sockaddr_in6 *)&f->client)->sin6_addr
			       : (const void *)&((const struct sockaddr_in *)&f->client)->sin_addr;
	char text[INET6_ADDRSTRLEN] = "", host[INET6_ADDRSTRLEN + 2];

	inet_ntop(f->client.ss_family, bytes, text, sizeof text);
	snprintf(host, sizeof host, "[%s]", text);
	milter_put_text(w, smtp_span_of(host));
	wire_put_u8(w, v6 ? '6' : '4');
	wire_put_u16(w, address_port((const struct sockaddr *)&f->client));
	milter_put_text(w, smtp_span_of(text));
}

static void put_helo(struct call *c, struct wire_writer *w)
{
	milter_put_text(w, smtp_span_of(c->filter->hello));
}

/* "<address>", and each parameter. */
static void put_path(struct call *c, struct wire_writer *w)
{
	struct smtp_span rest = c->filter->params, word;

	wire_put_u8(w, '<');
	if (c->filter->address.len)
		wire_put_bytes(w, c->filter->address.at, c->filter->address.len);
	milter_put_text(w, smtp_span_of(">"));
	while ((word = smtp_span_word(&rest)).len > 0)
		milter_put_text(w, word);
}

/* Its lines are parted by LF alone. */
static void put_value(struct wire_writer *w, struct smtp_span value)
{
	while (value.len > 0) {
		const char *cr = memchr(value.at, '\r', value.len);
		const size_t len = cr ? (size_t)(cr - value.at) : value.len;

		wire_put_bytes(w, value.at, len);
		value.at += len + (cr != NULL);
		value.len -= len + (cr != NULL);
	}
	wire_put_u8(w, 0);
}

static void put_field(struct call *c, struct wire_writer *w)
{
	struct milter *m = &c->u.milter;
	struct smtp_span name, value;

	message_split(&c->filter->message->fields[m->field++], &name, &value);
	if (!(m->options.flags & MILTER_LEADING_SPACE) && value.len > 0 && value.at[0] == ' ')
		value = (struct smtp_span){ value.at + 1, value.len - 1 };
	if (value.len > MILTER_CHUNK_MAX)
		value.len = MILTER_CHUNK_MAX;
	milter_put_text(w, name);
	put_value(w, value);
}

static void put_chunk(struct call *c, struct wire_writer *w)
{
	struct milter *m = &c->u.milter;
	const struct smtp_span body = c->filter->message->body;
	const size_t left = body.len - m->at, len = left < MILTER_CHUNK_MAX ? left : MILTER_CHUNK_MAX;

	wire_put_bytes(w, body.at + m->at, len);
	m->at += len;
}

/* Is there one more field, or piece of the body? */
static int has_field(const struct call *c)
{
	return c->u.milter.field < c->filter->message->count;
}

static int has_chunk(const struct call *c)
{
	return c->u.milter.at < c->filter->message->body.len;
}

/* The parts, in order. @put: NULL: the letter is all. @no, @silent: flags by which the milter leaves out the command,
 * or its reply. @more: NULL: it is said once. */
static const struct {
	enum milter_command command;
	void (*put)(struct call *c, struct wire_writer *w);
	int (*more)(const struct call *c);
	uint32_t no, silent, version;
	enum filter_step step;
} parts[] = {
	[MILTER_PART_OPTIONS] = { MILTER_OPTIONS, put_options, NULL, 0, 0, 0, FILTER_MAIL },
	[MILTER_PART_CONNECT] = { MILTER_CONNECT, put_connect, NULL, MILTER_NO_CONNECT, MILTER_SILENT_CONNECT, 2,
		FILTER_MAIL },
	[MILTER_PART_HELO] = { MILTER_HELO, put_helo, NULL, MILTER_NO_HELO, MILTER_SILENT_HELO, 2, FILTER_MAIL },
	[MILTER_PART_MAIL] = { MILTER_MAIL, put_path, NULL, MILTER_NO_MAIL, MILTER_SILENT_MAIL, 2, FILTER_MAIL },
	[MILTER_PART_RCPT] = { MILTER_RCPT, put_path, NULL, MILTER_NO_RCPT, MILTER_SILENT_RCPT, 2, FILTER_RCPT },
	[MILTER_PART_DATA] = { MILTER_DATA, NULL, NULL, MILTER_NO_DATA, MILTER_SILENT_DATA, 4, FILTER_DATA },
	[MILTER_PART_FIELD] = { MILTER_HEADER, put_field, has_field, MILTER_NO_HEADER, MILTER_SILENT_HEADER, 2,
		FILTER_MESSAGE },
	[MILTER_PART_GAP] = { MILTER_END_OF_HEADER, NULL, NULL, MILTER_NO_END_OF_HEADER, MILTER_SILENT_END_OF_HEADER, 2,
		FILTER_MESSAGE },
	[MILTER_PART_CHUNK] = { MILTER_BODY, put_chunk, has_chunk, MILTER_NO_BODY, MILTER_SILENT_BODY, 2,
		FILTER_MESSAGE },
	[MILTER_PART_END] = { MILTER_END_OF_BODY, NULL, NULL, 0, 0, 2, FILTER_MESSAGE },
};

/* Names and values that some commands have before them. */
static void say_macros(struct wire_writer *w, const struct filter *f, enum milter_command of)
{
	const char *const connect[] = { "j", f->listener, "{daemon_name}", f->listener, "v", "CSSL smtpproxy", NULL };
	const char *const id[] = { "i", f->id, NULL };
	const char *const *texts = of == MILTER_CONNECT ? connect : id;
	uint8_t *begin;

	if (of != MILTER_CONNECT && of != MILTER_MAIL && of != MILTER_END_OF_HEADER)
		return;
	begin = milter_packet(w, MILTER_MACRO);
	wire_put_u8(w, (uint8_t)of);
	for (; *texts; texts++)
		milter_put_text(w, smtp_span_of(*texts));
	milter_packet_end(w, begin);
}

static const enum milter_part first_parts[] = {
	[FILTER_MAIL] = MILTER_PART_OPTIONS,
	[FILTER_RCPT] = MILTER_PART_RCPT,
	[FILTER_DATA] = MILTER_PART_DATA,
	[FILTER_MESSAGE] = MILTER_PART_FIELD,
};

static bool is_left_out(const struct call *c, enum milter_part part)
{
	const struct milter_options *o = &c->u.milter.options;

	return o->flags & parts[part].no || o->version < parts[part].version ||
	       (parts[part].more && !parts[part].more(c));
}

static size_t room_for(const struct call *c)
{
	const struct milter *m = &c->u.milter;

	if (m->part == MILTER_PART_FIELD)
		return ROOM + c->filter->message->fields[m->field].text.len;
	return m->part == MILTER_PART_CHUNK ? ROOM + MILTER_CHUNK_MAX : ROOM;
}

/* The kernel takes it at the end of this turn. */
static void milter_say(struct call *c)
{
	struct milter *m = &c->u.milter;
	const size_t room_len = room_for(c);
	uint8_t *room = stream_reserve(&c->stream, room_len);
	struct wire_writer w = wire_writer(room, room_len);
	uint8_t *begin;

	if (!room) {
		call_fails(c, "out of memory");
		return;
	}
	say_macros(&w, c->filter, parts[m->part].command);
	begin = milter_packet(&w, parts[m->part].command);
	if (parts[m->part].put)
		parts[m->part].put(c, &w);
	milter_packet_end(&w, begin);
	if (wire_writer_len(&w) < 0) {
		call_fails(c, "a command is too long for it");
		return;
	}
	stream_commit(&c->stream, (size_t)wire_writer_len(&w));
	if (!parts[m->part].silent || !(m->options.flags & parts[m->part].silent))
		m->turn = MILTER_WAITS;
	else if (!parts[m->part].more)
		m->part++;
}

static void milter_go_on(struct call *c)
{
	struct milter *m = &c->u.milter;

	while (c->state == CALL_ASKED && m->turn == MILTER_SAYS) {
		if (m->part == MILTER_PARTS || parts[m->part].step != c->filter->step) {
			call_continues(c);
			return;
		}
		if (stream_pending(&c->stream) > PENDING_MAX)
			return;
		if (is_left_out(c, m->part))
			m->part++;
		else
			milter_say(c);
	}
}

static void milter_ask(struct call *c)
{
	c->u.milter.part = first_parts[c->filter->step];
	c->u.milter.turn = MILTER_SAYS;
	milter_go_on(c);
}

static void milter_bye(struct call *c)
{
	uint8_t out[8];
	struct wire_writer w = wire_writer(out, sizeof out);

	milter_packet_end(&w, milter_packet(&w, MILTER_QUIT));
	stream_write(&c->stream, out, (size_t)wire_writer_len(&w));
}

/* Changes */

static void forget_changes(struct milter *m)
{
	for (unsigned i = 0; i < m->change_count; i++)
		free(m->changes[i].memory);
	free(m->changes);
	m->changes = NULL;
	m->change_count = 0;
}

/* Without its own space, a value stands behind ": ". */
static int set_value(const struct milter *m, struct milter_change *change, struct smtp_span value)
{
	const size_t space = !(m->options.flags & MILTER_LEADING_SPACE) && value.len > 0;
	const size_t name_len = change->name.len;

	change->memory = malloc(name_len + space + value.len + 1);
	if (!change->memory)
		return CSSL_E_NO_MEMORY;
	memcpy(change->memory, change->name.at, name_len);
	memcpy(change->memory + name_len, " ", space);
	memcpy(change->memory + name_len + space, value.at, value.len);
	change->name.at = change->memory;
	change->value = (struct smtp_span){ change->memory + name_len, space + value.len };
	return 0;
}

static void on_change(struct call *c, uint8_t letter, struct wire_reader r)
{
	struct milter *m = &c->u.milter;
	struct milter_change change = { .letter = letter };
	struct smtp_span value;

	if (m->part != MILTER_PART_END || m->change_count == MILTER_CHANGES_MAX) {
		call_fails(c, "it changes fields out of its turn, or too many");
		return;
	}
	if (!m->changes)
		m->changes = calloc(MILTER_CHANGES_MAX, sizeof *m->changes);
	change.at = letter == MILTER_ADD_HEADER ? UINT32_MAX : wire_u32(&r);
	if (!r.at || milter_read_text(&r, &change.name) < 0 || milter_read_text(&r, &value) < 0 || !m->changes ||
		set_value(m, &change, value) < 0) {
		call_fails(c, "a change of a field cannot be read");
		return;
	}
	m->changes[m->change_count++] = change;
}

static int make_changes(struct call *c)
{
	struct milter *m = &c->u.milter;
	struct message *to = c->filter->message;
	int r = 0;

	for (unsigned i = 0; i < m->change_count && r == 0; i++) {
		const struct milter_change *change = &m->changes[i];

		r = change->letter == MILTER_CHANGE_HEADER
			    ? message_change(to, change->at, change->name, change->value)
			    : message_insert(to, change->at, change->name, change->value);
	}
	if (m->change_count > 0) {
		c->hook->changed++;
		c->filter->hooks->counters->hooks_changed++;
	}
	forget_changes(m);
	return r;
}

/* Replies */

static void on_options(struct call *c, struct wire_reader reader)
{
	struct milter *m = &c->u.milter;
	struct milter_options options;
	const int r = milter_read_options(reader, &options);

	if (r < 0 || m->part != MILTER_PART_OPTIONS) {
		call_fails(c, r == CSSL_E_VERSION ? "its version is not known" : "its options cannot be read");
		return;
	}
	m->options = options;
	m->part++;
	m->turn = MILTER_SAYS;
	milter_go_on(c);
}

static void on_continue(struct call *c)
{
	struct milter *m = &c->u.milter;

	if (m->part == MILTER_PART_END && make_changes(c) < 0) {
		call_fails(c, "its changes would break the header");
		return;
	}
	m->turn = MILTER_SAYS;
	if (!parts[m->part].more)
		m->part++;
	milter_go_on(c);
}

static void on_skip(struct call *c)
{
	if (c->u.milter.part == MILTER_PART_CHUNK)
		c->u.milter.at = c->filter->message->body.len;
	on_continue(c);
}

static void on_milter_accept(struct call *c)
{
	if (c->u.milter.part == MILTER_PART_END && make_changes(c) < 0)
		call_fails(c, "its changes would break the header");
	else
		call_accepts(c);
}

static void on_reply_code(struct call *c, struct wire_reader r)
{
	uint8_t out[FILTER_REPLY_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	struct smtp_span text;

	if (milter_read_text(&r, &text) < 0 || milter_write_reply(&w, text) < 0 || wire_writer_len(&w) < 0)
		call_fails(c, "its reply for the sender cannot be read");
	else
		call_refuses(c, (struct smtp_span){ (const char *)out, (size_t)wire_writer_len(&w) });
}

/* Its time-out is for each answer, and a message has many parts. */
static void on_milter_answer(struct call *c, uint8_t letter, struct wire_reader rest)
{
	call_progresses(c);
	switch (letter) {
	case MILTER_OPTIONS: on_options(c, rest); break;
	case MILTER_CONTINUE: on_continue(c); break;
	case MILTER_ACCEPT: on_milter_accept(c); break;
	case MILTER_REJECT: call_refuses(c, call_reply_rejects); break;
	case MILTER_DISCARD: call_discards(c); break;
	case MILTER_REPLY_CODE: on_reply_code(c, rest); break;
	case MILTER_TEMPFAIL:
	case MILTER_CONNECTION_FAILED:
	case MILTER_SHUTDOWN:
	case MILTER_QUARANTINE: /* there is no place to keep it: the sender does */
		call_refuses(c, call_reply_defers);
		break;
	case MILTER_SKIP: on_skip(c); break;
	case MILTER_PROGRESS: break;
	case MILTER_ADD_HEADER:
	case MILTER_INSERT_HEADER:
	case MILTER_CHANGE_HEADER: on_change(c, letter, rest); break;
	/* Its other changes may depend on these, so none of them is made. */
	case MILTER_REPLACE_BODY: call_fails(c, "it wants to change the body"); break;
	case MILTER_CHANGE_SENDER:
	case MILTER_ADD_RECIPIENT:
	case MILTER_ADD_RECIPIENT_PARAMS:
	case MILTER_DELETE_RECIPIENT: call_fails(c, "it wants to change the sender or recipients"); break;
	default: call_fails(c, NOT_OF_PROTOCOL); break;
	}
}

static size_t milter_take_packets(struct call *c, const uint8_t *data, size_t len)
{
	struct wire_reader rest;
	size_t taken = 0;
	uint8_t letter;
	const int r = milter_take(data, len, &taken, &letter, &rest);

	if (r == 0)
		return 0;
	if (r < 0)
		call_fails(c, NOT_OF_PROTOCOL);
	else if (c->state != CALL_ASKED || c->u.milter.turn != MILTER_WAITS)
		call_fails(c, "it replies without being asked");
	else if (c->u.milter.part == MILTER_PART_OPTIONS && letter != MILTER_OPTIONS)
		call_fails(c, "it replies before its options");
	else
		on_milter_answer(c, letter, rest);
	return r < 0 ? len : taken;
}

static void milter_end(struct call *c)
{
	forget_changes(&c->u.milter);
}

const struct call_kind milter_kind = {
	.steps = 1u << FILTER_MAIL | 1u << FILTER_RCPT | 1u << FILTER_DATA | 1u << FILTER_MESSAGE,
	.ask = milter_ask,
	.take = milter_take_packets,
	.room = milter_go_on,
	.bye = milter_bye,
	.end = milter_end,
};
