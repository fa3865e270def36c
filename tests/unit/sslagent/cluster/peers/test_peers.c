/* test_peers.c: two agents in one loop, joined by a UNIX socket: their link, what it carries, and its end. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "net/loop/worker.h"
#include "net/report/log.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/cluster/broadcast/broadcast_receiver.h"
#include "sslagent/cluster/broadcast/sending_keys.h"
#include "sslagent/cluster/peers/peers.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define AGENTS      3u
#define PATIENCE_MS 5000

struct side {
	struct peers peers;
	struct broadcast_receiver *receiver;
	struct sending_keys *sending;
	unsigned ups, downs, messages, closed;
	int answer; /* to a message */
};

static struct conf_agent agents[AGENTS];
static struct conf conf;
static struct key_ring ring = { .count = 1, .keys = { { .id = "k", .key = { 1 } } } };
static char folder[64], names[AGENTS][2] = { "a", "b", "c" }, sockets[AGENTS][96];
static struct worker *loop;
static struct side sides[2];

static void on_up(void *ctx, struct peer *p)
{
	((struct side *)ctx)->ups++;
}

static int on_message(void *ctx, struct peer *p, const Cssl__PeerMessage *m)
{
	struct side *s = ctx;

	s->messages += m->what_case == CSSL__PEER_MESSAGE__WHAT_ABSENT;
	return m->what_case == CSSL__PEER_MESSAGE__WHAT_ABSENT ? s->answer : 0;
}

static void on_event(void *ctx, struct peer *p)
{
}

static void on_down(void *ctx, struct peer *p)
{
	((struct side *)ctx)->downs++;
}

static bool is_quiet(void *ctx, const struct peer *p)
{
	return true;
}

static void on_closed(void *ctx)
{
	((struct side *)ctx)->closed++;
}

static const struct peers_ops ops = { on_up, on_message, on_event, on_down, is_quiet, on_closed };

static void side_start(unsigned agent, uint64_t boot_id)
{
	struct side *s = &sides[agent];
	char error[256] = "";

	*s = (struct side){ .receiver = broadcast_receiver_create(AGENTS, &(struct broadcast_receiver_ops){ 0 }, NULL),
		.sending = sending_keys_create() };
	const struct peers_conf peers_conf = {
		.link = { .worker = loop, .ring = &ring, .name = names[agent], .boot_id = boot_id, .workers = 1 },
		.conf = &conf,
		.self = &agents[agent],
		.receiver = s->receiver,
		.sending = s->sending,
		.ops = &ops,
		.ctx = s
	};

	ck_assert_int_eq(peers_init(&s->peers, &peers_conf), 0);
	ck_assert_msg(peers_listen(&s->peers, error, sizeof(error)) == 0, "%s", error);
}

static void setup(void)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	log_open("unit", "a", LOG_TEXT, LOG_ERROR, "/dev/null");
	snprintf(folder, sizeof(folder), "/tmp/cssl-peers-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	conf = (struct conf){ .agents = agents,
		.agent_count = AGENTS,
		.broadcast = { .heartbeat_ms = 1000, .live_keep_s = 60, .replicas = 1 } };
	for (unsigned i = 0; i < AGENTS; i++) {
		snprintf(sockets[i], sizeof(sockets[i]), "%s/%s", folder, names[i]);
		agents[i] = (struct conf_agent){ .name = names[i], .workers = 1, .peer_socket = sockets[i] };
		memcpy(&agents[i].peer, &loopback, sizeof(loopback));
	}
	loop = worker_create(0, "unit");
	ck_assert_ptr_nonnull(loop);
	for (unsigned i = 0; i < 2; i++)
		side_start(i, i + 1);
}

static void turn(void)
{
	for (unsigned i = 0; i < 2; i++)
		if (sides[i].peers.life == PEERS_OPEN)
			peer_tick(sides[i].peers.at[1 - i], cluster_now_ms());
	uv_run(worker_loop(loop), UV_RUN_NOWAIT);
	usleep(1000);
}

static void side_close(unsigned agent)
{
	struct side *s = &sides[agent];

	if (s->peers.life == PEERS_CLOSING)
		return;
	peers_close(&s->peers);
	for (unsigned i = 0; i < PATIENCE_MS && !s->closed; i++)
		turn();
	ck_assert_uint_eq(s->closed, 1);
}

