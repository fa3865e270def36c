/* test_connection_fields.c: facts of the bytes in which a connection goes to another process. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "proto/error.h"
#include "ragent/connection/revival/connection_fields.h"
#include "tests/unit/ragent/successor.h"
#include "tests/unit/unit.h"

#define BIG ((size_t)1 << 20)

static struct live_connection l;
static uint8_t packed[2 * BIG], again[2 * BIG];

static size_t pack(const struct connection *c, uint8_t *out)
{
	struct wire_writer to = wire_writer(out, sizeof packed);

	connection_pack(c, &to);
	ptrdiff_t len = wire_writer_len(&to);
	ck_assert_int_gt(len, 0);
	ck_assert_uint_le((size_t)len, connection_packed_len(c));
	return (size_t)len;
}

/* These have to be true. */
static int must_be_true(const char *member)
{
	static const char *const truths[] = { "now.owner", "now.handshaking_at", "now.move_target", "now.state",
		"now.source" };

	for (size_t i = 0; i < sizeof truths / sizeof truths[0]; i++)
		if (strcmp(member, truths[i]) == 0)
			return 1;
	return strstr(member, ".len") || strstr(member, "agent") || strncmp(member, "kept.", 5) == 0;
}

/* Every number and byte of the tables says something else, as far as a connection may say that. */
static void fill(void *object, const struct field *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct field *f = &rows[i];
		uint8_t *member = (uint8_t *)object + f->offset;
		if (must_be_true(f->name))
			continue;
		if (f->max != FIELD_ANY && f->kind == FIELD_UINT) {
			*member = (uint8_t)f->max;
			continue;
		}
		for (unsigned b = 0; b < f->size; b++)
			member[b] = (uint8_t)(i * 7 + b + 1);
	}
}

START_TEST(every_member_is_the_same_there)
{
	struct successor *s;

	dispatcher_start(NULL);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	struct connection *c = connection_only();
	struct connection before = *c;
	struct busy_part awake_before = *c->busy;
	fill(c, connection_rows, connection_row_count);
	fill(c->busy, busy_rows, busy_row_count);
	memset(&c->now.agreed->ja4, 'j', sizeof c->now.agreed->ja4);
	size_t len = pack(c, packed);
	s = successor_create();
	ck_assert_int_eq(handover_worker_pack(d.rw, successor_hears, s), 0);
	struct connection *there = s->rw->home.connections;
	ck_assert_ptr_nonnull(there);
	ck_assert_uint_eq(pack(there, again), len);
	ck_assert_mem_eq(again, packed, len);
	ck_assert_uint_eq(there->slot.bytes_written, there->now.queued);
	*c = before;
	*c->busy = awake_before;
	successor_commit(s);
	d.rw = s->rw;
	close(l.fd);
}
END_TEST

/* The bytes of the only connection, which another process refuses or not. */
static int unpacked(struct successor *s, const uint8_t *in, size_t len)
{
	int fd = fcntl(connection_fd(connection_only()), F_DUPFD_CLOEXEC, 3);
	int r = connection_unpack(&s->rw->home, &s->map, fd, in, len);

	ck_assert_int_eq(r == 0, s->rw->home.connections != NULL);
	if (r == 0)
		connection_let_go(s->rw->home.connections);
	wait_until(!s->rw->home.connections);
	return r;
}

static struct successor *begin_without_agent(size_t *len)
{
	struct successor *s;

	dispatcher_start(NULL);
	l = (struct live_connection){ .fd = client_connect("sf") };
	wait_until(d.rw->home.connections && connection_only()->now.state == CONNECTION_HELLO);
	*len = pack(connection_only(), packed);
	s = successor_create();
	ck_assert_int_eq(unpacked(s, packed, *len), 0);
	return s;
}

START_TEST(bytes_cut_anywhere_are_no_connection)
{
	size_t len;
	struct successor *s = begin_without_agent(&len);
	unsigned before = open_descriptors();

	for (size_t cut = 0; cut < len; cut++) {
		memcpy(again, packed, cut);
		int r = unpacked(s, again, cut);
		/* between two fields, behind the listener, the rest may be what it is at the start */
		ck_assert(r < 0 || cut > fields_len(connection_rows, connection_row_count));
	}
	ck_assert_uint_eq(open_descriptors(), before);
	ck_assert_uint_eq(admission_total(s->shared.admission), 0);
	close(l.fd);
}
END_TEST

START_TEST(a_field_of_a_newer_release_is_refused)
{
	size_t len;
	struct successor *s = begin_without_agent(&len);
	struct wire_writer to = wire_writer(packed + len, 64);

	field_write(&to, 999, "x", 1);
	ck_assert_int_eq(unpacked(s, packed, len + FIELD_HEADER_LEN + 1), CSSL_E_VERSION);
	close(l.fd);
}
END_TEST

START_TEST(wrong_bytes_are_refused_or_taken_but_break_nothing)
{
	size_t len;
	struct successor *s = begin_without_agent(&len);

	for (size_t at = 0; at < len; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			memcpy(again, packed, len);
			again[at] ^= (uint8_t)(1u << bit);
			unpacked(s, again, len);
		}
	}
	close(l.fd);
}
END_TEST

UNIT(connection_fields)
{
	const TTest *const facts[] = {
		every_member_is_the_same_there,
		bytes_cut_anywhere_are_no_connection,
		a_field_of_a_newer_release_is_refused,
		wrong_bytes_are_refused_or_taken_but_break_nothing,
	};

	return dispatcher_suite_run("connection_fields", facts, FACTS_LEN(facts));
}
