/* test_overlap.c: facts of addresses that one process cannot listen on at once. */
#include "tests/unit/conf/cluster_text.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/unit.h"

#define LISTEN           "127.0.0.1:8443, '[::1]:8443'"
#define DIRECT(address)  "      - { address: '" address "', listener: sf }\n"
#define A1_PEER          "    peer: 127.0.0.1:7101\n"
#define A2_PEER          "    peer: 127.0.0.1:7102\n"
#define CONTROL(address) "    control: c\n    control_tokens: t\n    control_address: " address "\n"
#define AND_LISTENER(name, where)                                                                                      \
	"  - { name: " name ", listen: [ '" where "' ], backend: web, tls: { certificates: [ main ] } }\n"
#define ALONE(line) " in line " line ", or one of the two alone: the same process listens on both"

static const struct fault faults[] = {
	{ LISTEN, "0.0.0.0:8443, 127.0.0.1:8443",
		"c.yaml:22: key 'listen': found '127.0.0.1:8443', expected another port than 0.0.0.0:8443" ALONE(
			"22") },
	{ LISTEN, "10.0.0.1:8443, 0.0.0.0:8443",
		"c.yaml:22: key 'listen': found '0.0.0.0:8443', expected another port than 10.0.0.1:8443" ALONE("22") },
	{ LISTEN, "'[::]:8443', '[2001:db8::1]:8443'",
		"c.yaml:22: key 'listen': found '[2001:db8::1]:8443', expected another port than [::]:8443" ALONE(
			"22") },
	{ "listeners:\n", "listeners:\n" AND_LISTENER("all", "0.0.0.0:8443"),
		"c.yaml:23: key 'listen': found '127.0.0.1:8443', expected another port than 0.0.0.0:8443" ALONE(
			"21") },
	{ "    workers: 2\n", CONTROL("127.0.0.1:8443"),
		"c.yaml:7: key 'control_address': found '127.0.0.1:8443', expected another port than "
		"127.0.0.1:8443" ALONE("24") },
	{ A2_PEER, A2_PEER "    direct:\n" DIRECT("0.0.0.0:443") DIRECT("10.0.0.1:443"),
		"c.yaml:15: key 'address': found '10.0.0.1:443', expected another port than 0.0.0.0:443" ALONE("14") },
	{ A2_PEER, A2_PEER "    direct:\n" DIRECT("127.0.0.1:7102"),
		"c.yaml:14: key 'address': found '127.0.0.1:7102', expected another port than 127.0.0.1:7102" ALONE(
			"12") },
	{ A1_PEER, A1_PEER "    direct:\n" DIRECT("0.0.0.0:7001"),
		"c.yaml:11: key 'address': found '0.0.0.0:7001', expected another port than 127.0.0.1:7001" ALONE(
			"8") },
};

START_TEST(an_overlap_is_told)
{
	check_fault(&faults[_i]);
}
END_TEST

static const struct {
	const char *from, *to;
} allowed[] = {
	{ LISTEN, "0.0.0.0:8443, '[::]:8443'" },      /* IPv6 sockets take no IPv4 */
	{ LISTEN, "0.0.0.0:8443, '[::1]:8443'" },     /* nor the other way round */
	{ LISTEN, "127.0.0.1:8443, 127.0.0.2:8443" }, /* two of the host's addresses */
	{ LISTEN, "0.0.0.0:8443, 127.0.0.1:8444" },
	{ LISTEN, "0.0.0.0:0, 127.0.0.1:0" },
	{ LISTEN, "0.0.0.0:7001" }, /* an agent has it, which may be on another host */
	{ "    workers: 2\n", CONTROL("127.0.0.1:8444") },
	{ A2_PEER, A2_PEER "    direct:\n" DIRECT("0.0.0.0:7001") DIRECT("[::]:7001") },
	{ A2_PEER, A2_PEER "    direct:\n" DIRECT("0.0.0.0:8443") },
};

START_TEST(addresses_that_do_not_overlap_are_taken)
{
	conf_destroy(good(edited(allowed[_i].from, allowed[_i].to)));
}
END_TEST

START_TEST(agents_may_be_on_several_hosts)
{
	const char *text = edited(A2_PEER, A2_PEER "    direct:\n" DIRECT("0.0.0.0:443"));
	char both[EDITED_MAX];
	const char *peer = strstr(text, A1_PEER) + strlen(A1_PEER);
	snprintf(both, sizeof both, "%.*s    direct:\n" DIRECT("10.0.0.1:443") "%s", (int)(peer - text), text, peer);
	conf_destroy(good(both));
}
END_TEST

UNIT(overlap)
{
	TCase *facts = tcase_create("overlap");
	tcase_add_loop_test(facts, an_overlap_is_told, 0, ROWS(faults));
	tcase_add_loop_test(facts, addresses_that_do_not_overlap_are_taken, 0, ROWS(allowed));
	tcase_add_test(facts, agents_may_be_on_several_hosts);
	return facts_run(facts);
}
