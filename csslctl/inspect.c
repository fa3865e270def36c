/* inspect.c: an import like an agent's, without any change. */
#include "csslctl/inspect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/ask.h"
#include "proto/agents_key.h"
#include "proto/error.h"
#include "proto/sealed_copy.h"

#define MESSAGE_MAX 8192u
#define FORMAT_TAG  0x08u /* of a SESS_OBJ's first field, its format */

/* The first reason found stays. @importable: false, or null. */
static void inspect_judge(json_t *out, json_t *importable, const char *reason)
{
	if (json_object_get(out, "reason"))
		return;
	json_object_set_new(out, "importable", importable);
	json_object_set_new(out, "reason", must(json_string(reason)));
}

static void inspect_refuse(json_t *out, const char *reason)
{
	inspect_judge(out, json_false(), reason);
}

static void cannot_tell(json_t *out, const char *reason)
{
	inspect_judge(out, json_null(), reason);
}

static json_t *hex_json(const uint8_t *bytes, size_t len)
{
	char text[2 * SESSION_ID_LEN + 1];
	return len == 0 ? json_null() : must(json_string(sodium_bin2hex(text, sizeof text, bytes, len)));
}

/* A client may have put any bytes there. */
static json_t *inspect_text(const char *text)
{
	json_t *out = *text == '\0' ? json_null() : json_string(text);
	return out ? out : must(json_string("(no UTF-8)"));
}

static json_t *secret_json(size_t len)
{
	return len == 0 ? json_null() : must(json_sprintf("%zu bytes, not shown", len));
}

static json_t *client_json(const struct client_address *a)
{
	char text[INET6_ADDRSTRLEN];

	if (a->len == 0 || !inet_ntop(a->len == 4 ? AF_INET : AF_INET6, a->bytes, text, sizeof text))
		return json_null();
	return must(json_string(text));
}

static const char *version_text(uint16_t version)
{
	return version == TLS1_3_VERSION ? "1.3" : "1.2";
}

static json_t *facts_json(const struct sess_obj *o)
{
	const struct session_facts *f = &o->facts;
	const struct cipher_suite *suite = cipher_suite_find(f->cipher_suite);

	return must(json_pack("{s:s, s:s?, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:s}", "tls_version",
		version_text(f->protocol_version), "cipher_suite", suite ? suite->name : NULL, "session_id",
		hex_json(f->session_id, f->session_id_len), "family_id", hex_json(f->family_id, FAMILY_ID_LEN),
		"family_age_s", (json_int_t)f->family_age_s, "origin", inspect_text(f->origin), "listener",
		inspect_text(f->listener), "server_name", inspect_text(f->server_name), "alpn", inspect_text(f->alpn),
		"client", client_json(&f->client), "verify_result", (json_int_t)f->verify_result, "client_certificate",
		o->certificate_len ? must(json_sprintf("%zu bytes", o->certificate_len)) : json_null(),
		"certificate_seen_in",
		f->certificate_seen == CERTIFICATE_IN_CONNECTION ? "this connection" : "the family"));
}

static json_t *direction_json(const struct direction_keys *d)
{
	return must(json_pack("{s:o, s:o, s:o}", "secret", secret_json(d->secret_len), "key", secret_json(d->key_len),
		"iv", secret_json(d->iv_len)));
}

static json_t *live_json(const struct live_part *l)
{
	return must(json_pack("{s:o, s:i, s:I, s:I, s:I, s:I, s:i, s:I, s:b, s:o, s:o, s:o}", "connection",
		hex_json(l->connection.bytes, sizeof l->connection.bytes), "epoch", (int)l->epoch, "read_generation",
		(json_int_t)l->read_generation, "read_sequence", (json_int_t)l->read_sequence, "write_generation",
		(json_int_t)l->write_generation, "write_sequence", (json_int_t)l->write_sequence, "max_fragment",
		l->max_fragment ? (int)l->max_fragment : 16384, "remaining_s", (json_int_t)l->remaining_s,
		"key_update_owed", l->key_update == KEY_UPDATE_OWED, "client_write", direction_json(&l->client_write),
		"server_write", direction_json(&l->server_write), "exporter_secret",
		secret_json(l->randoms.secret_len)));
}

/* An agent gives the session to OpenSSL unchanged: check that OpenSSL can read it, and that it agrees with the facts.
 */
static const char *session_fault(const struct sess_obj *o)
{
	const unsigned char *at = o->session;
	unsigned id_len = 0;
	const char *fault = NULL;
	SSL_SESSION *session = d2i_SSL_SESSION(NULL, &at, (long)o->session_len);

	if (!session || at != o->session + o->session_len)
		fault = "its resumption part is no session that OpenSSL reads";
	else if (SSL_SESSION_get_protocol_version(session) != o->facts.protocol_version)
		fault = "its resumption part is of another TLS version than its facts say";
	else if (memcmp(SSL_SESSION_get_id(session, &id_len), o->facts.session_id, o->facts.session_id_len) != 0 ||
		 id_len != o->facts.session_id_len)
		fault = "its resumption part is of another session than its facts say";
	SSL_SESSION_free(session);
	return fault;
}

