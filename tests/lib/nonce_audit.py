#!/usr/bin/python3
"""Judges the nonce audit of a test run (net/points/audit.h): for one key and nonce at most one ciphertext may ever leave (law 1).

Agents wrote a row for each record they sealed and for each ownership they left, RAgent a row for each record it accepted. Errors:
  - one (key, nonce), two ciphertexts, one epoch;
  - one (key, nonce), two ciphertexts, two epochs: allowed with --allow-takeover, in TLS 1.3, where the later record is of constant
    content (a KeyUpdate or an alert), and for at most one record of each key and later epoch; always listed (law 5);
  - two different ciphertexts of one (key, nonce) accepted, or one of them OpenSSL's, before the export;
  - a record accepted that nobody sealed, or under another epoch than RAgent's own (laws 2 and 3);
  - records of one connection and epoch sealed by two processes (law 2);
  - an owner that goes on under the keys of one that did not freeze, but for one record of constant content (TLS 1.3) or under nonces
    of its own (TLS 1.2 with AES-GCM) (law 5);
  - a record under the keys behind an own KeyUpdate that RAgent had not accepted by then (law 6);
  - a KeyUpdate without a copy of the keys behind it before (law 6);
  - a record sealed by an agent that had frozen the connection, or had lost its link, under that epoch (law 7);
  - a record sealed in memory that RAgent shares (law 12).

May be run while the processes still write: accepted rows are read first, so what they follow from is there.
"""

import argparse
import collections
import mmap
import os
import struct
import sys
import time

ROW = struct.Struct("<BBHI16s16s12sI16sQ")
# kind, type, suite, epoch, connection, key, nonce, length, digest, at_ns
SEALED, ACCEPTED, SEALED_BY_OPENSSL, FROZEN, LOST, COPIED, IN_RING = 1, 2, 3, 4, 5, 6, 7
KINDS = {SEALED: "sealed", ACCEPTED: "accepted", SEALED_BY_OPENSSL: "sealed by OpenSSL", FROZEN: "frozen", LOST: "lost", COPIED: "copied",
         IN_RING: "sealed in a ring"}
ALERT, HANDSHAKE, DATA = 21, 22, 23
TYPES = {ALERT: "an alert", HANDSHAKE: "a KeyUpdate", DATA: "application data"}
CONSTANT = (ALERT, HANDSHAKE)
CHACHA20_TLS12 = (0xcca8, 0xcca9)
NO_KEY = bytes(16)
ROWS_AT_ONCE = 1_000_000  # what one part of the work may hold in memory
LISTED = 20


def is_tls13(suite):
    return suite >> 8 == 0x13


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
        """The file has rows, then zeros: binary search for the end."""
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


class Ownership:
    """The records that one agent sealed for a connection under one epoch."""

    def __init__(self, suite, at_ns, copied):
        self.suite, self.began_ns = suite, at_ns
        self.sealed = collections.Counter()  # {key: records}
        self.first_types = {}                # {key: type of its first record}
        self.left_ns = self.frozen_ns = None
        self.key_update = None               # (key, digest) of the one that was sealed last
        self.copied = copied                 # since its last KeyUpdate
        self.behind = []                     # (digest of a KeyUpdate, when the first record followed it under the next key)
        self.after_leaving = self.without_copy = 0

    def seals(self, row):
        _, content, _, _, _, key, _, _, digest, at_ns = row
        self.sealed[key] += 1
        self.first_types.setdefault(key, content)
        self.after_leaving += self.left_ns is not None
        if self.key_update and self.key_update[0] != key:
            self.behind.append((self.key_update[1], at_ns))
            self.key_update = None
        if content == HANDSHAKE:
            self.key_update = key, digest
            self.without_copy += not self.copied
            self.copied = False

    def leaves(self, kind, at_ns):
        self.left_ns = at_ns
        if kind == FROZEN:
            self.frozen_ns = at_ns


