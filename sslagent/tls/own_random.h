/* own_random.h: random bytes for OpenSSL from libsodium, which has them from the kernel (net/random_pool.h). OpenSSL's
 * own generators are three, chained for each thread, over AES; a handshake asks them three times, for bytes that the
 * kernel has ready. */
#ifndef CSSL_SSLAGENT_OWN_RANDOM_H
#define CSSL_SSLAGENT_OWN_RANDOM_H

#include <openssl/types.h>

#define OWN_RANDOM_NAME "CSSL-RANDOM"

/* Make it the generator of @library, which has made no random bytes yet; for the life of @library. A generator that a
 * configuration file names is used instead if that file is loaded afterwards. 0 or CSSL_E_CRYPTO. */
int own_random_load(OSSL_LIB_CTX *library);

#endif
