/* test_memory.c: facts of running out of memory: each allocation of each object fails once, in turn. net/ is built
 * for it a second time, with malloc and calloc named as below; libuv's go through its own hook. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/loop/listener.h"
#include "net/loop/signals.h"
#include "net/loop/timer.h"
#include "net/loop/udp.h"
#include "net/loop/worker.h"
#include "net/memory/slabs.h"
#include "net/socket/address.h"
#include "proto/error.h"
#include "tests/unit/net/owner.h"
#include "tests/unit/unit.h"

void *failing_malloc(size_t len);
void *failing_calloc(size_t count, size_t len);

static int armed;
static unsigned until_failure, failures;

static int fails_now(void)
{
	if (!armed || until_failure-- > 0)
		return 0;
	armed = 0;
	failures++;
	return 1;
}

void *failing_malloc(size_t len)
{
	return fails_now() ? NULL : malloc(len);
}

void *failing_calloc(size_t count, size_t len)
{
	return fails_now() ? NULL : calloc(count, len);
}

/* Run @life with its first allocation failing, its second and so on, until one run needs no more. */
static void fail_each(void (*life)(void), unsigned at_least)
{
	for (unsigned n = 0;; n++) {
		unsigned before = failures;
		until_failure = n;
		armed = 1;
		life();
		int failed = failures > before;
		armed = 0;
		if (!failed) {
			ck_assert_msg(n >= at_least, "only %u allocations were tried", n);
			return;
		}
	}
}

static void worker_life(void)
{
	struct worker *other = worker_create(1, "other");

	if (other)
		worker_destroy(other);
}

START_TEST(worker_without_memory_is_not_created)
{
	fail_each(worker_life, 2);
}
END_TEST

static unsigned posted;

static void on_post(struct worker *of, void *arg)
{
	ck_assert_ptr_eq(of, w);
	(void)arg;
	posted++;
}

static void post_life(void)
{
	unsigned before = posted;
	int r = worker_post(w, on_post, NULL);

	ck_assert(r == 0 || r == CSSL_E_NO_MEMORY);
	turns(2);
	ck_assert_uint_eq(posted - before, r == 0);
}

START_TEST(message_without_memory_is_refused_and_not_called)
{
	fail_each(post_life, 1);
}
END_TEST

static unsigned objects_closed;

static void on_object_closed(void *ctx)
{
	(void)ctx;
	objects_closed++;
}

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	(void)ctx, (void)peer;
	close(fd);
}

static void on_datagram(void *ctx, uint8_t *data, size_t len, const struct sockaddr *from)
{
	(void)ctx, (void)data, (void)len, (void)from;
}

static void on_tick(void *ctx)
{
	(void)ctx;
}

static void on_signal(void *ctx, int signum)
{
	(void)ctx, (void)signum;
}

static void small_objects_life(void)
{
	static const struct listener_ops listener_ops = { on_accept, on_object_closed };
	static const struct udp_ops udp_ops = { on_datagram, on_object_closed, NULL };
	struct sockaddr_storage any;
	int error = 0;

	address_parse("127.0.0.1:0", &any);
	struct listener *l = listener_create(w, (struct sockaddr *)&any, 16, 0, &listener_ops, NULL, &error);
	ck_assert(l || error == UV_ENOMEM);
	struct udp *u = udp_create(w, (struct sockaddr *)&any, 1, &udp_ops, NULL, &error);
	ck_assert(u || error == UV_ENOMEM);
	struct timer *t = timer_start(w, on_tick, NULL, 1000, 0);
	struct signals *s = signals_create(w, (int[]){ SIGUSR1, SIGUSR2 }, 2, on_signal, NULL);
	struct slabs secrets;
	slabs_init_secret(&secrets, 64);
	void *secret = slabs_take(&secrets);
	if (u) {
		struct sockaddr_storage to;
		udp_address(u, &to);
		udp_send(u, "lost or not", 11, (struct sockaddr *)&to);
		turns(2);
	}
	unsigned before = objects_closed;
	slabs_give(&secrets, secret);
	slabs_clear(&secrets);
	signals_destroy(s);
	timer_stop(t);
	udp_close(u);
	listener_close(l);
	wait_until(objects_closed == before + (l != NULL) + (u != NULL));
}

