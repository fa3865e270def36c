/* test_link_waits.c: facts of a client that has to wait before its next record is opened: RAgent hears of it. */
#include <string.h>
#include <unistd.h>

#include "sslagent/carrier/link.h"
#include "tests/unit/sslagent/carrier/link_peer.h"
#include "tests/unit/unit.h"

#define AT_ONCE 9 /* KeyUpdates: eight, and one behind which the next record waits */

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

START_TEST(ragent_hears_when_the_client_waits)
{
	open_proven_peers();
	client_updates_keys();
	peers_until(read_generation(&p) == AT_ONCE);
	ck_assert(client_waits(&p));
	peers_until(!client_waits(&p));
	close_peers();
}
END_TEST

/* It was held for the next process. */
START_TEST(a_frame_that_is_sent_again_has_its_flag)
{
	open_proven_peers();
	client_updates_keys();
	peers_until(read_generation(&p) == AT_ONCE);
	close(p.fd);
	p.fd = -1;
	wait_until(carriers.parked != NULL);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	send_reattach(&q, 1);
	peers_until(read_generation(&q) == AT_ONCE);
	ck_assert(client_waits(&q));
	close_peers();
}
END_TEST

UNIT(link_waits)
{
	const struct connection_fact facts[] = {
		{ ragent_hears_when_the_client_waits, 0 },
		{ a_frame_that_is_sent_again_has_its_flag, 0 },
	};

	return connection_suite_run("link_waits", facts, FACTS_LEN(facts));
}
