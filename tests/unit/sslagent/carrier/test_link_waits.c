/* test_link_waits.c: facts of a client that has to wait before its next record is opened: a RAgent that knows the flag
 * hears of it. */
#include <string.h>
#include <unistd.h>

#include "sslagent/carrier/link_inside.h"
#include "tests/unit/sslagent/carrier/link_peer.h"
#include "tests/unit/unit.h"

#define AT_ONCE 9 /* KeyUpdates: eight, and one behind which the next record waits */

static void open_proven_peers(enum link_waits waits)
{
	peer_waits = waits;
	open_peers();
	send_frame(&p, 0, FRAME_PROOF, proof, sizeof proof);
}

static void close_waits(void)
{
	close_peers();
	peer_waits = LINK_WAITS_UNKNOWN;
}

static void client_updates_keys(void)
{
	begin_client(&p);
	SSL *ssl = memory_client_ssl(p.client);
	for (unsigned i = 0; i < AT_ONCE; i++) {
		ck_assert_int_eq(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
		ck_assert_int_eq(SSL_do_handshake(ssl), 1);
	}
}

static uint32_t read_generation(const struct peer *x)
{
	struct frame_consumed c;

	if (count_of(x, FRAME_CONSUMED) == 0)
		return 0;
	ck_assert_int_eq(frame_consumed_read(last_of(x, FRAME_CONSUMED), &c), 0);
	return c.read_generation;
}

static int client_waits(const struct peer *x)
{
	return (last_of(x, FRAME_CONSUMED)->flags & FRAME_CLIENT_WAITS) != 0;
}

START_TEST(a_ragent_that_knows_it_hears_when_the_client_waits)
{
	open_proven_peers(LINK_WAITS_KNOWN);
	client_updates_keys();
	peers_until(read_generation(&p) == AT_ONCE);
	ck_assert(client_waits(&p));
	peers_until(!client_waits(&p));
	close_waits();
}
END_TEST

START_TEST(an_older_ragent_never_gets_the_flag)
{
	if (_i)
		open_peers();
	else
		open_proven_peers(LINK_WAITS_UNKNOWN);
	client_updates_keys();
	peers_until(read_generation(&p) == AT_ONCE);
	for (unsigned i = 0; i < p.count; i++)
		ck_assert(p.frames[i].type != FRAME_CONSUMED || !(p.frames[i].flags & FRAME_CLIENT_WAITS));
	close_waits();
}
END_TEST

/* It was held for the next process, and that one is of an older release. */
START_TEST(a_frame_that_is_sent_again_has_no_flag_that_ragent_does_not_know)
{
	open_proven_peers(LINK_WAITS_KNOWN);
	client_updates_keys();
	peers_until(read_generation(&p) == AT_ONCE);
	close(p.fd);
	p.fd = -1;
	wait_until(carriers.parked != NULL);
	peer_waits = LINK_WAITS_UNKNOWN;
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	send_reattach(&q, 1);
	peers_until(read_generation(&q) == AT_ONCE);
	for (unsigned i = 0; i < q.count; i++)
		ck_assert(q.frames[i].type != FRAME_CONSUMED || !(q.frames[i].flags & FRAME_CLIENT_WAITS));
	close_waits();
}
END_TEST

UNIT(link_waits)
{
	const struct connection_fact facts[] = {
		{ a_ragent_that_knows_it_hears_when_the_client_waits, 0 },
		{ an_older_ragent_never_gets_the_flag, 2 },
		{ a_frame_that_is_sent_again_has_no_flag_that_ragent_does_not_know, 0 },
	};

	return connection_suite_run("link_waits", facts, FACTS_LEN(facts));
}
