/* test_udp_fault.c: facts of fault rules on datagrams. */
#include <string.h>

#include "net/loop/udp.h"
#include "net/points/fault.h"
#include "net/socket/address.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/net/rules.h"
#include "tests/unit/unit.h"

#define DATAGRAMS_MAX 1000u

struct post {
	struct udp *u;
	struct sockaddr_storage address;
	unsigned received, closed, overtaken;
	uint8_t numbers[DATAGRAMS_MAX];
	uint64_t first_at_ms;
};

static struct post a1, a2;

static void on_datagram(void *ctx, uint8_t *data, size_t len, const struct sockaddr *from)
{
	struct post *p = ctx;

	ck_assert_uint_eq(len, 1);
	ck_assert_uint_lt(p->received, DATAGRAMS_MAX);
	if (p->received && data[0] < p->numbers[p->received - 1])
		p->overtaken++;
	p->numbers[p->received++] = data[0];
	if (!p->first_at_ms)
		p->first_at_ms = now_ms();
	memset(data, 0xff, len);
	(void)from;
}

static void on_closed(void *ctx)
{
	((struct post *)ctx)->closed++;
}

static const char *peer_name(void *ctx, const struct sockaddr *address)
{
	(void)ctx;
	return address_port(address) == address_port((struct sockaddr *)&a2.address) ? "a2" : "a1";
}

static const struct udp_ops post_ops = { on_datagram, on_closed, peer_name };

static void post_open(struct post *p)
{
	int error = 0;

	memset(p, 0, sizeof *p);
	address_parse("127.0.0.1:0", &p->address);
	p->u = udp_create(w, (struct sockaddr *)&p->address, 1, &post_ops, p, &error);
	ck_assert_ptr_nonnull(p->u);
	udp_address(p->u, &p->address);
}

static void begin(const char *rules)
{
	post_open(&a1);
	post_open(&a2);
	rules_set("a1", rules);
}

static void end(void)
{
	fault_stop();
	udp_close(a1.u);
	udp_close(a2.u);
	wait_until(a1.closed && a2.closed);
}

static void send_number(struct post *from, struct post *to, uint8_t number)
{
	udp_send(from->u, &number, 1, (struct sockaddr *)&to->address);
}

START_TEST(one_way_partition_drops_one_way_only)
{
	begin("udp.send drop on a1 peer a2\n");
	send_number(&a1, &a2, 1);
	send_number(&a2, &a1, 2);
	wait_until(a1.received == 1);
	turns(20);
	ck_assert_uint_eq(a2.received, 0);
	rules_write("");
	wait_until(fault_at("udp.send", "a2", NULL) == FAULT_NONE);
	send_number(&a1, &a2, 3);
	wait_until(a2.received == 1);
	end();
}
END_TEST

START_TEST(received_datagrams_can_be_dropped)
{
	begin("udp.receive drop peer a1 times 1\n");
	send_number(&a1, &a2, 1);
	send_number(&a1, &a2, 2);
	wait_until(a2.received == 1);
	ck_assert_uint_eq(a2.numbers[0], 2);
	end();
}
END_TEST

START_TEST(duplicates_arrive_twice_and_unchanged)
{
	const char *rules[] = { "udp.send duplicate peer a2\n", "udp.receive duplicate peer a1\n" };
	for (size_t i = 0; i < FACTS_LEN(rules); i++) {
		begin(rules[i]);
		send_number(&a1, &a2, 7);
		wait_until(a2.received == 2);
		ck_assert_uint_eq(a2.numbers[0], 7);
		ck_assert_uint_eq(a2.numbers[1], 7);
		end();
	}
}
END_TEST

START_TEST(delayed_datagrams_arrive_late_and_all)
{
	const char *rules[] = { "udp.send delay 40 peer a2\n", "udp.receive delay 40 peer a1\n" };
	for (size_t i = 0; i < FACTS_LEN(rules); i++) {
		begin(rules[i]);
		uint64_t begin_ms = now_ms();
		for (uint8_t n = 0; n < 20; n++)
			send_number(&a1, &a2, n);
		wait_until(a2.received == 20);
		ck_assert_uint_ge(a2.first_at_ms - begin_ms, 30);
		end();
	}
}
END_TEST

START_TEST(reordered_datagrams_overtake_each_other_and_all_arrive)
{
	begin("udp.send reorder 0.3 peer a2\n");
	for (uint8_t n = 0; n < 200; n++)
		send_number(&a1, &a2, n);
	wait_until(a2.received == 200);
	ck_assert_uint_gt(a2.overtaken, 0);
	end();
}
END_TEST

START_TEST(closing_drops_what_is_delayed)
{
	begin("udp.send delay 30\n");
	send_number(&a1, &a2, 1);
	end();
	uint64_t until = now_ms() + 60;
	wait_until(now_ms() > until);
	ck_assert_uint_eq(a2.received, 0);
}
END_TEST

UNIT(udp_fault)
{
	const TTest *facts[] = {
		one_way_partition_drops_one_way_only,
		received_datagrams_can_be_dropped,
		duplicates_arrive_twice_and_unchanged,
		delayed_datagrams_arrive_late_and_all,
		reordered_datagrams_overtake_each_other_and_all_arrive,
		closing_drops_what_is_delayed,
	};
	return worker_suite_run("udp_fault", facts, FACTS_LEN(facts));
}
