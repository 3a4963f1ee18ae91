"""The mails of benchmarks/scripts.py say what they are said to say, in every charset and way."""

from email import message_from_bytes, policy

from script_texts import SCRIPTS, encoded, sentences
from scripts import WAYS, as_bytes, written_mails


def test_the_standard_library_reads_the_mail_that_was_written():
    for script in SCRIPTS:
        (mail,) = written_mails(sentences(script), 1, 300)
        assert len(mail.text.replace("\n", "")) == 300
        for charset in {"utf-8", *script.charsets} - {"windows-874"}:  # unknown to Python's parser
            python = {"windows-1258": "cp1258"}.get(charset, charset)
            said = [encoded(each, charset).decode(python) for each in mail[1:]]
            for way in set(WAYS) - {"undeclared"}:
                parsed = message_from_bytes(as_bytes(mail, charset, way), policy=policy.default)

                assert str(parsed["Subject"]) == said[0]
                assert parsed["From"].startswith((said[1], f'"{said[1]}'))
                assert parsed.get_content().rstrip("\n") == said[2]
