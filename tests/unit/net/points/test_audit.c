/* test_audit.c: facts of the nonce audit's files; test_nonce_audit.py has those of their judge, which is called here on
 * real files. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/points/audit.h"
#include "net/points/fault.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

static const uint8_t connection[16] = "connection", key[32] = "key", other_key[32] = "other";

static void begin(void)
{
	setenv("CSSL_AUDIT_DIR", temp_dir(), 1);
	fault_start("a1");
}

static unsigned file_count(void)
{
	unsigned count = 0;
	DIR *d = opendir(temp_dir());

	for (struct dirent *e = readdir(d); e; e = readdir(d))
		count += strncmp(e->d_name, "a1-", 3) == 0;
	closedir(d);
	return count;
}

/* The rows of this process's only file. */
static const struct audit_row *only_file(size_t *rows)
{
	char path[512] = "";
	struct stat st;
	DIR *d = opendir(temp_dir());

	for (struct dirent *e = readdir(d); e; e = readdir(d))
		if (strncmp(e->d_name, "a1-", 3) == 0)
			snprintf(path, sizeof path, "%s/%s", temp_dir(), e->d_name);
	closedir(d);
	int fd = open(path, O_RDONLY);
	ck_assert_int_eq(fstat(fd, &st), 0);
	const struct audit_row *all = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	ck_assert_ptr_ne(all, MAP_FAILED);
	*rows = 0;
	while (all[*rows].kind)
		++*rows;
	return all;
}

/* A record of @body that a number makes its own; its length. */
static size_t record(uint8_t *out, uint8_t type, uint16_t body, unsigned number)
{
	uint8_t header[] = { type, 3, 3, (uint8_t)(body >> 8), (uint8_t)body };

	memcpy(out, header, sizeof header);
	memset(out + sizeof header, 0, body);
	memcpy(out + sizeof header, &number, body < sizeof number ? body : sizeof number);
	return sizeof header + body;
}

static void nonce_of(uint8_t nonce[12], unsigned number)
{
	memset(nonce, 0, 12);
	memcpy(nonce, &number, sizeof number);
}

static void seal(unsigned number, unsigned nonce_number, const uint8_t *under)
{
	uint8_t buffer[64], nonce[12];
	const struct audit_sealing s = { connection, 1, 0x1301, 23, under, 32, nonce };

	nonce_of(nonce, nonce_number);
	audit_sealed(&s, buffer, record(buffer, 0x17, 20, number));
}

static void accept_record(unsigned number)
{
	uint8_t buffer[64];

	audit_accepted(connection, 1, buffer, record(buffer, 0x17, 20, number));
}

START_TEST(nothing_is_written_without_the_variable)
{
	unsetenv("CSSL_AUDIT_DIR");
	fault_start("a1");
	seal(1, 1, key);
	accept_record(1);
	ck_assert_uint_eq(file_count(), 0);
}
END_TEST

START_TEST(rows_have_what_was_sealed_and_accepted)
{
	uint8_t nonce[12];
	size_t rows;
	begin();
	nonce_of(nonce, 5);
	seal(1, 5, key);
	accept_record(1);
	audit_sealed_by_openssl(
		&(struct audit_sealing){ .connection = connection, .epoch = 1 }, (uint8_t[]){ 0x17, 3, 3, 0, 0 }, 5);
	audit_left(AUDIT_FROZEN, connection, 1);
	const struct audit_row *row = only_file(&rows);
	ck_assert_uint_eq(rows, 4);
	ck_assert_int_eq(row[0].kind, AUDIT_SEALED);
	ck_assert_uint_eq(row[0].type, 23);
	ck_assert_uint_eq(row[0].suite, 0x1301);
	ck_assert_uint_eq(row[0].epoch, 1);
	ck_assert_uint_eq(row[0].record_len, 25);
	ck_assert_mem_eq(row[0].connection, connection, 16);
	ck_assert_mem_eq(row[0].nonce, nonce, 12);
	ck_assert_mem_ne(row[0].key_id, key, 16); /* a hash, never the key */
	ck_assert_mem_ne(row[0].key_id, row[1].key_id, 16);
	ck_assert_int_eq(row[1].kind, AUDIT_ACCEPTED);
	ck_assert_mem_eq(row[1].record_hash, row[0].record_hash, 16);
	ck_assert_int_eq(row[2].kind, AUDIT_SEALED_BY_OPENSSL);
	ck_assert_mem_eq(row[2].key_id, row[1].key_id, 16); /* zeros */
	ck_assert_int_eq(row[3].kind, AUDIT_FROZEN);
	ck_assert_uint_eq(row[3].epoch, 1);
	ck_assert_uint_le(row[0].at_ns, row[3].at_ns);
}
END_TEST