static void inspect_check_listener(json_t *out, const struct conf *c, const struct session_facts *f)
{
	const struct conf_listener *l = conf_listener_find(c, f->listener);

	if (!l)
		inspect_refuse(out, "the cluster file has no such listener");
	else if (f->protocol_version < l->tls.version_min || f->protocol_version > l->tls.version_max)
		inspect_refuse(out, "the listener does not take this TLS version any more");
	else if (f->family_age_s > c->store.family_lifetime_s)
		inspect_refuse(out, "its family is older than store.family_lifetime");
}

static void describe_resumption(json_t *out, const struct inspection *in, const struct sess_obj *o)
{
	const char *fault = session_fault(o);
	json_t *part = must(json_pack("{s:o, s:I}", "session", secret_json(o->session_len), "remaining_s",
		(json_int_t)o->session_remaining_s));

	json_object_set_new(out, "resumption", part);
	if (fault)
		inspect_refuse(out, fault);
	if (o->session_remaining_s <= in->kept_s)
		inspect_refuse(out, "its session has expired");
}

static void inspect_describe(json_t *out, const struct inspection *in, const struct sess_obj *o, uint32_t kept_s)
{
	json_object_set_new(out, "facts", facts_json(o));
	if (o->session)
		describe_resumption(out, in, o);
	if (o->live) {
		json_object_set_new(out, "live", live_json(o->live));
		if (o->live->remaining_s <= kept_s)
			inspect_refuse(out, "its live part has expired");
	}
	/* the first reason stays: what makes the object useless comes before what only its place makes wrong */
	if (!o->session && !o->live)
		inspect_refuse(out, "it has neither a resumption part nor a live part: there is nothing to import");
	if (in->listener && strcmp(in->listener, o->facts.listener) != 0)
		inspect_refuse(out, "it belongs to another listener");
	if (in->connection && o->live && memcmp(in->connection, &o->live->connection, sizeof *in->connection) != 0)
		inspect_refuse(out, "it belongs to another connection");
	if (in->conf)
		inspect_check_listener(out, in->conf, &o->facts);
}

static void inspect_object(json_t *out, const struct inspection *in)
{
	struct sess_obj o;
	const int r = sess_obj_decode(in->bytes, in->len, &o);

	json_object_set_new(out, "kind", json_string("SESS_OBJ"));
	if (r < 0) {
		inspect_refuse(out, cssl_strerror(r));
		return;
	}
	inspect_describe(out, in, &o, in->kept_s);
	sess_obj_destroy(&o);
}

static const char *open_fault(int error)
{
	switch (error) {
	case CSSL_E_AUTH:
		return "it does not open: it was changed, or it is of another connection, listener or key than given";
	case CSSL_E_EXPIRED: return "it has expired";
	case CSSL_E_MISMATCH: return "what it holds is of another connection, listener or epoch than it says outside";
	default: return cssl_strerror(error);
	}
}

static void inspect_copy(json_t *out, const struct inspection *in, const struct sealed_copy_label *label)
{
	struct sess_obj o;
	uint16_t epoch;

	json_object_set_new(out, "kind", json_string("sealed copy"));
	json_object_set_new(out, "seal",
		must(json_pack("{s:i, s:s, s:I}", "epoch", (int)label->epoch, "key_id", label->key_id, "length",
			(json_int_t)in->len)));
	if (!in->agents_key) {
		cannot_tell(out, "it is sealed: give the agents' key (--agents-key or --config)");
		return;
	}
	if (key_ring_find(in->agents_key, label->key_id, strlen(label->key_id)) < 0) {
		inspect_refuse(out, "the agents' key file has no key of that id");
		return;
	}
	if (!in->connection || !in->listener) {
		cannot_tell(out, "it is sealed for one connection of one listener: give --connection and --listener");
		return;
	}
	const int r = sealed_copy_open(
		in->agents_key, in->connection, in->listener, in->bytes, in->len, in->kept_s, &o, &epoch);
	if (r < 0) {
		inspect_refuse(out, open_fault(r));
		return;
	}
	inspect_describe(out, in, &o, 0); /* opening has subtracted the time already */
	sess_obj_destroy(&o);
}

json_t *inspect(const struct inspection *in)
{
	struct sealed_copy_label label;
	json_t *out = must(json_pack("{s:b}", "importable", 1));

	if (sealed_copy_peek(in->bytes, in->len, &label) == 0) {
		inspect_copy(out, in, &label);
	} else if (in->len > 0 && in->bytes[0] == FORMAT_TAG) {
		inspect_object(out, in);
	} else {
		json_object_set_new(out, "kind", json_string("unknown"));
		inspect_refuse(out, "it is neither a SESS_OBJ nor a sealed copy");
	}
	return out;
}