static void teardown(void)
{
	for (unsigned i = 0; i < 2; i++) {
		side_close(i);
		peers_free(&sides[i].peers);
		sending_keys_destroy(sides[i].sending);
		broadcast_receiver_destroy(sides[i].receiver);
	}
	worker_destroy(loop);
	for (unsigned i = 0; i < AGENTS; i++)
		unlink(sockets[i]);
	rmdir(folder);
}

static struct peer *peer_of(unsigned agent)
{
	return sides[agent].peers.at[1 - agent];
}

static void link_them(void)
{
	for (unsigned i = 0; i < PATIENCE_MS && (peer_of(0)->state != PEER_UP || peer_of(1)->state != PEER_UP); i++)
		turn();
	ck_assert_int_eq(peer_of(0)->state, PEER_UP);
	ck_assert_int_eq(peer_of(1)->state, PEER_UP);
}

START_TEST(the_lower_name_makes_the_link)
{
	link_them();
	ck_assert_uint_eq(sides[0].ups, 1);
	ck_assert_uint_eq(sides[1].ups, 1);
	ck_assert(peer_link_passes_fds(peer_of(0)->link));
	ck_assert(peers_alive(&sides[0].peers, 1));
	ck_assert(!peers_listens(&sides[0].peers, 1)); /* it has not confirmed a key */
	ck_assert(!peers_alive(&sides[0].peers, 2));
}
END_TEST

START_TEST(pings_tell_the_clock_and_ready_is_remembered)
{
	Cssl__PeerMessage m = CSSL__PEER_MESSAGE__INIT;

	link_them();
	m.what_case = CSSL__PEER_MESSAGE__WHAT_READY;
	m.ready = 1;
	ck_assert_int_eq(peer_send(peer_of(0), &m), 0);
	for (unsigned i = 0; i < PATIENCE_MS && peer_of(1)->readiness != PEER_READY; i++)
		turn();
	ck_assert_int_eq(peer_of(1)->readiness, PEER_READY);
	ck_assert_int_eq(peer_of(0)->readiness, PEER_NOT_READY);
	for (unsigned i = 0; i < PATIENCE_MS && peer_of(0)->ping_sent_ms != 0; i++)
		turn();
	ck_assert_int_eq(broadcast_receiver_view(sides[0].receiver, 1).clock.state, PEER_CLOCK_KNOWN);
	ck_assert_uint_eq(broadcast_receiver_view(sides[0].receiver, 1).boot_id, 2);
}
END_TEST

static void send_absent(void)
{
	uint8_t id[SESSION_ID_LEN] = { 1 };
	Cssl__PeerMessage m = CSSL__PEER_MESSAGE__INIT;

	m.what_case = CSSL__PEER_MESSAGE__WHAT_ABSENT;
	m.absent = (ProtobufCBinaryData){ sizeof(id), id };
	ck_assert_int_eq(peer_send(peer_of(0), &m), 0);
	for (unsigned i = 0; i < PATIENCE_MS && sides[1].messages == 0; i++)
		turn();
	ck_assert_uint_eq(sides[1].messages, 1);
}

START_TEST(what_a_peer_says_comes_to_its_owner)
{
	link_them();
	send_absent();
	ck_assert_int_eq(peer_of(1)->state, PEER_UP);
}
END_TEST

START_TEST(who_breaks_the_protocol_loses_the_link_and_makes_it_again)
{
	link_them();
	sides[1].answer = -1;
	send_absent();
	for (unsigned i = 0; i < PATIENCE_MS && sides[0].ups < 2; i++)
		turn();
	ck_assert_uint_eq(sides[0].ups, 2);
	ck_assert_uint_eq(sides[1].downs, 1);
}
END_TEST

START_TEST(a_peer_that_closes_is_down_and_away)
{
	link_them();
	side_close(0);
	for (unsigned i = 0; i < PATIENCE_MS && sides[1].downs == 0; i++)
		turn();
	ck_assert_uint_eq(sides[1].downs, 1);
	ck_assert_int_eq(peer_of(1)->state, PEER_AWAY);
	ck_assert(!peers_alive(&sides[1].peers, 0));
	ck_assert_int_lt(peer_send(peer_of(1), &(Cssl__PeerMessage)CSSL__PEER_MESSAGE__INIT), 0);
}
END_TEST

