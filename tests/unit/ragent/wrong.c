/* wrong.c: see wrong.h. */
#include "tests/unit/ragent/wrong.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/connection/revival/revival.h"

/* --- connections in the states that can be saved --- */

void make_owned(struct live_connection *l)
{
	Cssl__LinkDownload m = CSSL__LINK_DOWNLOAD__INIT;

	connection_keep(l, "sf", 1);
	client_send_record(l->fd, TLS_APPLICATION_DATA, 60, 9);
	wait_until(fake_agent_data_len(d.agents[l->agent], l->stream) == RECORD_OF(60));
	m.sealed = (ProtobufCBinaryData){ 4, (uint8_t *)"note" };
	fake_agent_say(d.agents[l->agent], l->stream, FRAME_DOWNLOAD, &m.base);
	server_send(l, TLS_APPLICATION_DATA, 80, 7, FRAME_RESPONSE_BYTES);
}

void make_handshake(struct live_connection *l)
{
	hello_send(l, "sf", NULL);
	server_send(l, TLS_HANDSHAKE, 100, 2, 0);
}

void make_hello(struct live_connection *l)
{
	uint8_t hello[RECORD_OF(200)];
	const struct connection *before = d.rw->home.connections;

	record_make(hello, TLS_HANDSHAKE, 200, 1);
	*l = (struct live_connection){ .fd = client_connect("sf") };
	write_all(l->fd, hello, 50);
	wait_until(d.rw->home.connections != before && stream_kept(&connection_newest()->busy->client) == 50);
}

static struct move_order order;

static void on_moved(struct move_order *o, const struct move_result *r)
{
}

void make_resting(struct live_connection *l)
{
	order.done = on_moved;
	connection_keep(l, "sf", 1);
	connection_order(connection_newest(), &(struct move_wish){ .target = NO_AGENT }, &order);
	free(frame_at(l->agent, FRAME_MOVE));
	live_say(l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy at rest");
	wait_until(connection_newest()->now.state == CONNECTION_RESTING && !connection_newest()->busy);
}

void make_adopting(struct live_connection *l)
{
	order.done = on_moved;
	connection_keep(l, "sf", 1);
	const int target = (l->agent + 1) % AGENTS;
	connection_order(connection_newest(),
		&(struct move_wish){ .target = target, .cause = CSSL__CAUSE__CAUSE_MOVE, .deadline_ms = 5000 }, &order);
	free(frame_at(l->agent, FRAME_MOVE));
	live_say(l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_PASSED, "copy 2");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(l, target), NULL);
}

void make_lingering(struct live_connection *l)
{
	static uint8_t record[TLS_RECORD_MAX];

	connection_keep(l, "sf", 1);
	shrink_buffers(l->fd);
	shrink_buffers(connection_fd(connection_newest()));
	const size_t len = record_make(record, TLS_APPLICATION_DATA, 15000, 9);
	for (unsigned i = 0; i < 4; i++)
		fake_agent_send(d.agents[l->agent], l->stream, FRAME_DATA, 0, record, len);
	fake_agent_end(d.agents[l->agent], l->stream, END_BACKEND_CLOSED, 0);
	wait_until(connection_newest()->now.state == CONNECTION_LINGERING);
	ck_assert(connection_owes(connection_newest()));
}

/* --- wrong values --- */

/* The machine has its low bytes first, as all that CSSL runs on. */
static void write_wrong(struct connection *dead, const struct wrong *row)
{
	uint8_t *of = (uint8_t *)dead;

	if (row->write) {
		row->write(dead);
		return;
	}
	if (row->in == IN_IMAGE)
		of = (uint8_t *)image_left_by(dead);
	else if (row->in == IN_NOW)
		of = (uint8_t *)left_by(dead);
	memcpy(of + row->at, &row->value, row->len);
}

struct live_connection beside, with[WRONG_MAX];

void die_with(void (*make)(struct live_connection *l), const struct wrong *rows, size_t count)
{
	static const struct dispatcher_wish outlives = { OUTLIVES };
	struct connection *dead[WRONG_MAX];

	ck_assert_uint_le(count, WRONG_MAX);
	dispatcher_start(&outlives);
	for (size_t i = 0; i < count; i++) {
		if (i == count / 2)
			make_owned(&beside);
		make(&with[i]);
		dead[i] = connection_newest();
	}
	life_ends();
	for (size_t i = 0; i < count; i++)
		write_wrong(dead[i], &rows[i]);
	next_life_begins();
}

void goes_on_beside(void)
{
	owner_goes_on(&beside, 3, CONNECTION_OWNED);
	server_send(&beside, TLS_APPLICATION_DATA, 90, 8, FRAME_RESPONSE_BYTES);
	close(beside.fd);
}

void each_is_reset(void (*make)(struct live_connection *l), const struct wrong *rows, size_t count)
{
	die_with(make, rows, count);
	for (size_t i = 0; i < count; i++) {
		ck_assert_msg(read_to_end(with[i].fd) == -1, "%s", rows[i].what);
		close(with[i].fd);
	}
	expect_fates(1, (unsigned)count);
	goes_on_beside();
}
