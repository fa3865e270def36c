/* fuzz_sess_obj.c: an imported object obeys the rules of export, and is the same after another export and import. */
#include <stdlib.h>

#include "proto/sess_obj.h"
#include "tests/fuzz/must.h"
#include "tests/unit/proto/sess_obj_samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct sess_obj first, second;

	if (sess_obj_decode(in, len, &first) != 0)
		return 0;
	ptrdiff_t need = sess_obj_encoded_len(&first);
	MUST(need > 0);
	uint8_t *out = malloc((size_t)need);
	MUST(out && sess_obj_encode(&first, out, (size_t)need) == need);
	MUST(sess_obj_decode(out, (size_t)need, &second) == 0);
	MUST(sess_obj_equal(&first, &second));
	sess_obj_destroy(&first);
	sess_obj_destroy(&second);
	free(out);
	return 0;
}
