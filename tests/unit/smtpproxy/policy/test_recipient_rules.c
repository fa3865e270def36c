/* test_recipient_rules.c: facts about whose mail a listener takes. */
#include "smtpproxy/policy/destination_rules.h"

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static char first[] = "Ours.example", second[] = "*.ours.example";
static char *domains[] = { first, second };
static struct address_net clients[2];
static struct smtpproxy_listener listener;

static void begin(void)
{
	ck_assert_int_eq(address_net_parse("10.0.0.0/8", &clients[0]), 0);
	ck_assert_int_eq(address_net_parse("2001:db8::/32", &clients[1]), 0);
	listener = (struct smtpproxy_listener){
		.clients = clients, .client_count = 2, .accept = domains, .accept_count = 2
	};
}

static enum recipient_sender sender(const char *address)
{
	struct sockaddr_storage a;
	ck_assert_int_eq(address_parse(address, &a), 0);
	return recipient_rules_sender(&listener, (const struct sockaddr *)&a);
}

static enum smtp_own judge(enum recipient_sender who, const char *text)
{
	struct smtp_span rest = smtp_span_of(text);
	struct smtp_path path;
	ck_assert_int_eq(smtp_path_take(&rest, SMTP_PARSE_LENIENT, &path), 0);
	return recipient_rules_judge(&listener, who, &path);
}

static int is_taken(const char *text)
{
	return judge(RECIPIENT_OF_STRANGER, text) == SMTP_OWN_NONE;
}

START_TEST(clients_are_those_of_the_networks)
{
	ck_assert_int_eq(sender("10.1.2.3:25"), RECIPIENT_OF_CLIENT);
	ck_assert_int_eq(sender("[::ffff:10.1.2.3]:25"), RECIPIENT_OF_CLIENT);
	ck_assert_int_eq(sender("[2001:db8::1]:25"), RECIPIENT_OF_CLIENT);
	ck_assert_int_eq(sender("11.0.0.1:25"), RECIPIENT_OF_STRANGER);
	listener.client_count = 0;
	ck_assert_int_eq(sender("10.1.2.3:25"), RECIPIENT_OF_STRANGER);
}
END_TEST

START_TEST(clients_send_to_anybody)
{
	ck_assert_int_eq(judge(RECIPIENT_OF_CLIENT, "<a@elsewhere.example>"), SMTP_OWN_NONE);
	ck_assert_int_eq(judge(RECIPIENT_OF_CLIENT, "<a%b@elsewhere.example>"), SMTP_OWN_NONE);
}
END_TEST

START_TEST(strangers_send_to_the_domains_of_the_file)
{
	ck_assert(is_taken("<a@ours.example>"));
	ck_assert(is_taken("<a@OURS.example.>"));
	ck_assert(is_taken("<a@x.y.ours.example>"));
	ck_assert(is_taken("<@elsewhere.example:a@ours.example>"));
	ck_assert(!is_taken("<@ours.example:a@elsewhere.example>"));
	ck_assert(!is_taken("<a@elsewhere.example>"));
	ck_assert(!is_taken("<a@yours.example>"));
	ck_assert(!is_taken("<a@ours.example.elsewhere.example>"));
	ck_assert(!is_taken("<a@[192.0.2.1]>"));
	ck_assert(!is_taken("<a>"));
	ck_assert_int_eq(judge(RECIPIENT_OF_STRANGER, "<a@elsewhere.example>"), SMTP_OWN_RELAY_DENIED);
	listener.accept_count = 0;
	ck_assert(!is_taken("<a@ours.example>"));
}
END_TEST

START_TEST(strangers_name_no_route_in_the_local_part)
{
	ck_assert(!is_taken("<a%elsewhere.example@ours.example>"));
	ck_assert(!is_taken("<elsewhere.example!a@ours.example>"));
	ck_assert(!is_taken("<\"a@elsewhere.example\"@ours.example>"));
}
END_TEST

START_TEST(postmaster_is_taken_from_everybody)
{
	listener.accept_count = 0;
	ck_assert(is_taken("<Postmaster>"));
	ck_assert(!is_taken("<postmaster@elsewhere.example>"));
}
END_TEST

UNIT(recipient_rules)
{
	const TTest *facts[] = {
		clients_are_those_of_the_networks,
		clients_send_to_anybody,
		strangers_send_to_the_domains_of_the_file,
		strangers_name_no_route_in_the_local_part,
		postmaster_is_taken_from_everybody,
	};
	return suite_run_with("recipient_rules", begin, facts, SUITE_LEN(facts));
}