START_TEST(who_confirmed_a_key_holds_it_until_the_next_is_used)
{
	struct peer *p = peer_of(0);

	ck_assert(peers_hold_key(&sides[0].peers, 1)); /* nobody has a link */
	link_them();
	ck_assert(!peers_hold_key(&sides[0].peers, 1));
	p->key_held = 1;
	turn();
	ck_assert(peers_listens(&sides[0].peers, 1));
	ck_assert(peers_hold_key(&sides[0].peers, 1));
	ck_assert(!peers_hold_key(&sides[0].peers, 2));
	ck_assert_int_eq(sending_keys_roll(sides[0].sending, 0), 0);
	turn();
	ck_assert(peers_listens(&sides[0].peers, 1));
	ck_assert(sending_keys_step(sides[0].sending, true, 0));
	turn();
	ck_assert(!peers_listens(&sides[0].peers, 1));
	p->key_held = 2;
	turn();
	ck_assert(peers_listens(&sides[0].peers, 1));
	ck_assert(peers_hold_key(&sides[0].peers, 2));
}
END_TEST

START_TEST(a_key_is_held_when_all_peers_hold_it)
{
	struct peer *p = peer_of(0), *other = sides[0].peers.at[2];

	link_them();
	p->key_held = 2;
	other->state = PEER_UP; /* without a link: it is only asked what it holds */
	ck_assert(!peers_hold_key(&sides[0].peers, 2));
	other->key_held = 1; /* the one before */
	ck_assert(!peers_hold_key(&sides[0].peers, 2));
	other->key_held = 2;
	ck_assert(peers_hold_key(&sides[0].peers, 2));
	p->key_held = 1;
	ck_assert(!peers_hold_key(&sides[0].peers, 2));
	other->state = PEER_AWAY;
}
END_TEST

/* It has the same memory. */
START_TEST(a_link_that_is_made_again_does_not_change_what_a_peer_holds)
{
	link_them();
	peer_of(0)->key_held = 1;
	sides[1].answer = -1;
	send_absent();
	for (unsigned i = 0; i < PATIENCE_MS && sides[0].ups < 2; i++)
		turn();
	ck_assert_uint_eq(sides[0].ups, 2);
	ck_assert_uint_eq(peer_of(0)->key_held, 1);
}
END_TEST

START_TEST(a_process_that_starts_again_holds_no_key)
{
	link_them();
	peer_of(0)->key_held = 1;
	side_close(1);
	peers_free(&sides[1].peers);
	sending_keys_destroy(sides[1].sending);
	broadcast_receiver_destroy(sides[1].receiver);
	side_start(1, AGENTS + 1);
	link_them();
	ck_assert_uint_eq(peer_of(0)->key_held, 0);
}
END_TEST

START_TEST(the_others_are_visited_in_their_order_without_this_one)
{
	struct peer *p = peers_next(&sides[1].peers, NULL);

	ck_assert_uint_eq(p->index, 0);
	p = peers_next(&sides[1].peers, p);
	ck_assert_uint_eq(p->index, 2);
	ck_assert_ptr_null(peers_next(&sides[1].peers, p));
}
END_TEST

START_TEST(holders_are_members_and_not_this_agent)
{
	struct peers *all = &sides[1].peers;

	placement_set(all->placement, 2, MEMBER_HERE);
	for (unsigned i = 0; i < 50; i++) {
		uint8_t id[SESSION_ID_LEN];
		randombytes_buf(id, sizeof(id));
		const struct placement_ranks holders = peers_holders(all, id, AGENTS);

		ck_assert_uint_eq(holders.count, 1);
		ck_assert_uint_eq(holders.agents[0], 2);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, the_lower_name_makes_the_link);
	tcase_add_test(tcase, pings_tell_the_clock_and_ready_is_remembered);
	tcase_add_test(tcase, what_a_peer_says_comes_to_its_owner);
	tcase_add_test(tcase, who_breaks_the_protocol_loses_the_link_and_makes_it_again);
	tcase_add_test(tcase, a_peer_that_closes_is_down_and_away);
	tcase_add_test(tcase, who_confirmed_a_key_holds_it_until_the_next_is_used);
	tcase_add_test(tcase, a_key_is_held_when_all_peers_hold_it);
	tcase_add_test(tcase, a_link_that_is_made_again_does_not_change_what_a_peer_holds);
	tcase_add_test(tcase, a_process_that_starts_again_holds_no_key);
	tcase_add_test(tcase, the_others_are_visited_in_their_order_without_this_one);
	tcase_add_test(tcase, holders_are_members_and_not_this_agent);
}

UNIT(peers)
{
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	return run_suite("peers", add);
}
