/* test_files.c: facts of the files a cluster file names; the example is complete and good. */
#include <grp.h>
#include <pwd.h>
#include <sys/types.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/memory.h"
#include "conf/schema.h"
#include "proto/error.h"
#include "tests/source_root.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/conf/temp_dir.h"
#include "tests/unit/unit.h"

#define KEY_TEXT  "k1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
#define TEXT_MAX  16384u
#define PLACE_MAX 32u

static char example[TEXT_MAX];

static void read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	const size_t len = fread(example, 1, sizeof example - 1, f);
	ck_assert_uint_gt(len, 0);
	ck_assert_int_ne(feof(f), 0);
	example[len] = '\0';
	fclose(f);
}

static void replace_all(const char *from, const char *to)
{
	char out[TEXT_MAX] = "";
	const char *rest = example, *at;
	while ((at = strstr(rest, from))) {
		strncat(out, rest, (size_t)(at - rest));
		strcat(out, to);
		rest = at + strlen(from);
	}
	strcat(out, rest);
	strcpy(example, out);
}

static const char *own_group(void)
{
	static char line[100];
	const struct group *g = getgrgid(getegid());
	ck_assert_ptr_nonnull(g);
	snprintf(line, sizeof line, "link_group: %s", g->gr_name);
	return line;
}

/* The example in a folder with all it names; the users are those that every host has. */
static void make_all(void)
{
	temp_dir_make();
	read_file(SOURCE_ROOT "/conf/example.yaml");
	replace_all("/run/cssl-ragent/", "run/");
	replace_all("/run/cssl/", "run/");
	replace_all("user: cssl-ragent", "user: nobody");
	replace_all("user: cssl-agent", "user: daemon");
	replace_all("link_group: cssl-ragent", own_group());
	temp_file("cluster.yaml", example, 0644);
	temp_file("link.key", KEY_TEXT, 0600);
	temp_file("agents.key", KEY_TEXT, 0600);
	mkdir(temp_path("log"), 0700);
	mkdir(temp_path("run"), 0700);
	mkdir(temp_path("tls"), 0700);
	temp_file("tls/shop-ecdsa.pem", "x", 0644);
	temp_file("tls/shop-ecdsa.key", "x", 0600);
	temp_file("tls/shop-rsa.pem", "x", 0644);
	temp_file("tls/shop-rsa.key", "x", 0640);
	temp_file("tls/partners.pem", "x", 0644);
	temp_file("tls/partners-crl.pem", "x", 0644);
}

static struct conf *load(void)
{
	char error[2048];
	struct conf *c = NULL;
	ck_assert_msg(conf_load(temp_path("cluster.yaml"), &c, error, sizeof error) == 0, "%s", error);
	return c;
}

static char unread[2048];

/* Which of the checks; ITS_: of what the first one has for itself. */
enum check { RAGENT, AGENT, PEM, ITS_RAGENT, ITS_AGENT, ANYWHERE };

static int check(const struct conf *c, enum check which, char *error, size_t cap)
{
	switch (which) {
	case RAGENT: return conf_check_files(c, CONF_FOR_RAGENT, error, cap);
	case AGENT: return conf_check_files(c, CONF_FOR_AGENT, error, cap);
	case PEM: return conf_check_files(c, CONF_FOR_RELOAD, error, cap);
	case ITS_RAGENT: return conf_check_node(c, &c->ragents[0], NULL, error, cap);
	case ITS_AGENT: return conf_check_node(c, NULL, &c->agents[0], error, cap);
	case ANYWHERE: return conf_check_anywhere(c, error, cap, unread, sizeof unread);
	}
	return CSSL_E_RANGE;
}

static void check_message(enum check which, const char *piece)
{
	char error[2048] = "";
	struct conf *c = load();
	const int r = check(c, which, error, sizeof error);
	if (piece) {
		ck_assert_int_eq(r, CSSL_E_CONFIG);
		ck_assert_msg(strstr(error, piece) != NULL, "%s\nnot in\n%s", piece, error);
		ck_assert_ptr_null(strchr(error, '\n'));
	} else {
		ck_assert_msg(r == 0, "%s", error);
	}
	conf_destroy(c);
}

START_TEST(the_example_with_its_files_is_good_for_all)
{
	for (enum check which = RAGENT; which <= ANYWHERE; which++)
		check_message(which, NULL);
	ck_assert_str_eq(unread, "");
}
END_TEST

