/* test_link_superseded.c: facts of a link whose end the agent has not seen, or sees late: the next link of the same
 * line supersedes it, and TCP gives it up in time. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "net/stream/stream.h"
#include "sslagent/carrier/link.h"
#include "sslagent/counters.h"
#include "tests/unit/sslagent/carrier/link_peer.h"
#include "tests/unit/unit.h"

START_TEST(a_link_whose_end_was_not_seen_is_superseded)
{
	open_peers();
	send_frame(&p, 0, FRAME_PROOF, proof, sizeof proof);
	begin_client(&p);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	send_reattach(&q, 1);
	peers_until(count_of(&q, FRAME_REATTACHED) == 1);
	peers_until(p.ended);
	ck_assert_uint_eq(a1.worker.table.count, 1);
	close_peers();
}
END_TEST

/* RAgent asks for none of its streams. */
START_TEST(a_proof_alone_supersedes_the_link_before)
{
	set_lost_ms(600);
	open_peers();
	send_frame(&p, 0, FRAME_PROOF, proof, sizeof proof);
	begin_client(&p);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	peers_until(p.ended);
	ck_assert_uint_eq(counted(COUNT_LINKS_LOST), 1);
	ck_assert_uint_eq(counted(COUNT_STREAMS_PARKED), 1);
	ck_assert(!q.ended);
	close_peers();
}
END_TEST

/* It was read after that of the next link. */
START_TEST(a_late_proof_supersedes_its_own_link)
{
	set_lost_ms(600);
	open_peers();
	begin_client(&p);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	wait_until(carriers.links->proven == LINK_PROVEN);
	send_frame(&p, 0, FRAME_PROOF, proof, sizeof proof);
	peers_until(p.ended);
	ck_assert(!q.ended);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	close_peers();
}
END_TEST

/* RAgent gives its connection to another agent at once. */
START_TEST(what_cannot_go_on_ends_when_its_link_is_superseded)
{
	set_lost_ms(600);
	open_peers();
	send_frame(&p, 0, FRAME_PROOF, proof, sizeof proof);
	begin_client(&p);
	struct link_stream *s = streams_find(&carriers.links->streams, 1);
	s->held.state = HELD_BROKEN;
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	send_reattach(&q, 1);
	peers_until(count_of(&q, FRAME_REFUSED) == 1);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	close_peers();
}
END_TEST

/* TCP gives a link up before its RAgent, which has a `lost` of its own, thinks the agent lost. */
START_TEST(a_link_lives_without_a_network_for_less_than_lost)
{
	const int lost_ms = 1200;
	int limit_ms = 0;
	socklen_t len = sizeof limit_ms;

	peer_over = OVER_TCP4;
	set_lost_ms((uint32_t)lost_ms);
	open_peers();
	peer_over = OVER_UNIX;
	ck_assert_int_eq(
		getsockopt(stream_fd(&carriers.links->framed.stream), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, &len),
		0);
	ck_assert_int_gt(limit_ms, 0);
	ck_assert_int_lt(limit_ms, lost_ms - lost_ms / 10);
	close_peers();
}
END_TEST

/* So TCP misses its acknowledgement from then on, also if the agent has nothing to say. But RAgent is not kept in the
 * belief that all is well. */
START_TEST(a_silent_link_is_tried_once)
{
	const uint32_t lost_ms = 600;

	peer_over = OVER_TCP4;
	set_lost_ms(lost_ms);
	open_peers();
	peer_over = OVER_UNIX;
	for (unsigned tried = 1; tried <= 2; tried++) {
		peers_until(count_of(&p, FRAME_LOAD) == 2 * tried);
		const uint64_t end_ms = now_ms() + lost_ms / 2;
		peers_until(now_ms() >= end_ms);
		ck_assert_uint_eq(count_of(&p, FRAME_LOAD), 2 * tried);
		send_frame(&p, 0, FRAME_PING, proof, 8);
	}
	close_peers();
}
END_TEST

START_TEST(an_unproven_link_has_nothing_to_go_on_with)
{
	open_peers();
	begin_client(&p);
	send_reattach(&p, 1);
	peers_until(p.ended);
	ck_assert_uint_eq(counted(COUNT_LINK_VIOLATIONS), 1);
	close_peers();
}
END_TEST

UNIT(link_superseded)
{
	const struct connection_fact facts[] = {
		{ a_link_whose_end_was_not_seen_is_superseded, 0 },
		{ a_proof_alone_supersedes_the_link_before, 0 },
		{ a_late_proof_supersedes_its_own_link, 0 },
		{ what_cannot_go_on_ends_when_its_link_is_superseded, 0 },
		{ a_link_lives_without_a_network_for_less_than_lost, 0 },
		{ a_silent_link_is_tried_once, 0 },
		{ an_unproven_link_has_nothing_to_go_on_with, 0 },
	};

	return connection_suite_run("link_superseded", facts, FACTS_LEN(facts));
}
