/* test_received.c: facts of the Received field (RFC 5321 4.4). */
#include "smtpproxy/envelope/envelope.h"

#include <stdio.h>
#include <string.h>

#include "net/socket/address.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static char out[RECEIVED_MAX + 1];

/* All before " by ". */
static const char *from(const char *hello, const char *client)
{
	struct sockaddr_storage a;
	ck_assert_int_eq(address_parse(client, &a), 0);
	const struct received r = { hello, (const struct sockaddr *)&a, "mx.example", "4f2a", "ESMTPS", 0 };
	const size_t len = received_write(&r, out);
	ck_assert_uint_eq(len, strlen(out));
	char *by = strstr(out, "\r\n\tby ");
	ck_assert_ptr_nonnull(by);
	ck_assert_str_eq(by, "\r\n\tby mx.example with ESMTPS id 4f2a;\r\n\tThu, 01 Jan 1970 00:00:00 +0000\r\n");
	*by = '\0';
	return out;
}

static const struct {
	const char *hello, *client, *from;
} rows[] = {
	{ "a.example", "198.51.100.12:60703", "Received: from a.example ([198.51.100.12])" },
	{ "a.example", "[2001:db8::5]:1234", "Received: from a.example ([IPv6:2001:db8::5])" },
	{ "[198.51.100.12]", "198.51.100.12:1", "Received: from [198.51.100.12] ([198.51.100.12])" },
	{ "[IPv6:2001:db8::5]", "[2001:db8::5]:1", "Received: from [IPv6:2001:db8::5] ([IPv6:2001:db8::5])" },
	{ "a(by", "192.0.2.1:1", "Received: from [192.0.2.1] ([192.0.2.1]) (EHLO a?by)" },
	{ "(by x.example)", "192.0.2.1:1", "Received: from [192.0.2.1] ([192.0.2.1]) (EHLO ?by?x.example?)" },
	{ "m\xc3\xbc\\ \";@<>", "192.0.2.1:1",
		"Received: from [192.0.2.1] ([192.0.2.1]) (EHLO m?????????"
		")" },
	{ "my_pc", "192.0.2.1:1", "Received: from [192.0.2.1] ([192.0.2.1]) (EHLO my_pc)" },
	{ "", "192.0.2.1:1", "Received: from [192.0.2.1] ([192.0.2.1]) (EHLO )" },
};

START_TEST(the_client_is_a_domain_or_a_literal_with_its_address)
{
	for (size_t i = 0; i < SUITE_LEN(rows); i++)
		ck_assert_str_eq(from(rows[i].hello, rows[i].client), rows[i].from);
}
END_TEST

START_TEST(the_longest_names_have_room)
{
	char hello[300], domain[256] = "";
	memset(hello, 'x', 255);
	hello[255] = '\0';
	while (strlen(domain) < 250)
		strcat(domain, "a.");
	strcat(domain, "b");
	from(hello, "[2001:db8:1111:2222:3333:4444:5555:6666]:1");
	from(domain, "192.0.2.1:1");
}
END_TEST

UNIT(received)
{
	const TTest *facts[] = {
		the_client_is_a_domain_or_a_literal_with_its_address,
		the_longest_names_have_room,
	};
	return suite_run("received", facts, SUITE_LEN(facts));
}
