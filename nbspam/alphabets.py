"""Guessing a charset: the one in which bytes are the likeliest text of a language.

A language draws its characters independently (naive Bayes).  Its letters are listed from
the most to the least frequent, and their shares fall geometrically.  A Markov chain of two
states, ASCII and beyond, tells languages that write some letters with accents from those that
have their own letters.  All guesses are likelihoods of the same bytes, so they compare.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbspam.arrays import distinct

_FIRST_TO_LAST = 30  # how much more frequent the most frequent letter is than the least
_CAPITAL, _SHOUTED = 0.06, 0.9  # shares of capital letters: in usual text, in shouting
_ASCII = 1 / 40  # share of one ASCII character among them
_LOG_ASCII = float(np.log(_ASCII))
_RARE = 1e-5  # of a character that a language does not list, in a charset of 128 of them
_VERY_RARE = 1e-6  # in a charset of thousands, and of bytes that are no character
_NEVER = "\ufffd" + "".join(map(chr, range(0x80, 0xA0)))  # bytes that are no character, controls
_MOST_WRONG = 0.05  # share of such bytes in a charset that is considered
_SIGNS, _SIGN = "’“”–«»…•„‘—\xa0©®™°§№€£²½·º´", 0.03  # in any language; the share of all of them
_WIDE_SIGNS, _WIDE_SIGN = "\u3000，。、！：？（）；“”《》「」…—・～【】『』", 0.1
_COMMON = 0.5  # share of the common characters that are not listed; of thousands
# The penalties of less likely text, in nats: other text than Western, text in charsets of several
# bytes, each later charset of a language, and shouting.  E-349 says what _LATER does for short
# Chinese words.
_UNUSUAL, _SEVERAL, _LATER, _SHOUTING = 3.0, 2.0, 2.0, 2.0
# The rows of common characters in the charsets of several bytes, and the standard they are in.
_ROWS = {
    "gb18030": ("gb2312", range(0xB0, 0xD8)),
    "big5hkscs": ("big5", range(0xA4, 0xC7)),
    "cp932 euc-jp": ("euc-jp", range(0xB0, 0xD0)),
    "cp949": ("euc-kr", range(0xB0, 0xC9)),
}
_CELLS = [b"", *(bytes([cell, ord("\n")]) for cell in range(0x40, 0xFF))]  # of a row, behind it
# The kinds of code units that the chain tells apart.
_OTHER, _LETTER, _BEYOND = range(3)
_KIND_OF_UNIT = np.full(1 << 16, _BEYOND, np.uint8)
_KIND_OF_UNIT[:128] = [_LETTER if chr(code).isalpha() else _OTHER for code in range(128)]


class _Language(NamedTuple):
    """A language, and the charsets that programs write it in."""

    charsets: str
    letters: str  # beyond ASCII, from the most to the least frequent
    stays: float = 0.85  # chance that a character beyond ASCII follows another one
    beside: float = 0.03  # that the one before or after a run of them is an ASCII letter
    rest: float = _RARE  # share of each character that is not listed


_LATIN = {"stays": 0.05, "beside": 0.9}
_WIDE = {"stays": 0.93, "beside": 0.1}
_LANGUAGES = (
    # English has signs only, and what programs have garbled.
    _Language("cp1252", "\xa0’“”–£•—…®·©é¢", 0.1, 0.4, 1e-3),
    *(
        _Language("cp1252", letters, **_LATIN)
        for letters in (
            "äüöß",  # German
            "éèàêçôîûùâëïœ",  # French
            "óáíéñú¿¡ü",  # Spanish
            "ãçáéíóõêâàúô",  # Portuguese
            "àèéìòù",  # Italian
            "äåöé",  # Swedish
            "åøæé",  # Danish
            "áðíþöéóúæý",  # Icelandic
            "ëç",  # Albanian
            "éàóèíòçúïü·",  # Catalan
            "äõüö",  # Estonian
        )
    ),
    *(
        _Language("cp1250 iso8859-2", letters, **_LATIN)
        for letters in (
            "łąężśćóńź",  # Polish
            "íáéěřčžýšůúťňďó",  # Czech
            "áíéčýžšúťľňôďóä",  # Slovak
            "áéőíöóüűú",  # Hungarian
            "ăîâţş",  # Romanian
            "čšžćđ",  # Croatian
        )
    ),
    _Language("cp1254", "ıüşöğçİâî", **_LATIN),
    *(_Language("cp1257", letters, **_LATIN) for letters in ("ėšžųįąčęū", "āīēšūļņžķģč")),
    _Language("cp1258", "\u0300\u0301\u0323đ\u0309ưôơâăêà\u0303áạéíóúèùò", 0.2, 0.9),
    _Language("cp1251 koi8-r cp866 iso8859-5", "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"),
    _Language("cp1251 koi8-u", "оаинвіетрслкдумпзяьбгйчхцжшїющєфґ"),
    _Language("cp1253 iso8859-7", "αοιετσνηυρπκμλςίόάωέγήδύχθφώβξζψϊ"),
    _Language("cp1255", "יוהלאתרבשמנכעדחקפסטגםצזןךףץ", 0.8),
    _Language("cp1256 iso8859-6", "اليمونترسبدعفهكقأةحجشصطىخإذضزثآغئءظؤ،", 0.8),
    _Language("cp874", "านรเก่อ้มงยวลดัตทสีิคะุบหป์แพจชข็ไืใูโำถผศซณึธภฐๆญฉษฟฎฝฏฤฬ", 0.97),
)
_LANGUAGES_OF_WIDE = (
    _Language(
        "gb18030",
        "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发"
        "后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因"
        "只从想实日公司业请您新最信电网产品价联系服务免费",
        **_WIDE,
    ),
    _Language(
        "big5hkscs",
        "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發"
        "後作裡用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因"
        "只從想實日公司業請您新最信電網產品價聯系服務免費",
        **_WIDE,
    ),
    _Language(
        "cp932 euc-jp",
        "のいるにとてしたをはなでがれすっかりまさらこもうんくあけきーだそよどみせつえちおめやろわばンスルび"
        "トイアリクラじフレドげごシタマロぐジコプずデべサカテキグムメオビナバチセニハパ日人年大本国中一出"
        "時行見月分後前生間上東今入学高円子外気話電語事自社者地方新場手立業会動同的用名定",
        **_WIDE,
    ),
    _Language(
        "cp949",
        "이다는에의을가고하지기사한도로리자인은서어정시나를대해으부수일아그보스전제라구주여상있장원음"
        "습니게만성오면과조용비동안관공신무모들우경세드산회었방중소업년것",
        stays=0.8, beside=0.05,
    ),
)  # fmt: skip


def from_beyond_ascii(data: bytes, most: int) -> bytes:
    """Return about `most` bytes: the one before the first one beyond ASCII, and what follows."""
    try:
        data.decode("ascii")
    except UnicodeDecodeError as error:
        return data[max(error.start - 1, 0) : error.start + most]
    return b""


def likely_charset(sample: bytes) -> str:
    """Return the charset that bytes, which are not UTF-8, are most likely in.

    sample: some hundred bytes beyond ASCII are enough; begins with a whole character.
    """
    units = np.frombuffer(sample, np.uint8)
    names, prior, shares, chains = _charsets_of_one_byte()
    n_each = np.bincount(units, minlength=256).astype(float)
    score = prior + n_each[128:] @ shares + chains @ _chain(units)
    score += n_each[:128].sum() * _LOG_ASCII
    best = int(score.argmax())
    several = _charset_of_several_bytes(sample)
    return names[best] if several is None or several[0] < score[best] else several[1]


def _charset_of_several_bytes(sample: bytes) -> tuple[float, str] | None:
    """Return the likeliest charset of several bytes, after the log-likelihood of both."""
    candidates: list[tuple[float, str, Any, Any]] = []
    for name, prior, log_shares, chain in _charsets_of_several_bytes():
        text = sample.decode(name, "replace")
        if text.count("\ufffd") <= _MOST_WRONG * len(text) + 1:
            units = np.frombuffer(text.encode("utf-16-le", "replace"), "<u2")
            candidates.append((prior + float(log_shares.take(units).sum()), name, units, chain))
    if not candidates:
        return None
    # Their chains hardly differ, so the best one is found without.
    likelihood, name, units, chain = max(candidates, key=lambda candidate: candidate[0])
    return likelihood + float(chain @ _chain(units)), name


def _chain(units: Any) -> Any:
    """Return how often each kind of unit follows each other one, shape (9,)."""
    kinds = _KIND_OF_UNIT.take(units)
    return np.bincount(kinds[:-1] * 3 + kinds[1:], minlength=9).astype(float)


def _log_chain(language: _Language) -> Any:
    """Return the logarithms of the probabilities of what `_chain` counts, shape (9,)."""
    stays, beside = language.stays, language.beside
    steps = np.ones((3, 3))  # what follows ASCII in ASCII tells nothing
    steps[_BEYOND] = 1 - beside, beside, stays
    steps[:2, _BEYOND] = (1 - stays) * (1 - beside), (1 - stays) * beside
    return np.log(steps.ravel())


@cache
def _charsets_of_one_byte() -> tuple[list[str], Any, Any, Any]:
    """Return their names, prior, log shares of bytes beyond ASCII, and chains.

    A charset occurs once for each language and way of writing.  The shares have shape
    (128, n_charsets), the chains (n_charsets, 9).
    """
    names, prior, columns, chains = [], [], [], []
    others = dict.fromkeys(_SIGNS, _SIGN / len(_SIGNS))
    never = dict.fromkeys(_NEVER, _VERY_RARE)
    for language in _LANGUAGES:
        written = [_shares(language.letters, 1 - _SIGN, each) for each in (_CAPITAL, _SHOUTED)]
        chain = _log_chain(language)
        for place, charset in enumerate(language.charsets.split()):
            letters = bytes(range(128, 256)).decode(charset, "replace")
            for is_shouted, listed in enumerate(written):
                shares = {**others, **listed, **never}
                unlikely = _UNUSUAL * (charset != "cp1252") + _LATER * place
                names.append(charset)
                prior.append(-unlikely - _SHOUTING * is_shouted)
                columns.append([shares.get(letter, language.rest) for letter in letters])
                chains.append(chain)
    return names, np.array(prior), np.log(columns).T, np.stack(chains)


@cache
def _charsets_of_several_bytes() -> list[tuple[str, float, Any, Any]]:
    """Return the name, prior, log shares (65536,) by code point, and chain of each."""
    found = []
    for language in _LANGUAGES_OF_WIDE:
        standard, rows = _ROWS[language.charsets]
        # All at once, on lines of their own: a call for each pair would take far longer.
        pairs = b"".join([bytes([row]).join(_CELLS) for row in rows])
        text = pairs.decode(standard, "ignore").encode("utf-16-le")
        units = np.frombuffer(text, "<u2")
        common = distinct(units[units > 127])
        listed = _shares(language.letters, 1 - _COMMON - _WIDE_SIGN, 0)
        each = dict.fromkeys(_WIDE_SIGNS, _WIDE_SIGN / len(_WIDE_SIGNS)) | listed
        log_shares = np.full(1 << 16, np.log(_VERY_RARE))
        log_shares[:128] = _LOG_ASCII
        log_shares[common] = np.log(_COMMON / len(common))
        log_shares[list(map(ord, each))] = np.log(list(each.values()))
        chain = _log_chain(language)
        for place, name in enumerate(language.charsets.split()):
            found.append((name, -_SEVERAL - _LATER * place, log_shares, chain))
    return found


def _shares(letters: str, share: float, capitals: float) -> dict[str, float]:
    """Return the shares of letters, and of their capitals; share: of all of them."""
    falling = _FIRST_TO_LAST ** -(np.arange(len(letters)) / len(letters))
    falling *= share / falling.sum()
    shares: dict[str, float] = {}
    for letter, own in zip(letters, falling.tolist(), strict=True):
        capital = letter.upper() if len(letter.upper()) == 1 else letter
        shares[letter] = shares.get(letter, 0) + own * (1 - capitals)
        shares[capital] = shares.get(capital, 0) + own * capitals
    return shares