START_TEST(accepted_data_and_alerts_make_a_row_each)
{
	uint8_t buffer[256];
	size_t len = 0, rows;
	begin();
	len += record(buffer + len, 0x17, 20, 1);
	len += record(buffer + len, 0x16, 19, 2);
	len += record(buffer + len, 0x15, 18, 2);
	len += record(buffer + len, 0x17, 0, 3);
	len += record(buffer + len, 0x17, 33, 4);
	audit_accepted(connection, 1, buffer, len);
	audit_accepted(connection, 1, (const uint8_t *)"220 mail.example ESMTP\r\n", 24); /* before STARTTLS */
	const struct audit_row *row = only_file(&rows);
	ck_assert_uint_eq(rows, 4);
	ck_assert_uint_eq(row[1].record_len, 23);
	ck_assert_uint_eq(row[2].record_len, 5);
	ck_assert_uint_eq(row[3].record_len, 38);
}
END_TEST

START_TEST(file_grows_as_needed_and_ends_in_zeros)
{
	size_t rows;
	begin();
	for (unsigned i = 0; i < 40000; i++)
		seal(i, i, key);
	const struct audit_row *row = only_file(&rows);
	ck_assert_uint_eq(rows, 40000);
	for (unsigned i = 1; i < rows; i++)
		if (memcmp(row[i].record_hash, row[i - 1].record_hash, 16) == 0)
			ck_abort_msg("row %u is the one before", i);
}
END_TEST

static void *seal_one(void *arg)
{
	seal(7, 7, key);
	return arg;
}

START_TEST(each_thread_has_a_file_of_its_own)
{
	begin();
	for (unsigned i = 0; i < 3; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, seal_one, NULL);
		pthread_join(thread, NULL);
	}
	ck_assert_uint_eq(file_count(), 3);
}
END_TEST

START_TEST(rows_survive_a_killed_process)
{
	size_t rows;
	begin();
	pid_t child = fork();
	if (child == 0) {
		for (unsigned i = 0; i < 100; i++)
			seal(i, i, key);
		kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	only_file(&rows);
	ck_assert_uint_eq(rows, 100);
}
END_TEST

static int judge(void)
{
	char command[1024];
	ck_assert_ptr_nonnull(getenv("NONCE_AUDIT"));

	snprintf(command, sizeof command, "python3 %s %s --min-accepted 1 >/dev/null", getenv("NONCE_AUDIT"),
		temp_dir());
	int status = system(command);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

START_TEST(judge_reads_these_files_and_sees_a_planted_reuse)
{
	begin();
	for (unsigned i = 0; i < 100; i++) {
		seal(i, i, key);
		accept_record(i);
	}
	ck_assert_int_eq(judge(), 0);
	seal(1000, 50, other_key);
	ck_assert_int_eq(judge(), 0);
	seal(1001, 50, key);
	ck_assert_int_eq(judge(), 1);
}
END_TEST

UNIT(audit)
{
	const TTest *facts[] = {
		nothing_is_written_without_the_variable,
		rows_have_what_was_sealed_and_accepted,
		accepted_data_and_alerts_make_a_row_each,
		file_grows_as_needed_and_ends_in_zeros,
		each_thread_has_a_file_of_its_own,
		rows_survive_a_killed_process,
		judge_reads_these_files_and_sees_a_planted_reuse,
	};
	return worker_suite_run("audit", facts, FACTS_LEN(facts));
}