class Audit:
    def __init__(self, files, until_ns=None):
        """`until_ns`: when reading the files began; some later rows may be missing."""
        self.files = files
        self.until_ns = time.monotonic_ns() if until_ns is None else until_ns
        self.counts = collections.Counter()
        self.connections = set()
        self.errors = []
        self.repeats = {}     # (key + nonce) -> {(epoch, connection, hash, type, suite, kind)}, only where ciphertexts differ
        self.across = []      # repeats across epochs: (key, nonce, epochs)
        self.undelivered = 0  # sealed by agents, and RAgent, which has the connection, never accepted them
        self._count()
        rows = sum(self.counts.values())
        self.parts = rows // ROWS_AT_ONCE + 1

    def _count(self):
        for rows in self.files:
            for kind, _, _, _, connection, *_ in rows:
                self.counts[kind] += 1
                self.connections.add(connection)
        for kind in self.counts.keys() - KINDS.keys():
            self.errors.append(f"{self.counts[kind]} rows of unknown kind {kind}")
        if self.counts[IN_RING]:
            self.errors.append(f"{self.counts[IN_RING]} records were sealed in memory that another process can write")

    def judge(self, allow_takeover):
        for part in range(self.parts):
            self._find_repeats(part)
            self._join(part)
            self._follow(part)
        self._judge_epochs(allow_takeover)
        self._judge_accepted()
        self._find_second_owners()
        return not self.errors

    # one key and nonce

    def _find_repeats(self, part):
        parts, first = self.parts, {}
        for rows in self.files:
            for kind, content, suite, epoch, connection, key, nonce, _, digest, _ in rows:
                if kind not in (SEALED, SEALED_BY_OPENSSL) or key == NO_KEY or key[0] % parts != part:
                    continue
                use = (epoch, connection, digest, content, suite, kind)
                known = first.setdefault(key + nonce, use)
                if known[2] != digest or (known is not use and key + nonce in self.repeats):
                    self.repeats.setdefault(key + nonce, {known}).add(use)

    def _judge_epochs(self, allow_takeover):
        repeats_of_epoch = collections.Counter()
        for place, uses in self.repeats.items():
            key, nonce = place[:16].hex(), place[16:].hex()
            digests = collections.defaultdict(set)
            for epoch, _, digest, *_ in uses:
                digests[epoch].add(digest)
            if any(kind == SEALED_BY_OPENSSL for *_, kind in uses):  # RAgent had that record before there was another owner
                self.errors.append(f"key {key} nonce {nonce}: used by OpenSSL, and in epochs {sorted(digests)}")
            for epoch, different in digests.items():
                if len(different) > 1:
                    self.errors.append(f"key {key} nonce {nonce}: {len(different)} ciphertexts in epoch {epoch}")
            if len(digests) > 1:
                self.across.append((key, nonce, sorted(digests)))
                repeats_of_epoch.update((key, epoch) for epoch in sorted(digests)[1:])
                self._judge_content(key, nonce, min(digests), uses)
        if not allow_takeover:
            self.errors += [f"key {key} nonce {nonce}: different ciphertexts in epochs {epochs}"
                            for key, nonce, epochs in self.across]
        self.errors += [f"key {key}: {count} records of epoch {epoch} repeat a nonce; a takeover may repeat one"
                        for (key, epoch), count in repeats_of_epoch.items() if count > 1]

    def _judge_content(self, key, nonce, first_epoch, uses):
        for epoch, _, _, content, suite, _ in sorted(uses):
            if epoch != first_epoch and not (is_tls13(suite) and content in CONSTANT):
                self.errors.append(f"key {key} nonce {nonce}: repeated in epoch {epoch} by {TYPES.get(content, content)} "
                                   f"of suite {suite:04x}")

    def _judge_accepted(self):
        suspects = {connection + digest for uses in self.repeats.values() for _, connection, digest, *_ in uses}
        accepted = set()
        for rows in self.files if suspects else ():
            accepted |= suspects & {row[4] + row[8] for row in rows if row[0] == ACCEPTED}
        for place, uses in self.repeats.items():
            taken = {digest for _, connection, digest, *_ in uses if connection + digest in accepted}
            if len(taken) > 1:
                self.errors.append(f"key {place[:16].hex()} nonce {place[16:].hex()}: "
                                   f"{len(taken)} different ciphertexts were accepted")

    # what was sealed and what was accepted

    def _join(self, part):
        """Every accepted record was sealed under the epoch that it was accepted in."""
        parts, sealed, by_openssl, accepted = self.parts, set(), set(), set()
        for rows in self.files:
            for kind, _, _, epoch, connection, _, _, _, digest, _ in rows:
                if connection[0] % parts == part and kind in (SEALED, SEALED_BY_OPENSSL):
                    (sealed if kind == SEALED else by_openssl).add((connection, digest, epoch))
        for rows in self.files:
            for kind, _, _, epoch, connection, _, _, length, digest, _ in rows:
                if kind != ACCEPTED or connection[0] % parts != part:
                    continue
                record = (connection, digest, epoch)
                accepted.add(record)
                if record not in sealed and record not in by_openssl:
                    self.errors.append(f"connection {connection.hex()} epoch {epoch}: a record of {length} bytes was accepted that "
                                       + self._where_from(connection, digest, sealed | by_openssl))
        known = {connection for connection, *_ in accepted}
        self.undelivered += sum(record[0] in known and record not in accepted for record in sealed)

    @staticmethod
    def _where_from(connection, digest, sealed):
        epochs = sorted(epoch for one, other, epoch in sealed if (one, other) == (connection, digest))
        return f"was sealed in epochs {epochs}" if epochs else "nobody sealed"

    # one owner after another

    def _follow(self, part):
        owned, copied = collections.defaultdict(dict), set()  # `copied`: before the first record of an epoch
        accepted_ns = {}
        for rows in self.files:
            for row in rows:
                kind, _, suite, epoch, connection, _, _, _, digest, at_ns = row
                if connection[0] % self.parts != part:
                    continue
                if kind == SEALED:
                    if epoch not in owned[connection]:
                        owned[connection][epoch] = Ownership(suite, at_ns, (connection, epoch) in copied)
                    owned[connection][epoch].seals(row)
                elif kind == COPIED:
                    copied.add((connection, epoch))
                    if epoch in owned[connection]:
                        owned[connection][epoch].copied = True
                elif kind in (FROZEN, LOST) and epoch in owned[connection]:
                    owned[connection][epoch].leaves(kind, at_ns)
                elif kind == ACCEPTED:
                    accepted_ns.setdefault(connection, {})[digest] = at_ns
        for connection, epochs in owned.items():
            for epoch, ownership in epochs.items():
                where = f"connection {connection.hex()} epoch {epoch}"
                self._judge_ownership(where, ownership, accepted_ns.get(connection))
                self._judge_doubt(where, ownership, [epochs[before] for before in epochs if before < epoch])

    def _judge_ownership(self, where, ownership, accepted_ns):
        if ownership.after_leaving:
            self.errors.append(f"{where}: {ownership.after_leaving} records were sealed after the agent had left it")
        if ownership.without_copy:
            self.errors.append(f"{where}: {ownership.without_copy} KeyUpdates were sealed before a copy of the keys behind them")
        for digest, at_ns in ownership.behind if accepted_ns is not None else ():
            if at_ns < self.until_ns and accepted_ns.get(digest, at_ns + 1) > at_ns:
                self.errors.append(f"{where}: a record was sealed behind a KeyUpdate that was not committed")

    def _judge_doubt(self, where, ownership, predecessors):
        if ownership.began_ns >= self.until_ns:
            return
        doubtful = {key for one in predecessors if one.frozen_ns is None or one.frozen_ns > ownership.began_ns for key in one.sealed}
        for key in doubtful & ownership.sealed.keys():
            records, first = ownership.sealed[key], ownership.first_types[key]
            if ownership.suite in CHACHA20_TLS12:
                self.errors.append(f"{where}: {records} records in doubt under keys of TLS 1.2 with ChaCha20")
            elif is_tls13(ownership.suite) and (records > 1 or first not in CONSTANT):
                self.errors.append(f"{where}: {records} records in doubt under one key, the first of them {TYPES.get(first, first)}")

    def _find_second_owners(self):
        owners = {}
        for rows in self.files:
            for ownership in {(row[4], row[3]) for row in rows if row[0] == SEALED}:
                owner = owners.setdefault(ownership, rows.process)
                if owner != rows.process:
                    connection, epoch = ownership
                    self.errors.append(f"connection {connection.hex()} epoch {epoch}: "
                                       f"sealed by {owner} and by {rows.process}")

    def report(self):
        counted = ", ".join(f"{self.counts[kind]} {name}" for kind, name in KINDS.items())
        yield f"{len(self.files)} files, {len(self.connections)} connections, records: {counted}"
        yield f"sealed and never accepted: {self.undelivered}"
        yield f"nonces repeated across epochs: {len(self.across)}"
        for key, nonce, epochs in self.across[:LISTED]:
            yield f"  key {key} nonce {nonce} epochs {epochs}"
        yield f"errors: {len(self.errors)}"
        for error in self.errors[:LISTED]:
            yield f"  {error}"


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="what CSSL_AUDIT_DIR was")
    parser.add_argument("--allow-takeover", action="store_true", help="an unplanned takeover was part of the test")
    parser.add_argument("--min-accepted", type=int, default=0, metavar="N",
                        help="fail if fewer records were accepted: then nothing was tested")
    parser.add_argument("--min-undelivered", type=int, default=0, metavar="N",
                        help="fail if fewer records were sealed and never accepted: then nothing was in doubt")
    arguments = parser.parse_args(words)
    until_ns = time.monotonic_ns()
    audit = Audit(load(arguments.directory), until_ns)
    audit.judge(arguments.allow_takeover)
    if audit.counts[ACCEPTED] < arguments.min_accepted:
        audit.errors.append(f"{audit.counts[ACCEPTED]} records accepted, at least {arguments.min_accepted} expected")
    if audit.undelivered < arguments.min_undelivered:
        audit.errors.append(f"{audit.undelivered} records sealed and never accepted, at least {arguments.min_undelivered} expected")
    print("\n".join(audit.report()))
    return 1 if audit.errors else 0


if __name__ == "__main__":
    sys.exit(main())
