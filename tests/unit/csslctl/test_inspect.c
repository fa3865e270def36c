/* test_inspect.c: facts of the offline inspection: which objects can be imported, why others cannot, and that no
 * secret is shown. */
#include <openssl/ssl.h>
#include <sodium.h>
#include <string.h>

#include "csslctl/inspect.h"
#include "csslctl/text.h"
#include "proto/agents_key.h"
#include "proto/sealed_copy.h"
#include "tests/unit/proto/sess_obj_samples.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define SUITE_TLS13 0x1301
#define LISTENER    sample.object.facts.listener

static struct sess_obj_sample sample;
static struct key_ring ring;
static uint8_t bytes[SESS_OBJ_LEN_MAX];
static uint8_t master_key[32];
static struct inspection what;

/* A session as OpenSSL writes it, in the place of the sample's filling. */
static void put_session(uint16_t version, const uint8_t *id)
{
	static uint8_t der[1024];
	uint8_t *at = der;
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	SSL *ssl = SSL_new(ctx);
	const uint8_t suite[] = { 0x13, 0x01 };
	SSL_SESSION *session = SSL_SESSION_new();
	SSL_SESSION_set_protocol_version(session, version);
	SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, suite));
	SSL_SESSION_set1_id(session, id, SESSION_ID_LEN);
	memset(master_key, 0xa7, sizeof master_key);
	SSL_SESSION_set1_master_key(session, master_key, sizeof master_key);
	ck_assert_int_lt(i2d_SSL_SESSION(session, NULL), (int)sizeof der);
	sample.object.session_len = (size_t)i2d_SSL_SESSION(session, &at);
	sample.object.session = der;
	SSL_SESSION_free(session);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

static void fresh(void)
{
	sess_obj_sample_fill(&sample, cipher_suite_find(SUITE_TLS13), SAMPLE_BOTH);
	put_session(TLS1_3_VERSION, sample.object.facts.session_id);
	memset(&ring, 0, sizeof ring);
	ring.count = 1;
	strcpy(ring.keys[0].id, "k1");
	memset(ring.keys[0].key, 0x5c, KEY_LEN);
	what = (struct inspection){ .bytes = bytes };
}

static void encode(void)
{
	const ptrdiff_t len = sess_obj_encode(&sample.object, bytes, sizeof bytes);
	ck_assert_int_gt(len, 0);
	what.len = (size_t)len;
}

static void seal(void)
{
	sample.object.session = NULL;
	sample.object.session_len = 0;
	const ptrdiff_t len = sealed_copy_seal(&ring, &sample.object, bytes, sizeof bytes);
	ck_assert_int_gt(len, 0);
	what.len = (size_t)len;
	what.agents_key = &ring;
	what.connection = &sample.live.connection;
	what.listener = LISTENER;
}

static void is_importable(void)
{
	json_t *found = inspect(&what);
	ck_assert_msg(json_is_true(member(found, "importable")), "%s", member_text(found, "reason"));
	ck_assert_ptr_null(member(found, "reason"));
	json_decref(found);
}

static void is_not(json_type importable, const char *reason)
{
	json_t *found = inspect(&what);
	ck_assert_int_eq(json_typeof(member(found, "importable")), importable);
	ck_assert_msg(strstr(member_text(found, "reason"), reason) != NULL, "'%s' is not '%s'",
		member_text(found, "reason"), reason);
	json_decref(found);
}

START_TEST(a_whole_object_is_importable)
{
	encode();
	is_importable();
}
END_TEST

START_TEST(each_part_alone_is_importable)
{
	sample.object.live = NULL;
	encode();
	is_importable();
	fresh();
	sample.object.session = NULL;
	sample.object.session_len = 0;
	encode();
	is_importable();
}
END_TEST

START_TEST(facts_alone_are_not)
{
	sample.object.live = NULL;
	sample.object.session = NULL;
	sample.object.session_len = 0;
	encode();
	is_not(JSON_FALSE, "neither a resumption part nor a live part");
}
END_TEST

START_TEST(time_makes_it_useless)
{
	sample.object.session_remaining_s = 100;
	sample.live.remaining_s = 50;
	encode();
	what.kept_s = 49;
	is_importable();
	what.kept_s = 50;
	is_not(JSON_FALSE, "live part has expired");
	what.kept_s = 100;
	is_not(JSON_FALSE, "session has expired");
}
END_TEST

