/* cluster_text.h: a good cluster file, and edited copies of it. */
#pragma once

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"

#define EDITED_MAX 8192u

/* The number in front of each line is its own. */
static const char cluster_text[] =
	/*  1 */ "link_key: link.key\n"
		 /*  2 */ "agents_key: agents.key\n"
		 /*  3 */ "ragents:\n"
		 /*  4 */ "  - name: r1\n"
		 /*  5 */ "    workers: 2\n"
		 /*  6 */ "agents:\n"
		 /*  7 */ "  - name: a1\n"
		 /*  8 */ "    link: 127.0.0.1:7001\n"
		 /*  9 */ "    peer: 127.0.0.1:7101\n"
		 /* 10 */ "  - name: a2\n"
		 /* 11 */ "    link: unix:a2.link\n"
		 /* 12 */ "    peer: 127.0.0.1:7102\n"
		 /* 13 */ "certificates:\n"
		 /* 14 */ "  - name: main\n"
		 /* 15 */ "    chain: main.pem\n"
		 /* 16 */ "    key: main.key\n"
		 /* 17 */ "backends:\n"
		 /* 18 */ "  - name: web\n"
		 /* 19 */ "    address: 127.0.0.1:8080\n"
		 /* 20 */ "listeners:\n"
		 /* 21 */ "  - name: sf\n"
		 /* 22 */ "    listen: [ 127.0.0.1:8443, '[::1]:8443' ]\n"
		 /* 23 */ "    backend: web\n"
		 /* 24 */ "    tls:\n"
		 /* 25 */ "      certificates: [ main ]\n";

/* The file with the first @from replaced by @to; @from must be in it. */
static inline const char *edited(const char *from, const char *to)
{
	static char out[EDITED_MAX];
	const char *at = strstr(cluster_text, from);
	ck_assert_ptr_nonnull(at);
	const size_t before = (size_t)(at - cluster_text);
	ck_assert_uint_lt(sizeof cluster_text + strlen(to), sizeof out);
	snprintf(out, sizeof out, "%.*s%s%s", (int)before, cluster_text, to, at + strlen(from));
	return out;
}

/* Parse a good text. */
static inline struct conf *good(const char *text)
{
	char error[1024] = "";
	struct conf *c = NULL;
	const int r = conf_parse(text, strlen(text), "etc/c.yaml", &c, error, sizeof error);
	ck_assert_msg(r == 0, "%s", error);
	return c;
}

/* A row of a table of faults: the edit, and the whole message. */
struct fault {
	const char *from, *to, *message;
};

static inline void check_fault(const struct fault *f)
{
	char error[2048] = "";
	struct conf *c = NULL;
	const char *text = edited(f->from, f->to);
	const int r = conf_parse(text, strlen(text), "c.yaml", &c, error, sizeof error);
	ck_assert_str_eq(error, f->message);
	ck_assert_int_lt(r, 0);
	ck_assert_ptr_null(c);
}
