// Owners of OpenSSL's objects.
#ifndef TILEFARM_TRANSPORT_OPENSSL_OWNERS_H_
#define TILEFARM_TRANSPORT_OPENSSL_OWNERS_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

namespace tilefarm::transport {

template <auto Free>
struct OpensslDeleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, OpensslDeleter<BIO_free>>;
using Certificate = std::unique_ptr<X509, OpensslDeleter<X509_free>>;
using DigestContext =
    std::unique_ptr<EVP_MD_CTX, OpensslDeleter<EVP_MD_CTX_free>>;
using Key = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_OPENSSL_OWNERS_H_
