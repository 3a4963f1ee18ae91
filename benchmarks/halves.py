"""Compare the errors of SpamAssassin and scikit-learn on the same halves as moving_in.py.

usage: python benchmarks/halves.py CORPUS [spamassassin|scikit-learn]

CORPUS is a folder with ham/ and spam/.  Every other message is learned, and the rest classified.
SpamAssassin needs its Perl modules; it runs without network tests, a quarter of an hour for
6,000 messages.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from moving_in import LABELS, say

PERL = r"""
use strict; use warnings; use Mail::SpamAssassin;
my ($state) = @ARGV;
my $sa = Mail::SpamAssassin->new({
    local_tests_only => 1, userprefs_filename => '/dev/null', dont_copy_prefs => 1,
    userstate_dir => $state, post_config_text => "required_score 5\nuse_bayes 1\n"
        . "bayes_auto_learn 0\nuse_auto_whitelist 0\nbayes_path $state/bayes\n"});
$sa->init(1);
sub message { local $/; open(my $file, '<:raw', $_[0]) or die $!; $sa->parse(<$file>, $_[1]) }
my @judged;
$sa->init_learner({caller_will_untie => 1, wait_for_lock => 1});
while (my $line = <STDIN>) {
    chomp $line;
    my ($what, $path) = split /\t/, $line;
    if ($what eq 'judge') { push @judged, $path; next }
    my $mail = message($path, 0);
    $sa->learn($mail, undef, $what eq 'spam', 0);
    $mail->finish;
}
$sa->rebuild_learner_caches({});
$sa->finish_learner;
for my $path (@judged) {
    my $mail = message($path, 1);
    my $status = $sa->check($mail);
    printf "%.3f %s\n", $status->get_score, $status->{bayes_score} // 0.5;
    $status->finish; $mail->finish;
}
"""


def spamassassin(train: dict[str, list[str]], judged: list[str], is_spam: list[bool]) -> None:
    lines = [f"{label}\t{path}\n" for label in LABELS for path in train[label]]
    lines += [f"judge\t{path}\n" for path in judged]
    with tempfile.TemporaryDirectory() as state:
        out = subprocess.run(
            ["perl", "-e", PERL, state],
            input="".join(lines),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
    scores, bayes = zip(*(map(float, line.split()) for line in out.splitlines()), strict=True)
    say("SpamAssassin, 5", list(scores), is_spam, [score >= 5 for score in scores])
    say("its Bayes alone, .5", list(bayes), is_spam, [p >= 0.5 for p in bayes])


def sklearn(train: dict[str, list[str]], judged: list[str], is_spam: list[bool]) -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    vectorizer, model = CountVectorizer(input="filename", encoding="latin-1"), MultinomialNB()
    X = vectorizer.fit_transform([path for label in LABELS for path in train[label]])
    model.fit(X, [label == "spam" for label in LABELS for _ in train[label]])
    score = model.predict_joint_log_proba(vectorizer.transform(judged))
    odds = (score[:, 1] - score[:, 0]).tolist()
    say("scikit-learn NB", odds, is_spam, [value > 0 for value in odds])


def main(corpus: Path, only: str = "") -> None:
    paths = {label: sorted(map(str, (corpus / label).iterdir())) for label in LABELS}
    train = {label: paths[label][::2] for label in LABELS}
    judged = [path for label in LABELS for path in paths[label][1::2]]
    is_spam = [label == "spam" for label in LABELS for _ in paths[label][1::2]]
    for name, run in (("scikit-learn", sklearn), ("spamassassin", spamassassin)):
        if only in ("", name):
            run(train, judged, is_spam)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), *sys.argv[2:])
