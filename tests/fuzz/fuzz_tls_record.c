/* fuzz_tls_record.c: a run must give the same as one record after the other. The verdict about first bytes must be
 * the same for each part of them, or not known yet. The first two bytes are the run's maximum. */
#include <string.h>

#include "proto/first_bytes.h"
#include "proto/tls_record.h"
#include "proto/wire.h"
#include "tests/fuzz/must.h"

static int run_by_single_steps(const uint8_t *in, size_t len, struct tls_record_run *out, struct tls_record_header *bad)
{
	struct tls_record_header h;
	int r;

	*out = (struct tls_record_run){ 0 };
	while ((r = tls_record_scan(in + out->len, len - out->len, &h)) == 0) {
		out->len += TLS_RECORD_HEADER_LEN + h.length;
		out->records++;
		out->by_type[h.type - TLS_CHANGE_CIPHER_SPEC]++;
	}
	*bad = h;
	return r == TLS_RECORD_INCOMPLETE ? 0 : r;
}

static void judge_as_first_bytes(const uint8_t *in, size_t len)
{
	enum first_bytes what = first_bytes_judge(in, len);
	size_t answer_len;

	MUST(what < FIRST_BYTES_COUNT);
	MUST(what != FIRST_BYTES_INCOMPLETE || len < FIRST_BYTES_MAX);
	MUST(!first_bytes_answer(what, &answer_len) == (answer_len == 0));
	for (size_t n = 0; n < len && n < FIRST_BYTES_MAX; n++) {
		enum first_bytes part = first_bytes_judge(in, n);
		MUST(part == FIRST_BYTES_INCOMPLETE || part == what);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct tls_record_run run, expected;
	struct tls_record_header bad, expected_bad;
	if (len < 2)
		return 0;
	size_t max = wire_load_u16(in);
	in += 2;
	len -= 2;
	judge_as_first_bytes(in, len);

	int r = tls_record_scan_run(in, len, max, &run, &bad);
	int e = run_by_single_steps(in, len < max ? len : max, &expected, &expected_bad);
	MUST(r == e);
	MUST(run.len == expected.len && run.records == expected.records);
	MUST(memcmp(run.by_type, expected.by_type, sizeof(run.by_type)) == 0);
	if (r < 0)
		MUST(bad.type == expected_bad.type && bad.version == expected_bad.version &&
			bad.length == expected_bad.length);
	return 0;
}