/* The maps that stand in one place of the schema: the elements of a list, of all lists with that key. */
struct place {
	const struct node *maps[PLACE_MAX];
	size_t count;
};

static void add_map(struct place *p, const struct node *n)
{
	ck_assert_uint_lt(p->count, PLACE_MAX);
	p->maps[p->count++] = n;
}

/* What stands at @key in the maps of @from. */
static struct place place_of(const struct place *from, const char *key)
{
	struct place to = { .count = 0 };

	for (size_t i = 0; i < from->count; i++) {
		const struct node *n = node_child(from->maps[i], key);
		if (n && n->kind != NODE_LIST)
			add_map(&to, n);
		for (const struct node *e = n && n->kind == NODE_LIST ? n->first : NULL; e; e = e->next)
			add_map(&to, e);
	}
	return to;
}

/* "place.key" of a key that no map of that place has, or "". A map that others inherit from has the keys for all. */
static const char *missing_key(const char *name, const struct schema_map *map, const struct place *here)
{
	static char found[200];

	for (const struct schema_row *row = map->rows; row->key; row++) {
		const struct place below = place_of(here, row->key);
		char inner[100];

		snprintf(inner, sizeof inner, "%s.%s", name, row->key);
		if (below.count == 0 && row->presence != SCHEMA_INHERITED) {
			snprintf(found, sizeof found, "%s", inner);
			return found;
		}
		if (row->map && row->presence != SCHEMA_INHERITED && missing_key(inner, row->map, &below)[0])
			return found;
	}
	return "";
}

static const char *missing_in(const char *text)
{
	char error[200];
	struct complaints c;
	struct node *root = NULL;

	complaints_start(&c, "f.yaml", error, sizeof error);
	ck_assert_int_eq(tree_parse(text, strlen(text), &c, &root), 0);
	const struct place all = { .maps = { root }, .count = 1 };
	const char *found = missing_key("", &schema_cluster, &all);
	node_destroy(root);
	return found;
}

START_TEST(the_example_has_every_key)
{
	ck_assert_str_eq(missing_in(example), "");
}
END_TEST

/* So that the fuzzer of cluster files begins with all of them. */
START_TEST(the_seed_has_every_key_and_is_good)
{
	char error[2048] = "";
	struct conf *c = NULL;
	read_file(SOURCE_ROOT "/tests/fuzz/seeds/conf/every_key.yaml");
	ck_assert_str_eq(missing_in(example), "");
	ck_assert_msg(conf_parse(example, strlen(example), "f.yaml", &c, error, sizeof error) == 0, "%s", error);
	conf_destroy(c);
}
END_TEST

/* Listeners have the key, too. */
START_TEST(a_key_that_is_missing_in_one_place_is_noticed)
{
	char *direct = strstr(example, "    direct:"), *key = strstr(direct, "proxy_protocol: on");

	memcpy(key, "#", 1);
	ck_assert_str_eq(missing_in(example), ".agents.direct.proxy_protocol");
}
END_TEST

static const struct {
	const char *file;
	mode_t mode; /* 0: removed */
	enum check which;
	const char *message; /* NULL: it does not care */
} faults[] = {
	{ "link.key", 0644, RAGENT, "cluster.yaml:13: key 'link_key': found '" },
	{ "link.key", 0644, RAGENT, "with mode 0644, expected mode 0600, for its owner alone: chmod 600 " },
	{ "link.key", 0, AGENT, "expected a file that can be read: No such file or directory" },
	{ "agents.key", 0640, AGENT, "cluster.yaml:14: key 'agents_key': found '" },
	{ "agents.key", 0, RAGENT, NULL },
	{ "tls/shop-rsa.key", 0644, PEM, "with mode 0644, expected mode 0600 or 0640, not for others: chmod 600 " },
	{ "tls/shop-rsa.key", 0660, PEM, "with mode 0660" },
	{ "tls/shop-rsa.key", 0, PEM, "cluster.yaml:136: key 'key': found '" },
	{ "tls/shop-rsa.key", 0, RAGENT, NULL },
	{ "tls/shop-ecdsa.pem", 0, PEM, "cluster.yaml:132: key 'chain': found '" },
	{ "tls/partners.pem", 0, PEM, "key 'client_ca': found '" },
	{ "tls/partners-crl.pem", 0, PEM, "key 'client_crl': found '" },
	{ "log", 0, RAGENT, "key 'path': found '" },
	{ "tls/shop-rsa.key", 0, AGENT, NULL }, /* tls_contexts.h judges it */
	{ "run", 0, AGENT, NULL },
	{ "run", 0, ITS_RAGENT, "key 'control': found '" },
	{ "run", 0, ANYWHERE, NULL },
	{ "link.key", 0644, ANYWHERE, "with mode 0644" },
	{ "tls/shop-rsa.key", 0644, ANYWHERE, "with mode 0644" },
};

