/* test_tree.c: facts of YAML as a tree with lines. */
#include <stdlib.h>
#include <string.h>

#include "conf/tree.h"
#include "proto/error.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/unit.h"

static struct node *parse(const char *text)
{
	char error[512];
	struct complaints c;
	struct node *root = NULL;
	complaints_start(&c, "t.yaml", error, sizeof error);
	ck_assert_msg(tree_parse(text, strlen(text), &c, &root) == 0, "%s", error);
	return root;
}

START_TEST(nodes_remember_their_lines)
{
	struct node *root = parse("a: 1\nb:\n  - x\n  - y: 2\n");
	const struct node *b = node_child(root, "b");
	ck_assert_int_eq(root->kind, NODE_MAP);
	ck_assert_uint_eq(node_line(root, "a"), 1);
	ck_assert_uint_eq(b->key_line, 2);
	ck_assert_uint_eq(b->count, 2);
	ck_assert_uint_eq(b->first->line, 3);
	ck_assert_uint_eq(node_child(b->first->next, "y")->line, 4);
	ck_assert_uint_eq(node_line(root, "missing"), 1);
	node_destroy(root);
}
END_TEST

START_TEST(an_empty_value_is_nothing)
{
	struct node *root = parse("a:\nb: ~\nc: null\nd: ''\n");
	ck_assert_int_eq(node_child(root, "a")->kind, NODE_NOTHING);
	ck_assert_int_eq(node_child(root, "b")->kind, NODE_NOTHING);
	ck_assert_int_eq(node_child(root, "c")->kind, NODE_NOTHING);
	ck_assert_int_eq(node_child(root, "d")->kind, NODE_SCALAR);
	node_destroy(root);
}
END_TEST

START_TEST(a_scalar_can_be_the_root)
{
	struct node *root = parse("hello");
	ck_assert_int_eq(root->kind, NODE_SCALAR);
	ck_assert_str_eq(root->text, "hello");
	node_destroy(root);
}
END_TEST

static const struct {
	const char *text, *message;
} faults[] = {
	{ "", "t.yaml: found nothing, expected a cluster" },
	{ "# only a comment\n", "t.yaml: found nothing, expected a cluster" },
	{ "a: &x 1\n", "t.yaml:1: key 'a': found an anchor or a tag, expected a plain value" },
	{ "a: 1\nb: *a\n", "t.yaml:2: key 'b': found an alias, expected the value itself" },
	{ "a: !!str 1\n", "t.yaml:1: key 'a': found an anchor or a tag, expected a plain value" },
	{ "a: &x\n  - 1\n", "t.yaml:1: key 'a': found an anchor or a tag, expected a plain list or map" },
	{ "a: 1\n? [ x ]\n: 1\n", "t.yaml:2: found a list, expected a key" },
	{ "a: 1\n---\nb: 1\n", "t.yaml:2: found a second document, expected one" },
	{ "a: \"x\\0y\"\n", "t.yaml:1: key 'a': found a zero byte, expected text" },
	{ "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]",
		"t.yaml:1: found lists and maps nested too deeply, expected a flatter file" },
	{ "a: 1\nb: [ 1\nc: 2\n",
		"t.yaml:3: not YAML: while parsing a flow sequence: did not find expected ',' or ']'" },
	{ "a: 1\n\tb: 2\n",
		"t.yaml:2: not YAML: while scanning a plain scalar: found a tab character that violates indentation" },
	{ "a: \xff\n", "t.yaml: not YAML: invalid leading UTF-8 octet" },
};

START_TEST(anything_but_plain_yaml_is_refused)
{
	char error[512];
	struct complaints c;
	struct node *root = NULL;
	complaints_start(&c, "t.yaml", error, sizeof error);
	ck_assert_int_eq(tree_parse(faults[_i].text, strlen(faults[_i].text), &c, &root), CSSL_E_CONFIG);
	ck_assert_str_eq(error, faults[_i].message);
	ck_assert_ptr_null(root);
}
END_TEST

START_TEST(a_file_of_more_than_1_mib_is_refused)
{
	char error[512], *text = malloc(TREE_BYTES_MAX + 1);
	struct complaints c;
	struct node *root = NULL;
	memset(text, ' ', TREE_BYTES_MAX + 1);
	complaints_start(&c, "t.yaml", error, sizeof error);
	ck_assert_int_eq(tree_parse(text, TREE_BYTES_MAX + 1, &c, &root), CSSL_E_CONFIG);
	ck_assert_str_eq(error, "t.yaml: found a larger file, expected at most 1048576 bytes");
	free(text);
}
END_TEST

UNIT(tree)
{
	TCase *facts = tcase_create("tree");
	tcase_add_test(facts, nodes_remember_their_lines);
	tcase_add_test(facts, an_empty_value_is_nothing);
	tcase_add_test(facts, a_scalar_can_be_the_root);
	tcase_add_loop_test(facts, anything_but_plain_yaml_is_refused, 0, ROWS(faults));
	tcase_add_test(facts, a_file_of_more_than_1_mib_is_refused);
	return facts_run(facts);
}
