/* test_place.c: facts of where the cluster is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "csslctl/place.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct invocation in;
static struct place place;
static char error[PLACE_ERROR_MAX];
static char folder[64], file[128];

static void fresh(void)
{
	memset(&in, 0, sizeof in);
	error[0] = '\0';
	snprintf(folder, sizeof folder, "/tmp/csslctl-place-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(file, sizeof file, "%s/cluster.json", folder);
}

static void describe_cluster(const char *text)
{
	FILE *f = fopen(file, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static int find(const char *environment)
{
	const int result = place_find(&in, environment, &place, error);
	unlink(file);
	rmdir(folder);
	return result;
}

static void is(const char *socket)
{
	ck_assert_str_eq(place.socket, socket);
	place_clear(&place);
}

START_TEST(a_socket_is_taken_as_it_is)
{
	in.options[OPTION_SOCKET] = "/run/x";
	ck_assert_int_eq(find("/elsewhere"), 0);
	is("/run/x");
}
END_TEST

START_TEST(a_folder_says_where_its_socket_is)
{
	describe_cluster("{\"control\": {\"socket\": \"/there/control.sock\"}}");
	in.options[OPTION_DIR] = folder;
	ck_assert_int_eq(find("/elsewhere"), 0);
	is("/there/control.sock");
}
END_TEST

START_TEST(the_environment_speaks_last)
{
	describe_cluster("{\"control\": {\"socket\": \"/there/control.sock\"}}");
	ck_assert_int_eq(find(folder), 0);
	is("/there/control.sock");
}
END_TEST

START_TEST(a_url_has_its_token_and_its_ca)
{
	in.options[OPTION_API] = "https://h";
	in.options[OPTION_TOKEN_FILE] = "t";
	in.options[OPTION_CACERT] = "c";
	ck_assert_int_eq(find(NULL), 0);
	ck_assert_str_eq(place.url, "https://h");
	ck_assert_str_eq(place.token_file, "t");
	ck_assert_str_eq(place.ca_file, "c");
	ck_assert_ptr_null(place.socket);
}
END_TEST

START_TEST(two_places_are_one_too_many)
{
	in.options[OPTION_SOCKET] = "/run/x";
	in.options[OPTION_API] = "https://h";
	ck_assert_int_eq(find(NULL), CSSL_E_CONFIG);
}
END_TEST

START_TEST(a_token_needs_a_url)
{
	in.options[OPTION_SOCKET] = "/run/x";
	in.options[OPTION_TOKEN_FILE] = "t";
	ck_assert_int_eq(find(NULL), CSSL_E_CONFIG);
	ck_assert_ptr_nonnull(strstr(error, "--token-file goes with --api"));
}
END_TEST

START_TEST(no_place_at_all_is_a_mistake)
{
	ck_assert_int_eq(find(NULL), CSSL_E_CONFIG);
	ck_assert_ptr_nonnull(strstr(error, "CSSL_DIR"));
	fresh();
	ck_assert_int_eq(find(""), CSSL_E_CONFIG);
}
END_TEST

START_TEST(a_folder_without_a_cluster_names_the_remedy)
{
	in.options[OPTION_DIR] = folder;
	ck_assert_int_eq(find(NULL), CSSL_E_NOT_FOUND);
	ck_assert_ptr_nonnull(strstr(error, "./cssl up --dir starts one"));
}
END_TEST

START_TEST(a_description_without_a_socket_is_refused)
{
	describe_cluster("{\"agents\": []}");
	in.options[OPTION_DIR] = folder;
	ck_assert_int_eq(find(NULL), CSSL_E_NOT_FOUND);
	fresh();
	describe_cluster("not JSON");
	in.options[OPTION_DIR] = folder;
	ck_assert_int_eq(find(NULL), CSSL_E_NOT_FOUND);
}
END_TEST

UNIT(place)
{
	const TTest *facts[] = { a_socket_is_taken_as_it_is, a_folder_says_where_its_socket_is,
		the_environment_speaks_last, a_url_has_its_token_and_its_ca, two_places_are_one_too_many,
		a_token_needs_a_url, no_place_at_all_is_a_mistake, a_folder_without_a_cluster_names_the_remedy,
		a_description_without_a_socket_is_refused };
	return suite_run_with("place", fresh, facts, SUITE_LEN(facts));
}