START_TEST(a_session_of_another_id_or_version_is_refused)
{
	uint8_t other[SESSION_ID_LEN] = { 1 };
	put_session(TLS1_3_VERSION, other);
	encode();
	is_not(JSON_FALSE, "of another session");
	put_session(TLS1_2_VERSION, sample.object.facts.session_id);
	encode();
	is_not(JSON_FALSE, "of another TLS version");
}
END_TEST

START_TEST(a_session_that_openssl_does_not_read_is_refused)
{
	static const uint8_t nonsense[] = "no DER";
	sample.object.session = nonsense;
	sample.object.session_len = sizeof nonsense;
	encode();
	is_not(JSON_FALSE, "no session that OpenSSL reads");
}
END_TEST

START_TEST(a_copy_that_was_cut_or_is_something_else_is_refused)
{
	encode();
	what.len /= 2;
	is_not(JSON_FALSE, "");
	what.len = 0;
	is_not(JSON_FALSE, "neither a SESS_OBJ nor a sealed copy");
	memcpy(bytes, "PK\003\004", 4);
	what.len = 4;
	is_not(JSON_FALSE, "neither a SESS_OBJ nor a sealed copy");
}
END_TEST

START_TEST(it_must_be_of_the_listener_and_connection_asked_for)
{
	struct connection_id other = { { 9 } };
	encode();
	what.listener = "another";
	is_not(JSON_FALSE, "another listener");
	what.listener = LISTENER;
	what.connection = &other;
	is_not(JSON_FALSE, "another connection");
	what.connection = &sample.live.connection;
	is_importable();
}
END_TEST

START_TEST(a_sealed_copy_opens_with_all_that_it_is_bound_to)
{
	seal();
	is_importable();
}
END_TEST

START_TEST(a_sealed_copy_without_the_key_cannot_be_judged)
{
	seal();
	what.agents_key = NULL;
	is_not(JSON_NULL, "--agents-key");
	what.agents_key = &ring;
	what.connection = NULL;
	is_not(JSON_NULL, "--connection");
}
END_TEST

START_TEST(a_sealed_copy_under_an_unknown_key_is_refused)
{
	seal();
	strcpy(ring.keys[0].id, "k2");
	is_not(JSON_FALSE, "no key of that id");
}
END_TEST

START_TEST(a_changed_sealed_copy_is_refused)
{
	seal();
	bytes[what.len - 1] ^= 1;
	is_not(JSON_FALSE, "does not open");
	bytes[what.len - 1] ^= 1;
	what.listener = "another";
	is_not(JSON_FALSE, "does not open");
}
END_TEST

START_TEST(a_sealed_copy_grows_old)
{
	seal();
	what.kept_s = sample.live.remaining_s;
	is_not(JSON_FALSE, "expired");
	what.kept_s--;
	is_importable();
}
END_TEST

/* As it stands there, and in hexadecimal. */
static void holds_no(const char *text, const uint8_t *secret, size_t len)
{
	char hex[2 * 64 + 1];
	ck_assert_ptr_null(memmem(text, strlen(text), secret, len));
	ck_assert_ptr_null(strstr(text, sodium_bin2hex(hex, sizeof hex, secret, len)));
}

START_TEST(no_secret_is_shown)
{
	encode();
	json_t *found = inspect(&what);
	char *text = json_dumps(found, JSON_INDENT(2));
	holds_no(text, master_key, sizeof master_key);
	holds_no(text, sample.live.client_write.secret, sample.live.client_write.secret_len);
	holds_no(text, sample.live.server_write.secret, sample.live.server_write.secret_len);
	holds_no(
		text, sample.live.randoms.secret, sample.live.randoms.secret_len ? sample.live.randoms.secret_len : 32);
	ck_assert_ptr_nonnull(strstr(text, "not shown"));
	free(text);
	json_decref(found);
}
END_TEST

UNIT(inspect)
{
	const TTest *facts[] = { a_whole_object_is_importable, each_part_alone_is_importable, facts_alone_are_not,
		time_makes_it_useless, a_session_of_another_id_or_version_is_refused,
		a_session_that_openssl_does_not_read_is_refused, a_copy_that_was_cut_or_is_something_else_is_refused,
		it_must_be_of_the_listener_and_connection_asked_for, a_sealed_copy_opens_with_all_that_it_is_bound_to,
		a_sealed_copy_without_the_key_cannot_be_judged, a_sealed_copy_under_an_unknown_key_is_refused,
		a_changed_sealed_copy_is_refused, a_sealed_copy_grows_old, no_secret_is_shown };
	return suite_run_with("inspect", fresh, facts, SUITE_LEN(facts));
}
