#!/usr/bin/python3
"""Judges the nonce audit of a test run (net/audit.h): for one key and nonce at most one ciphertext may ever leave.

Agents wrote a row for each record they sealed, RAgent a row for each record it accepted. Errors:
  - one (key, nonce), two ciphertexts, one epoch;
  - one (key, nonce), two ciphertexts, two epochs: allowed with --allow-takeover, at most one such record for each key and
    later epoch (what a takeover without knowledge of the lost owner's last record may cost), and always listed;
  - two different ciphertexts of one (key, nonce) accepted;
  - a record accepted that nobody sealed;
  - records of one connection and epoch sealed by two processes.

May be run while the processes still write: accepted rows are read first, so what they follow from is there.
"""

import argparse
import collections
import mmap
import os
import struct
import sys

ROW = struct.Struct("<B3xI16s16s12sI16s8x")
SEALED, ACCEPTED, SEALED_BY_OPENSSL = 1, 2, 3
KINDS = {SEALED: "sealed", ACCEPTED: "accepted", SEALED_BY_OPENSSL: "sealed by OpenSSL"}
NO_KEY = bytes(16)
ROWS_AT_ONCE = 1_000_000  # what one part of the work may hold in memory
LISTED = 20


class Rows:
    """The rows of one file: one thread of one process (NODE-PID-THREAD.N)."""

    def __init__(self, path):
        self.name = os.path.basename(path)
        self.process = self.name.rsplit("-", 1)[0]
        with open(path, "rb") as f:
            whole = os.fstat(f.fileno()).st_size // ROW.size * ROW.size
            self.bytes = mmap.mmap(f.fileno(), whole, access=mmap.ACCESS_READ) if whole else b""
        self.end = self._find_end(whole)

    def _find_end(self, whole):
        """A file is rows, then zeros: halve the distance."""
        low, high = 0, whole // ROW.size
        while low < high:
            middle = (low + high) // 2
            if self.bytes[middle * ROW.size]:
                low = middle + 1
            else:
                high = middle
        return low * ROW.size

    def __iter__(self):
        with memoryview(self.bytes) as view, view[:self.end] as rows:
            yield from ROW.iter_unpack(rows)

    def first_kind(self):
        return self.bytes[0] if self.end else 0


def load(directory):
    """Every file, those of accepting processes first."""
    def read(names):
        return {name: Rows(os.path.join(directory, name)) for name in sorted(names)}

    early = read(os.listdir(directory))
    accepting = {name: rows for name, rows in early.items() if rows.first_kind() == ACCEPTED}
    return [*accepting.values(), *read(set(os.listdir(directory)) - set(accepting)).values()]


