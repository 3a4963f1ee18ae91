"""Strategies of several property tests: messages, and settings for their tokens."""

from hypothesis import strategies as st

from nbspam.mail.message import Field, Message
from nbspam.settings import TokenSettings

ORIGINS = st.sampled_from(["body", "rest", "hidden", "alt", "url", "html"])
HEADS = st.lists(
    st.sampled_from(
        ["Subject: free", "to:", "\n", "\n ", "\n\t", "X-Mailer", " : a:b", ":", "X-Spam: y", "é"]
    ),
    max_size=12,
).map(lambda pieces: "".join(pieces).encode())
# Few letters, so that words repeat; punctuation, long words, several scripts.
TEXTS = st.one_of(
    st.text("ab $'-.,<\n", max_size=60),
    st.text("aé中ßﬁ​ ", max_size=20),
    st.text("中国人𠀀ก\u0301 b。", max_size=30),  # scripts without spaces
    st.text(max_size=30),
    st.text("xyக", min_size=10, max_size=90),
    st.text("a1-_2 ", min_size=8, max_size=40),  # letters apart, digits between them
    st.lists(st.sampled_from(["a-", "b_", "c", " ", "3", "é"]), max_size=20).map("".join),
)
FIELDS = st.one_of(
    st.builds(Field, ORIGINS, TEXTS.map(lambda text: text.encode("utf-8", "replace"))),
    st.builds(Field, st.sampled_from(["head", "part-head", "nested-head"]), HEADS),
)
MESSAGES = st.builds(Message, st.lists(FIELDS, max_size=6).map(tuple))
TOKEN_SETTINGS = st.builds(
    TokenSettings,
    punctuation=st.sampled_from(["", "$'-", "_"]),
    min_length=st.integers(1, 3),
    max_length=st.sampled_from([1, 8, 9, 40]),
    pairs=st.booleans(),
    raw=st.booleans(),
    characters=st.booleans(),
)
