/*
 * recording_file.h - the bytes around the records of a `.tally` file. docs/formats.md is the specification.
 *
 * Little-endian, as regions are; packed by hand nowhere: both structs have no holes.
 */
#ifndef TLY_RECORDING_FILE_H
#define TLY_RECORDING_FILE_H

#include <stdint.h>

struct tly_file_head {
    char magic[8]; /* TLY_RECORDING_MAGIC */
    uint32_t version;
    uint32_t header_bytes; /* where the first record begins; later versions may make it larger */
    uint64_t reserved[2];
    uint32_t reserved1;
    uint32_t crc; /* CRC-32 of the bytes before it */
};

enum tly_record_kind {
    TLY_RECORD_SNAPSHOT = 1, /* a tally.Snapshot message */
    TLY_RECORD_END = 2,      /* nothing follows: the file is whole. No payload */
};

enum { TLY_RECORD_PLAIN = 0, TLY_RECORD_ZSTD = 1 };

struct tly_record_head {
    uint32_t kind;         /* enum tly_record_kind; readers skip what they do not know */
    uint32_t compression;  /* TLY_RECORD_PLAIN or TLY_RECORD_ZSTD */
    uint64_t stored_bytes; /* of the payload in the file */
    uint64_t raw_bytes;    /* of the message in it */
    uint32_t payload_crc;  /* CRC-32 of the stored payload */
    uint32_t crc;          /* CRC-32 of the bytes of this head before it */
};

_Static_assert(sizeof(struct tly_file_head) == 40, "format");
_Static_assert(sizeof(struct tly_record_head) == 32, "format");

/* No record is larger; what says it is, is damaged. */
#define TLY_RECORD_MOST_BYTES ((uint64_t)1 << 30)

#endif