START_TEST(a_file_that_is_missing_or_open_to_others_is_told)
{
	const char *path = temp_path(faults[_i].file);
	ck_assert_int_eq(faults[_i].mode ? chmod(path, faults[_i].mode) : remove(path), 0);
	check_message(faults[_i].which, faults[_i].message);
}
END_TEST

START_TEST(an_unknown_user_is_told)
{
	replace_all("user: nobody", "user: no-such-user-here");
	temp_file("cluster.yaml", example, 0644);
	if (geteuid() == 0)
		check_message(ITS_RAGENT, "key 'user': found 'no-such-user-here', expected a user of this host");
	check_message(ANYWHERE, NULL);
	ck_assert_ptr_nonnull(strstr(unread, "no-such-user-here"));
}
END_TEST

START_TEST(an_unknown_group_is_told)
{
	replace_all(own_group(), "link_group: no-such-group-here");
	temp_file("cluster.yaml", example, 0644);
	check_message(ITS_AGENT, "key 'link_group': found 'no-such-group-here', expected a group of this host");
}
END_TEST

/* Only root gives sockets to groups of others. */
START_TEST(a_group_that_the_agent_is_not_in_is_told)
{
	char error[2048] = "";
	replace_all(own_group(), "link_group: root");
	temp_file("cluster.yaml", example, 0644);
	struct conf *c = load();
	if (geteuid() == 0)
		ck_assert(setgroups(0, NULL) == 0 && setegid(12345) == 0 && seteuid(12345) == 0);
	else if (getegid() == 0)
		return;
	ck_assert_int_eq(check(c, ITS_AGENT, error, sizeof error), CSSL_E_CONFIG);
	ck_assert_msg(strstr(error, "found 'root', expected a group of this user") != NULL, "%s", error);
	conf_destroy(c);
	ck_assert(seteuid(getuid()) == 0 && setegid(getgid()) == 0); /* a search for leaks needs it */
}
END_TEST

/* On the host of RAgent alone there are no keys of agents, and no certificates. */
START_TEST(what_another_host_has_is_no_fault)
{
	static const char *const theirs[] = { "agents.key", "tls/shop-rsa.key", "tls/shop-ecdsa.pem",
		"tls/partners-crl.pem", "log" };
	for (int i = 0; i < ROWS(theirs); i++)
		ck_assert_int_eq(remove(temp_path(theirs[i])), 0);
	check_message(ANYWHERE, NULL);
	for (int i = 0; i < ROWS(theirs); i++)
		ck_assert_msg(strstr(unread, theirs[i]) != NULL, "%s not in\n%s", theirs[i], unread);
}
END_TEST

/* A log in the user's folder: the user must not choose what root appends to. */
START_TEST(root_is_told_of_a_link_in_place_of_its_log)
{
	if (geteuid() != 0)
		return;
	temp_file("log/elsewhere", "", 0644);
	ck_assert_int_eq(symlink(temp_path("log/elsewhere"), temp_path("log/cssl.log")), 0);
	check_message(RAGENT, NULL); /* both are of root */
	ck_assert_int_eq(chown(temp_path("log"), 12345, 12345), 0);
	check_message(RAGENT, "no link: Too many levels of symbolic links");
}
END_TEST

/* The output of @print, in memory that lives until the next call. */
static const char *printed(void (*print)(const struct conf *c, FILE *out), const struct conf *c)
{
	static char *text;
	size_t len;
	free(text);
	FILE *f = open_memstream(&text, &len);
	print(c, f);
	fclose(f);
	return text;
}

