#!/usr/bin/env python3
"""pieces.json: how each tokenizer family's published pattern cuts random texts, computed with the `regex` package.

  pip install regex && python make_pieces.py [--count N] > pieces.json

Every row is [family, text in hex, piece lengths in bytes]. Texts are drawn from characters that the patterns tell apart
(case classes, marks, digits of several scripts, every kind of space, apostrophes, invalid bytes).
"""
import argparse
import json
import random
import sys

import regex

CONTRACTION = "'s|'t|'re|'ve|'m|'ll|'d"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PREFIX = r"[^\r\n\p{L}\p{N}]?"


def o200k(tail):
    return (f"{PREFIX}{UPPER}*{LOWER}+(?i:{CONTRACTION})?|{PREFIX}{UPPER}+{LOWER}*(?i:{CONTRACTION})?"
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+" + tail + TAIL)


GPT2 = CONTRACTION + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA = f"(?i:{CONTRACTION})|{PREFIX}" + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
PATTERNS = {
    "gpt2": GPT2,
    "smollm": GPT2,
    "qwen2": LLAMA.replace("{1,3}", ""),
    "llama-bpe": LLAMA,
    "o200k": o200k(r"[\r\n/]*"),
    "minimax-m2": o200k(r"[\r\n]*"),
}
ALPHABET = (list("aZbQ09 \n\r\t'_/!(\"sStTmMdDrReEvVlL") + ["  ", "\r\n", "'s", "'LL", "'Ve", "\u00e9", "\u00c9", "\u01c5", "\u02b0",
            "\u4e2d", "\u0301", "\u093f", "\u0967", "\u00b2", "\u2167", "\u00a0", "\u2003", "\u3000", "\u0085", "\u2028", "\u200b",
            "\U0001f600", "\U0001d518", "\u017f", "\udcff", "\udc80", "\udce4\udcb8", "\u2014", "\x1c"])


def pieces(family, text):
    parts = regex.split(r"(\p{N})", text) if family == "smollm" else [text]
    pattern = regex.compile(PATTERNS[family])
    found = [m for part in parts for m in pattern.findall(part)]
    assert "".join(found) == text, (family, text)
    return [len(p.encode("utf-8", "surrogateescape")) for p in found]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=60)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    rng = random.Random(args.seed)
    rows = []
    for family in PATTERNS:
        for i in range(args.count):
            few = rng.sample(ALPHABET, rng.choice([3, 6, len(ALPHABET)]))
            text = "".join(rng.choice(few) for _ in range(rng.choice([4, 12, 30])))
            # Escaped bytes may join into valid characters; the pattern must see what a reader of bytes sees.
            text = text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
            rows.append([family, text.encode("utf-8", "surrogateescape").hex(), pieces(family, text)])
    sys.stdout.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")


if __name__ == "__main__":
    main()
