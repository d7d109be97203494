/*
 * record.h - a snapshot as one protobuf message (proto/tally.proto), and back.
 */
#ifndef TLY_RECORD_H
#define TLY_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "offline/snapshot.h"

/* Packs into fresh memory (the caller frees it). 0 or -ENOMEM. */
int tly_record_pack(const struct tly_snapshot *snapshot, uint8_t **out, size_t *out_bytes);

/* Unpacks bytes that may be damaged or hostile: all that snapshot.h guarantees is checked. 0; -ENOMEM; -EBADMSG with
 * `*why` a constant text. */
int tly_record_unpack(const uint8_t *data, size_t bytes, struct tly_snapshot **out, const char **why);

#endif