START_TEST(check_says_what_the_store_means)
{
	struct conf *c = load();
	const char *text = printed(conf_check_print, c);
	ck_assert_ptr_nonnull(strstr(text, "ragents 1, agents 3, listeners 4, backends 4, certificates 2\n"));
	ck_assert_ptr_nonnull(
		strstr(text, "listener shop: sf, migration on, handshakes round-robin, resumptions local; "
			     "0.0.0.0:443 [::]:443 to backend web\n"));
	ck_assert_ptr_nonnull(
		strstr(text, "256MiB on each agent: about 447392 sessions of 600 bytes, at most 111848 of one "
			     "client address\n"));
	ck_assert_ptr_nonnull(strstr(text, " 10   2h (its lifetime)\n"));
	ck_assert_ptr_nonnull(strstr(text, " 1000   7min27s (then the store is full)\n"));
	conf_destroy(c);
}
END_TEST

START_TEST(check_says_which_rate_the_memory_of_connections_covers)
{
	struct conf *c = load();
	ck_assert_ptr_nonnull(
		strstr(printed(conf_check_print, c), "  remembers 1048576 connections of the cluster: 1747 new ones a "
						     "second for 10min, if few stay open\n"));
	c->store.bytes /= 4;
	c->broadcast.remember_s = 60;
	ck_assert_ptr_nonnull(strstr(printed(conf_check_print, c),
		"  remembers 262144 connections of the cluster: 4369 new ones a second for 1min, if few stay open\n"));
	conf_destroy(c);
}
END_TEST

START_TEST(check_adds_up_the_memory_of_all_daemons)
{
	struct conf *c = load();
	struct memory_part parts[MEMORY_PARTS_MAX];
	static const char last[] = "memory of all of them, if they are on one host: at most ";
	uint64_t sum = memory_sum(parts, memory_of_ragent(c, &c->ragents[0], parts));
	for (size_t i = 0; i < c->agent_count; i++)
		sum += memory_sum(parts, memory_of_agent(c, &c->agents[i], parts));
	const char *text = printed(conf_check_print, c), *at = strstr(text, last);
	ck_assert_msg(at != NULL, "%s", text);
	ck_assert_uint_eq(strtoull(at + strlen(last), NULL, 10), (sum + (1u << 20) - 1) >> 20); /* MiB, rounded up */
	conf_destroy(c);
}
END_TEST

static void print_help(const struct conf *c, FILE *out)
{
	conf_help_print(out);
}

static void key_is_in_help(const struct schema_map *map, const char *help)
{
	char line[80];
	for (const struct schema_row *row = map->rows; row->key; row++) {
		snprintf(line, sizeof line, "%s: ", row->key);
		ck_assert_msg(strstr(help, line) != NULL, "%s", line);
		if (row->map)
			key_is_in_help(row->map, help);
	}
}

START_TEST(help_has_every_key_with_its_default)
{
	const char *help = printed(print_help, NULL);
	key_is_in_help(&schema_cluster, help);
	ck_assert_ptr_nonnull(
		strstr(help, "  lost: a duration (units ms, s, min, h, d) from 30ms to 10min; default 3s\n"));
}
END_TEST

UNIT(files)
{
	TCase *facts = tcase_create("files");
	tcase_add_checked_fixture(facts, make_all, temp_dir_remove);
	tcase_add_test(facts, the_example_with_its_files_is_good_for_all);
	tcase_add_test(facts, the_example_has_every_key);
	tcase_add_test(facts, a_key_that_is_missing_in_one_place_is_noticed);
	tcase_add_test(facts, the_seed_has_every_key_and_is_good);
	tcase_add_loop_test(facts, a_file_that_is_missing_or_open_to_others_is_told, 0, ROWS(faults));
	tcase_add_test(facts, an_unknown_user_is_told);
	tcase_add_test(facts, an_unknown_group_is_told);
	tcase_add_test(facts, a_group_that_the_agent_is_not_in_is_told);
	tcase_add_test(facts, what_another_host_has_is_no_fault);
	tcase_add_test(facts, root_is_told_of_a_link_in_place_of_its_log);
	tcase_add_test(facts, check_says_what_the_store_means);
	tcase_add_test(facts, check_says_which_rate_the_memory_of_connections_covers);
	tcase_add_test(facts, check_adds_up_the_memory_of_all_daemons);
	tcase_add_test(facts, help_has_every_key_with_its_default);
	return facts_run(facts);
}
