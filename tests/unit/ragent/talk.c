/* talk.c: see talk.h. */
#include "tests/unit/ragent/talk.h"

#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"

struct talk t;

uint64_t ended(enum end_reason reason)
{
	return counter_get(&d.rw->home.counters.ended[reason]);
}

void talk_taken_by(struct fake_frame *f, int agent)
{
	Cssl__LinkPreamble *m = cssl__link_preamble__unpack(NULL, f->len, f->payload);

	ck_assert_ptr_nonnull(m);
	ck_assert_str_eq(m->listener, "sf");
	ck_assert_uint_eq(m->connection_id.len, CONNECTION_ID_LEN);
	ck_assert_uint_eq(m->endpoints->client_address.len, 4);
	cssl__link_preamble__free_unpacked(m, NULL);
	t.agent = agent;
	t.stream = f->stream;
	free(f);
}

void talk_begin(void)
{
	int agent;

	t.fd = client_connect("sf");
	struct fake_frame *f = frame_anywhere(FRAME_PREAMBLE, &agent);
	talk_taken_by(f, agent);
}

void agent_says(const char *words, uint8_t flags)
{
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_DATA, flags, words, strlen(words));
}

void talk_greeted(void)
{
	talk_begin();
	agent_says(BANNER, WHOLE);
	client_expect(t.fd, BANNER, strlen(BANNER));
}

void client_says(const char *words)
{
	write_all(t.fd, words, strlen(words));
}

void agent_hears(const char *words)
{
	char heard[256];

	wait_until(fake_agent_data_len(d.agents[t.agent], t.stream) >= strlen(words));
	size_t len = fake_agent_take_data(d.agents[t.agent], t.stream, (uint8_t *)heard, sizeof heard);
	ck_assert_uint_eq(len, strlen(words));
	ck_assert_mem_eq(heard, words, len);
}

void agent_took(uint64_t bytes)
{
	uint8_t payload[8];

	wire_store_u64(payload, bytes);
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_TAKEN, 0, payload, sizeof payload);
}

void starttls(void)
{
	client_says(STARTTLS);
	agent_hears(STARTTLS);
	agent_took(strlen(STARTTLS));
	agent_says(READY, WHOLE | FRAME_RECORDS_FOLLOW);
}

void expect_injection(void)
{
	client_expect_reset(t.fd);
	ck_assert_uint_eq(ended(END_INJECTION), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.starttls_injections), 1);
	close(t.fd);
}
