/* lost_owner.c: a connection whose owner has something of the client, and dies. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/ragent/lost_owner.h"

struct live_connection l;

void begin_owned_with(const struct dispatcher_wish *wish)
{
	dispatcher_start(wish);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 2);
	free(frame_at(l.handshake_agent, FRAME_DETACH));
}

void begin_owned(void)
{
	begin_owned_with(NULL);
}

void request(uint16_t body)
{
	size_t before = fake_agent_data_len(d.agents[l.agent], l.stream);

	client_send_record(l.fd, TLS_APPLICATION_DATA, body, 9);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == before + RECORD_OF((size_t)body));
}

void consumed(uint64_t records, uint32_t read_generation, uint8_t flags)
{
	const struct frame_consumed c = {
		.client_records = records,
		.read_generation = read_generation,
		.read_sequence = read_generation ? 0 : records - 2,
	};

	fake_agent_consumed(d.agents[l.agent], l.stream, &c, flags);
	wait_until(connection_only()->now.position.now.client_records == records);
}

Cssl__LinkSslId *lose_owner(void)
{
	fake_agent_die(d.agents[l.agent]);
	return ssl_id_take(&l, -1);
}

void forget(Cssl__LinkSslId *id)
{
	cssl__link_ssl_id__free_unpacked(id, NULL);
}

void call_dead(int agent)
{
	child_dies(agent_becomes_child(agent));
}

void leave_download(const char *blob)
{
	Cssl__LinkDownload m = CSSL__LINK_DOWNLOAD__INIT;

	m.sealed = (ProtobufCBinaryData){ strlen(blob), (uint8_t *)blob };
	fake_agent_say(d.agents[l.agent], l.stream, FRAME_DOWNLOAD, &m.base);
}