START_TEST(small_objects_without_memory_are_not_created)
{
	unsigned descriptors = open_descriptors();
	fail_each(small_objects_life, 5);
	turns(5);
	ck_assert_uint_le(open_descriptors(), descriptors + 2); /* libuv's signal pipe stays */
}
END_TEST

static uint8_t bulk[300000], back[300000];

/* Everything a stream ever allocates for: connecting, output that grows and waits, input that is kept. */
static void stream_life(void)
{
	struct sockaddr_storage to;
	struct owner o;
	int listening = socket_listen(OVER_TCP4, &to), end = 0;
	size_t arrived = 0, accepted = 0;

	buffers_clear(worker_buffers(w)); /* the ones of the run before would need no memory */
	owner_init(&o);
	if (stream_connect(&o.s, w, &owner_ops, (struct sockaddr *)&to, NULL) == UV_ENOMEM) {
		ck_assert_int_eq(o.s.state, STREAM_NEW);
		close(listening);
		return;
	}
	wait_until(o.told[OWNER_CONNECTED]);
	int peer = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	close(listening);
	shrink_buffers(o.s.uv.tcp.io_watcher.fd);
	stream_read_start(&o.s);
	o.use_max = 5;
	write_all(peer, "twelve bytes", 12);
	wait_until(o.told[OWNER_DATA] || o.told[OWNER_END]);
	stream_keep(&o.s, "before", 6);
	for (size_t len = 1000; accepted < 200000 && stream_write(&o.s, bulk + accepted, len) == 0; len *= 2)
		accepted += len;
	stream_shutdown(&o.s);
	while (!end) {
		ssize_t n = read_some(peer, back + arrived, sizeof back - arrived, &end);
		ck_assert_int_ge(n, 0);
		arrived += (size_t)n;
		turn();
		if (o.told[OWNER_END])
			stream_close(&o.s);
	}
	/* all of it, or an error was reported */
	ck_assert(arrived == accepted || (o.told[OWNER_END] && o.end_error == UV_ENOMEM));
	assert_pattern(back, arrived, 0);
	close(peer);
	owner_finish(&o);
}

START_TEST(stream_without_memory_fails_alone_and_whole)
{
	pattern(bulk, sizeof bulk, 0);
	fail_each(stream_life, 6);
}
END_TEST

/* An owner that goes on writing, whatever stream_write() returns, while it connects and later. */
static void careless_life(void)
{
	struct sockaddr_storage to;
	struct owner o;
	int listening = socket_listen(OVER_TCP4, &to), end = 0, failed = 0;
	size_t arrived = 0, said = 0;

	buffers_clear(worker_buffers(w));
	owner_init(&o);
	if (stream_connect(&o.s, w, &owner_ops, (struct sockaddr *)&to, NULL) == UV_ENOMEM) {
		close(listening);
		return;
	}
	for (size_t len = 100; len < 50000; len *= 3) {
		failed |= stream_write(&o.s, bulk + said, len);
		said += len;
		if (len == 900)
			wait_until(o.told[OWNER_CONNECTED] || o.told[OWNER_END]);
	}
	turns(2);
	int peer = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	close(listening);
	ck_assert(!failed || o.connect_error == UV_ENOMEM || o.end_error == UV_ENOMEM);
	stream_shutdown(&o.s);
	turns(2);
	if (failed)
		stream_close(&o.s);
	for (ssize_t n = 0; n >= 0 && !end; turn()) {
		n = read_some(peer, back + arrived, sizeof back - arrived, &end);
		arrived += n > 0 ? (size_t)n : 0;
	}
	ck_assert(failed || arrived == said);
	assert_pattern(back, arrived, 0); /* nothing after the failed write */
	close(peer);
	owner_finish(&o);
}

START_TEST(output_has_no_hole_where_memory_failed)
{
	pattern(bulk, sizeof bulk, 0);
	fail_each(careless_life, 4);
}
END_TEST

UNIT(memory)
{
	uv_replace_allocator(failing_malloc, realloc, failing_calloc, free);
	const TTest *facts[] = {
		worker_without_memory_is_not_created,
		message_without_memory_is_refused_and_not_called,
		small_objects_without_memory_are_not_created,
		stream_without_memory_fails_alone_and_whole,
		output_has_no_hole_where_memory_failed,
	};
	return worker_suite_run("memory", facts, FACTS_LEN(facts));
}