/* --- the command: the files that it names --- */

/* The files that the command line names; each may be absent. */
struct sources {
	uint8_t *bytes;
	struct key_ring *key;
	struct conf *conf;
	struct connection_id connection;
};

static void sources_free(struct sources *s)
{
	free(s->bytes);
	sodium_free(s->key);
	conf_destroy(s->conf);
}

static int read_blob(const struct invocation *in, struct sources *s, size_t *len)
{
	FILE *f = fopen(in->operands[0], "re");

	if (!f) {
		complain_of(in, NULL, "%s", strerror(errno));
		return -1;
	}
	s->bytes = must(malloc(INSPECT_LEN_MAX + 1));
	*len = fread(s->bytes, 1, INSPECT_LEN_MAX + 1, f);
	const bool good = !ferror(f) && *len <= INSPECT_LEN_MAX;
	if (!good)
		complain_of(in, NULL, "%s", ferror(f) ? strerror(errno) : "too long for a SESS_OBJ or a sealed copy");
	fclose(f);
	return good ? 0 : -1;
}

static int read_conf(const struct invocation *in, struct sources *s)
{
	static char message[MESSAGE_MAX];
	const char *key_path = in->options[OPTION_AGENTS_KEY];

	if (in->options[OPTION_CONFIG] &&
		conf_load(in->options[OPTION_CONFIG], &s->conf, message, sizeof message) < 0) {
		complain_of(in, "`csslctl config check` says all that is wrong with it", "%.*s",
			(int)strcspn(message, "\n"), message);
		return -1;
	}
	if (!key_path && s->conf)
		key_path = s->conf->agents_key;
	if (key_path && !(s->key = conf_read_key(key_path, message, sizeof message))) {
		complain_of(in, NULL, "%s", message);
		return -1;
	}
	return 0;
}

static enum exit_code read_bindings(const struct invocation *in, struct sources *s, struct inspection *out)
{
	const char *id = in->options[OPTION_CONNECTION], *kept = in->options[OPTION_KEPT];
	uint32_t kept_ms = 0;

	if (id && (strlen(id) != 2 * CONNECTION_ID_LEN || sodium_hex2bin(s->connection.bytes, CONNECTION_ID_LEN, id,
								  strlen(id), NULL, NULL, NULL) != 0))
		return misused(
			in, "--connection: '%s' is no connection id: %u hexadecimal digits", id, 2 * CONNECTION_ID_LEN);
	if (kept && duration_parse(kept, DURATION_MAX_MS, &kept_ms) < 0)
		return misused(in, "--kept: '%s' is no time up to 1d, such as 30s", kept);
	out->connection = id ? &s->connection : NULL;
	out->listener = in->options[OPTION_LISTENER];
	out->kept_s = kept_ms / 1000;
	return EXIT_DONE;
}

/* --- for people --- */

static void add_members(struct table *t, const json_t *object, int depth)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		char label[64];
		snprintf(label, sizeof label, "%*s%s", 2 * depth, "", name);
		for (char *p = label; *p != '\0'; p++)
			*p = *p == '_' ? ' ' : *p;
		if (json_is_string(value))
			facts_add(t, label, STYLE_PLAIN, "%s", json_string_value(value));
		else if (json_is_integer(value))
			facts_add(t, label, STYLE_PLAIN, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		else if (json_is_object(value))
			facts_add(t, label, STYLE_PLAIN, "%s", "");
		else
			facts_add(t, label, STYLE_PLAIN, "%s",
				json_is_true(value)    ? "yes"
				: json_is_false(value) ? "no"
						       : "-");
		add_members(t, value, depth + 1);
	}
}

static void show_found(const struct invocation *in, const json_t *found)
{
	struct table *t = facts_create();

	add_members(t, found, 0);
	table_show(t, &in->screen);
}

enum exit_code command_inspect(struct invocation *in)
{
	struct sources s = { .bytes = NULL };
	struct inspection what = { .bytes = NULL };
	enum exit_code code = read_bindings(in, &s, &what);

	if (code == EXIT_DONE && (read_blob(in, &s, &what.len) < 0 || read_conf(in, &s) < 0))
		code = EXIT_REFUSED;
	if (code == EXIT_DONE) {
		what.bytes = s.bytes;
		what.agents_key = s.key;
		what.conf = s.conf;
		json_t *found = inspect(&what);
		if (in->screen.form == SCREEN_JSON)
			show_json(in, found);
		else
			show_found(in, found);
		code = json_is_true(json_object_get(found, "importable")) ? EXIT_DONE : EXIT_REFUSED;
		json_decref(found);
	}
	sources_free(&s);
	return code;
}
