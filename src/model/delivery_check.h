#ifndef MODEL_DELIVERY_CHECK_H
#define MODEL_DELIVERY_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/delivery.h"

/*
 * The User-Agent of `gatepost doctor`. Its GET, which finds out who listens, is counted apart; the detail of
 * a refused test delivery begins with the mark.
 */
#define DELIVERY_PROBE_AGENT "gatepost-doctor"
#define DELIVERY_PROBE_MARK "by gatepost doctor: "

/* The checks of a delivery, in the order in which the receiver makes them. */
enum delivery_check {
        DELIVERY_CHECK_HEADERS, /* each header is there once and well formed; reads them into the delivery */
        DELIVERY_CHECK_WEBHOOK_ID, /* the webhook-id is one of the source's */
        DELIVERY_CHECK_TIMESTAMP,  /* the signed timestamp is within the tolerance of now */
        DELIVERY_CHECK_SIGNATURE,  /* the signature matches the raw body */
        DELIVERY_N_CHECKS
};

/* A source's requirements for a delivery. A plain value that borrows the source's texts and keys. */
struct delivery_policy {
        const char *header_prefix;
        char *const *webhook_ids;
        size_t n_webhook_ids; /* 0: any webhook-id */
        uint64_t tolerance_ms;
        struct signature_key *const *keys;
        size_t n_keys;
};

/* A delivery to check: its headers as counted, its body, and the time of its arrival. */
struct delivery_subject {
        struct delivery_headers headers;
        int64_t now_ms;
        const void *body; /* for DELIVERY_CHECK_SIGNATURE only */
        size_t len;
};

#define DELIVERY_FIELD_SIZE 128
#define DELIVERY_DETAIL_SIZE 256

/* Why a delivery is refused, as the receiver answers it. Codes and messages are constants. */
struct delivery_refusal {
        int status; /* 500 only when OpenSSL fails */
        const char *code;
        const char *message;
        struct delivery_violation {
                char field[DELIVERY_FIELD_SIZE]; /* name of the header */
                const char *message;
        } violations[DELIVERY_N_HEADERS];
        size_t n_violations;
        /* For the operator's eyes only: the likely cause. Not escaped. Never a signature. */
        char detail[DELIVERY_DETAIL_SIZE];
};

/**
 * delivery_check_make(check, policy, subject, delivery, refusal):
 * Make one check. DELIVERY_CHECK_HEADERS comes first; if it fails, the checks of the headers without a fault
 * can still be made. Returns 0, or -1 with the refusal.
 */
int delivery_check_make(enum delivery_check check, const struct delivery_policy *policy,
                        const struct delivery_subject *subject, struct delivery *delivery,
                        struct delivery_refusal *refusal) MUST_CHECK;

#endif
