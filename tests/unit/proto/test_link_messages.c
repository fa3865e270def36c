/* test_link_messages.c: the generated messages are built, and every header of them can be included beside the others.
 */
#include <string.h>

#include "proto/broadcast.pb-c.h"
#include "proto/link.pb-c.h"
#include "proto/peer.pb-c.h"
#include "proto/sess_obj.pb-c.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(ssl_id_unpacks_as_packed)
{
	uint8_t packed[256], id[16] = "connection id 1", copy[40] = "sealed";
	Cssl__LinkSslId m = CSSL__LINK_SSL_ID__INIT;
	Cssl__Position position = CSSL__POSITION__INIT;
	m.connection_id = (ProtobufCBinaryData){ .len = sizeof(id), .data = id };
	m.sealed_copy = (ProtobufCBinaryData){ .len = sizeof(copy), .data = copy };
	m.epoch = 2;
	m.cause = CSSL__CAUSE__CAUSE_TAKEOVER;
	m.position = &position;
	position.read_sequence = UINT64_MAX;
	size_t len = cssl__link_ssl_id__pack(&m, packed);
	ck_assert_uint_le(len, sizeof(packed));

	Cssl__LinkSslId *back = cssl__link_ssl_id__unpack(NULL, len, packed);
	ck_assert_ptr_nonnull(back);
	ck_assert_mem_eq(back->connection_id.data, id, sizeof(id));
	ck_assert_uint_eq(back->epoch, 2);
	ck_assert_int_eq(back->cause, CSSL__CAUSE__CAUSE_TAKEOVER);
	ck_assert_uint_eq(back->position->read_sequence, UINT64_MAX);
	cssl__link_ssl_id__free_unpacked(back, NULL);
}
END_TEST

START_TEST(a_cut_message_does_not_unpack)
{
	uint8_t packed[64], id[16] = "connection id 2";
	Cssl__LinkOpen m = CSSL__LINK_OPEN__INIT;
	m.connection_id = (ProtobufCBinaryData){ .len = sizeof(id), .data = id };
	size_t len = cssl__link_open__pack(&m, packed);
	ck_assert_ptr_null(cssl__link_open__unpack(NULL, len - 1, packed));
}
END_TEST

UNIT(link_messages)
{
	const TTest *facts[] = { ssl_id_unpacks_as_packed, a_cut_message_does_not_unpack };
	return suite_run("link_messages", facts, SUITE_LEN(facts));
}
