"""Pure core: sets of characters, as questions that are asked of one character: ranges, RE2's classes, and their cases.

Nothing here lists what is in a class: a class of Unicode has thousands of characters, and a text shows a few of them.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, TypeAlias

CharacterSet: TypeAlias = "Callable[[str], bool]"
"""Says whether a character is one of the set."""


def ranges(pairs: Iterable[tuple[int, int]]) -> CharacterSet:
    """Return the characters between code points, both ends included."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    bounds = tuple(chain.from_iterable((low, high + 1) for low, high in merged))
    return lambda character: bisect_right(bounds, ord(character)) % 2 == 1


@lru_cache(maxsize=1024)
def literal(point: int, *, folds: bool) -> CharacterSet:
    """Return the one character of a code point; with `folds` those that differ from it in case alone too."""
    one = ranges([(point, point)])
    return folded(one) if folds else one


def negated(of: CharacterSet) -> CharacterSet:
    """Return all other characters."""
    return lambda character: not of(character)


def union(sets: Sequence[CharacterSet]) -> CharacterSet:
    """Return the characters of any of the sets."""
    return sets[0] if len(sets) == 1 else lambda character: any(one(character) for one in sets)


def folded(of: CharacterSet) -> CharacterSet:
    """Return the characters of a set, and those that differ from one of them in case alone."""
    return lambda character: any(of(one) for one in cases(character))


def cases(character: str) -> Sequence[str]:
    """Return a character and those that differ from it in case alone, by Unicode's simple case folding."""
    known = _CASES.get(character)
    if known is not None:
        return known
    others = (character.lower(), character.upper())
    return (character, *(one for one in others if one != character and len(one) == 1))


# fmt: off
_ORBITS: Final = (
    "\u0131", "\u0130", "Kk\u212a", "Ss\u017f", "\xb5\u039c\u03bc", "\xc5\xe5\u212b", "\xdf\u1e9e",
    "\u01c4\u01c5\u01c6",
    "\u01c7\u01c8\u01c9", "\u01ca\u01cb\u01cc", "\u01f1\u01f2\u01f3", "\u0345\u0399\u03b9\u1fbe", "\u0392\u03b2\u03d0",
    "\u0395\u03b5\u03f5", "\u0398\u03b8\u03d1\u03f4", "\u039a\u03ba\u03f0", "\u03a0\u03c0\u03d6", "\u03a1\u03c1\u03f1",
    "\u03a3\u03c2\u03c3", "\u03a6\u03c6\u03d5", "\u03a9\u03c9\u2126", "\u0412\u0432\u1c80", "\u0414\u0434\u1c81",
    "\u041e\u043e\u1c82", "\u0421\u0441\u1c83", "\u0422\u0442\u1c84\u1c85", "\u042a\u044a\u1c86", "\u0462\u0463\u1c87",
    "\u1c88\ua64a\ua64b", "\u1e60\u1e61\u1e9b", "\u1fb3\u1fbc", "\u1fc3\u1fcc", "\u1ff3\u1ffc",
    *(chr(low + at) + chr(low + at + 8) for low in (0x1F80, 0x1F90, 0x1FA0) for at in range(8)),
)
# fmt: on
_CASES: Final = {character: tuple(orbit) for orbit in _ORBITS for character in orbit}
"""Where Python's `lower` and `upper` do not lead from each character to all others, or lead further."""

ANY: Final[CharacterSet] = ranges([(0, 0x10FFFF)])
NOT_NEWLINE: Final[CharacterSet] = ranges([(0, 9), (11, 0x10FFFF)])


def _ascii(text: str) -> CharacterSet:
    """Return the characters of pairs such as `azAZ`."""
    return ranges((ord(low), ord(high)) for low, high in zip(text[::2], text[1::2], strict=True))


WORD: Final[CharacterSet] = _ascii("azAZ09__")
"""The characters that a word's boundary goes by."""

PERL: Final = {"d": _ascii("09"), "s": _ascii("\t\n\f\r  "), "w": WORD}
"""What a backslash and a letter stand for; capitals stand for the rest."""

POSIX: Final[dict[str, CharacterSet]] = {
    "alnum": _ascii("azAZ09"),
    "alpha": _ascii("azAZ"),
    "ascii": _ascii("\x00\x7f"),
    "blank": _ascii("\t\t  "),
    "cntrl": _ascii("\x00\x1f\x7f\x7f"),
    "digit": _ascii("09"),
    "graph": _ascii("!~"),
    "lower": _ascii("az"),
    "print": _ascii(" ~"),
    "punct": _ascii("!/:@[`{~"),
    "space": _ascii("\t\r  "),
    "upper": _ascii("AZ"),
    "word": WORD,
    "xdigit": _ascii("09afAF"),
}
"""`[[:name:]]`."""