class Audit:
    def __init__(self, files):
        self.files = files
        self.counts = collections.Counter()
        self.connections = set()
        self.errors = []
        self.repeats = {}     # (key + nonce) -> {(epoch, connection, hash)}, only where ciphertexts differ
        self.across = []      # repeats across epochs: (key, nonce, epochs)
        self._count()
        rows = sum(self.counts.values())
        self.parts = rows // ROWS_AT_ONCE + 1

    def _count(self):
        for rows in self.files:
            for kind, _, connection, *_ in rows:
                self.counts[kind] += 1
                self.connections.add(connection)
        for kind in self.counts.keys() - KINDS.keys():
            self.errors.append(f"{self.counts[kind]} rows of unknown kind {kind}")

    def judge(self, allow_takeover):
        for part in range(self.parts):
            self._find_repeats(part)
            self._find_unsealed(part)
        self._judge_epochs(allow_takeover)
        self._judge_accepted()
        self._find_second_owners()
        return not self.errors

    def _sealed(self):
        for rows in self.files:
            for row in rows:
                if row[0] != ACCEPTED:
                    yield row

    def _find_repeats(self, part):
        parts, first = self.parts, {}
        for _, epoch, connection, key, nonce, _, digest in self._sealed():
            if key == NO_KEY or key[0] % parts != part:
                continue
            use = (epoch, connection, digest)
            known = first.setdefault(key + nonce, use)
            if known[2] != digest or (known is not use and key + nonce in self.repeats):
                self.repeats.setdefault(key + nonce, {known}).add(use)

    def _find_unsealed(self, part):
        parts = self.parts
        sealed = {connection + digest for _, _, connection, _, _, _, digest in self._sealed()
                  if connection[0] % parts == part}
        for rows in self.files:
            for kind, epoch, connection, _, _, length, digest in rows:
                if kind == ACCEPTED and connection[0] % parts == part and connection + digest not in sealed:
                    self.errors.append(f"connection {connection.hex()} epoch {epoch}: a record of {length} bytes was "
                                       "accepted that nobody sealed")

    def _judge_epochs(self, allow_takeover):
        repeats_of_epoch = collections.Counter()
        for place, uses in self.repeats.items():
            key, nonce = place[:16].hex(), place[16:].hex()
            digests = collections.defaultdict(set)
            for epoch, _, digest in uses:
                digests[epoch].add(digest)
            for epoch, different in digests.items():
                if len(different) > 1:
                    self.errors.append(f"key {key} nonce {nonce}: {len(different)} ciphertexts in epoch {epoch}")
            if len(digests) > 1:
                self.across.append((key, nonce, sorted(digests)))
                repeats_of_epoch.update((key, epoch) for epoch in sorted(digests)[1:])
        if not allow_takeover:
            self.errors += [f"key {key} nonce {nonce}: different ciphertexts in epochs {epochs}"
                            for key, nonce, epochs in self.across]
        self.errors += [f"key {key}: {count} records of epoch {epoch} repeat a nonce; a takeover may repeat one"
                        for (key, epoch), count in repeats_of_epoch.items() if count > 1]

    def _judge_accepted(self):
        suspects = {connection + digest for uses in self.repeats.values() for _, connection, digest in uses}
        accepted = set()
        for rows in self.files if suspects else ():
            accepted |= suspects & {connection + digest
                                    for kind, _, connection, _, _, _, digest in rows if kind == ACCEPTED}
        for place, uses in self.repeats.items():
            taken = {digest for _, connection, digest in uses if connection + digest in accepted}
            if len(taken) > 1:
                self.errors.append(f"key {place[:16].hex()} nonce {place[16:].hex()}: "
                                   f"{len(taken)} different ciphertexts were accepted")

    def _find_second_owners(self):
        owners = {}
        for rows in self.files:
            for ownership in {(connection, epoch) for kind, epoch, connection, *_ in rows if kind == SEALED}:
                owner = owners.setdefault(ownership, rows.process)
                if owner != rows.process:
                    connection, epoch = ownership
                    self.errors.append(f"connection {connection.hex()} epoch {epoch}: "
                                       f"sealed by {owner} and by {rows.process}")

    def report(self):
        counted = ", ".join(f"{self.counts[kind]} {name}" for kind, name in KINDS.items())
        yield f"{len(self.files)} files, {len(self.connections)} connections, records: {counted}"
        yield f"nonces repeated across epochs: {len(self.across)}"
        for key, nonce, epochs in self.across[:LISTED]:
            yield f"  key {key} nonce {nonce} epochs {epochs}"
        yield f"errors: {len(self.errors)}"
        for error in self.errors[:LISTED]:
            yield f"  {error}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="what CSSL_AUDIT_DIR was")
    parser.add_argument("--allow-takeover", action="store_true", help="an unplanned takeover was part of the test")
    parser.add_argument("--min-accepted", type=int, default=0, metavar="N",
                        help="fail if fewer records were accepted: then nothing was tested")
    arguments = parser.parse_args()
    audit = Audit(load(arguments.directory))
    audit.judge(arguments.allow_takeover)
    if audit.counts[ACCEPTED] < arguments.min_accepted:
        audit.errors.append(f"{audit.counts[ACCEPTED]} records accepted, at least {arguments.min_accepted} expected")
    print("\n".join(audit.report()))
    return 1 if audit.errors else 0


if __name__ == "__main__":
    sys.exit(main())
