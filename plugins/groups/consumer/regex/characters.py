"""Pure core: the characters of topic names, and the sets of them that RE2's classes stand for."""

from __future__ import annotations

import string
import unicodedata
from typing import Final

CharacterSet = frozenset[str]

ALL: Final[CharacterSet] = frozenset(string.ascii_letters + string.digits + "._-")
"""The characters that topic names are made of."""

NONE: Final[CharacterSet] = frozenset()
DIGITS: Final[CharacterSet] = frozenset(string.digits)
WORD: Final[CharacterSet] = frozenset(string.ascii_letters + string.digits + "_")

PERL: Final = {"d": DIGITS, "s": NONE, "w": WORD}
"""What a backslash and a letter stand for; capitals stand for the rest."""

POSIX: Final[dict[str, CharacterSet]] = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "ascii": ALL,
    "blank": NONE,
    "cntrl": NONE,
    "digit": DIGITS,
    "graph": ALL,
    "lower": frozenset(string.ascii_lowercase),
    "print": ALL,
    "punct": frozenset("._-"),
    "space": NONE,
    "upper": frozenset(string.ascii_uppercase),
    "word": WORD,
    "xdigit": frozenset(string.hexdigits),
}
"""`[[:name:]]`."""

# fmt: off
_CATEGORIES: Final = frozenset((
    "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No",
    "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
))
# fmt: on
_SCRIPTS_OF_NAMES: Final = {
    "Any": ALL,
    "Common": ALL - POSIX["alpha"],
    "Latin": POSIX["alpha"],
}
# fmt: off
_OTHER_SCRIPTS: Final = frozenset((
    "Adlam", "Ahom", "Anatolian_Hieroglyphs", "Arabic", "Armenian", "Avestan", "Balinese", "Bamum", "Bassa_Vah",
    "Batak", "Bengali", "Bhaiksuki", "Bopomofo", "Brahmi", "Braille", "Buginese", "Buhid", "Canadian_Aboriginal",
    "Carian", "Caucasian_Albanian", "Chakma", "Cham", "Cherokee", "Chorasmian", "Coptic", "Cuneiform", "Cypriot",
    "Cyrillic", "Deseret", "Devanagari", "Dives_Akuru", "Dogra", "Duployan", "Egyptian_Hieroglyphs", "Elbasan",
    "Elymaic", "Ethiopic", "Georgian", "Glagolitic", "Gothic", "Grantha", "Greek", "Gujarati", "Gunjala_Gondi",
    "Gurmukhi", "Han", "Hangul", "Hanifi_Rohingya", "Hanunoo", "Hatran", "Hebrew", "Hiragana", "Imperial_Aramaic",
    "Inherited", "Inscriptional_Pahlavi", "Inscriptional_Parthian", "Javanese", "Kaithi", "Kannada", "Katakana",
    "Kayah_Li", "Kharoshthi", "Khitan_Small_Script", "Khmer", "Khojki", "Khudawadi", "Lao", "Lepcha", "Limbu",
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
"""Scripts that no topic name can have a character of; the names are valid all the same."""


def unicode_class(name: str) -> CharacterSet | None:
    r"""Return the characters of a general category or a script (`\pL`, `\p{Greek}`); None when there is none such."""
    if name in _SCRIPTS_OF_NAMES:
        return _SCRIPTS_OF_NAMES[name]
    if name in _OTHER_SCRIPTS:
        return NONE
    if name in _CATEGORIES:
        return frozenset(character for character in ALL if unicodedata.category(character).startswith(name))
    return None


def between(low: int, high: int, *, folds: bool) -> CharacterSet:
    """Return the characters of a range of code points; with `folds`, those that differ from one in case alone too."""
    found = frozenset(character for character in ALL if low <= ord(character) <= high)
    if not folds:
        return found
    outside = {chr(point).casefold() for point in _FOLDED_FROM_AFAR if low <= point <= high}
    folded = {character.casefold() for character in found} | outside
    return frozenset(character for character in ALL if character.casefold() in folded)


_FOLDED_FROM_AFAR: Final = (0x17F, 0x212A)
"""The long s and the Kelvin sign: not ASCII, but they differ from `s` and `k` in case alone."""