# fmt: off
_CATEGORIES: Final = frozenset((
    "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No",
    "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
))
# fmt: on
# fmt: off
_SCRIPTS: Final = frozenset((
    "Adlam", "Ahom", "Anatolian_Hieroglyphs", "Arabic", "Armenian", "Avestan", "Balinese", "Bamum", "Bassa_Vah",
    "Batak", "Bengali", "Bhaiksuki", "Bopomofo", "Brahmi", "Braille", "Buginese", "Buhid", "Canadian_Aboriginal",
    "Carian", "Caucasian_Albanian", "Chakma", "Cham", "Cherokee", "Chorasmian", "Common", "Coptic", "Cuneiform",
    "Cypriot",
    "Cyrillic", "Deseret", "Devanagari", "Dives_Akuru", "Dogra", "Duployan", "Egyptian_Hieroglyphs", "Elbasan",
    "Elymaic", "Ethiopic", "Georgian", "Glagolitic", "Gothic", "Grantha", "Greek", "Gujarati", "Gunjala_Gondi",
    "Gurmukhi", "Han", "Hangul", "Hanifi_Rohingya", "Hanunoo", "Hatran", "Hebrew", "Hiragana", "Imperial_Aramaic",
    "Inherited", "Inscriptional_Pahlavi", "Inscriptional_Parthian", "Javanese", "Kaithi", "Kannada", "Katakana",
    "Kayah_Li", "Kharoshthi", "Khitan_Small_Script", "Khmer", "Khojki", "Khudawadi", "Lao", "Latin", "Lepcha", "Limbu",
    "Linear_A", "Linear_B", "Lisu", "Lycian", "Lydian", "Mahajani", "Makasar", "Malayalam", "Mandaic", "Manichaean",
    "Marchen", "Masaram_Gondi", "Medefaidrin", "Meetei_Mayek", "Mende_Kikakui", "Meroitic_Cursive",
    "Meroitic_Hieroglyphs", "Miao", "Modi", "Mongolian", "Mro", "Multani", "Myanmar", "Nabataean", "Nandinagari",
    "New_Tai_Lue", "Newa", "Nko", "Nushu", "Nyiakeng_Puachue_Hmong", "Ogham", "Ol_Chiki", "Old_Hungarian",
    "Old_Italic", "Old_North_Arabian", "Old_Permic", "Old_Persian", "Old_Sogdian", "Old_South_Arabian",
    "Old_Turkic", "Oriya", "Osage", "Osmanya", "Pahawh_Hmong", "Palmyrene", "Pau_Cin_Hau", "Phags_Pa", "Phoenician",
    "Psalter_Pahlavi", "Rejang", "Runic", "Samaritan", "Saurashtra", "Sharada", "Shavian", "Siddham", "SignWriting",
    "Sinhala", "Sogdian", "Sora_Sompeng", "Soyombo", "Sundanese", "Syloti_Nagri", "Syriac", "Tagalog", "Tagbanwa",
    "Tai_Le", "Tai_Tham", "Tai_Viet", "Takri", "Tamil", "Tangut", "Telugu", "Thaana", "Thai", "Tibetan", "Tifinagh",
    "Tirhuta", "Ugaritic", "Vai", "Wancho", "Warang_Citi", "Yezidi", "Yi", "Zanabazar_Square",
))
# fmt: on
_BY_WORDS: Final = {
    "CJK": "Han",
    "FULLWIDTH LATIN": "Latin",
    "KELVIN SIGN": "Latin",
    "ANGSTROM SIGN": "Latin",
    "FEMININE ORDINAL INDICATOR": "Latin",
    "MASCULINE ORDINAL INDICATOR": "Latin",
    "OHM SIGN": "Greek",
    "IDEOGRAPHIC NUMBER ZERO": "Han",
    "COMBINING": "Inherited",
    "VARIATION SELECTOR": "Inherited",
    **{name.upper().replace("_", " "): name for name in _SCRIPTS if name not in ("Common", "Inherited")},
}
"""By the first words of a character's name, the script that it belongs to."""


@lru_cache(maxsize=512)
def unicode_class(name: str) -> CharacterSet | None:
    r"""Return the characters of a general category or a script (`\pL`, `\p{Greek}`); None when there is none such.

    Python does not know scripts: a character's is told from its name, which errs for some marks and symbols.
    """
    if name == "Any":
        return ANY
    if name in _SCRIPTS:
        return lambda character: _script(character) == name
    if name in _CATEGORIES:
        # What is not assigned belongs to no class.
        return lambda character: (category := unicodedata.category(character)) != "Cn" and category.startswith(name)
    return None


def _script(character: str) -> str | None:
    words = unicodedata.name(character, "").split()
    for count in (1, 2, 3, 4):
        known = _BY_WORDS.get(" ".join(words[:count]))
        if known is not None:
            return known
    return None if unicodedata.category(character) in ("Cn", "Co", "Cs") else "Common"
