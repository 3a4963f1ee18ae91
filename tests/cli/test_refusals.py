"""Wrong command lines: one line on standard error that says what is wrong, and the exit status.

A row is a command line, and what is said of it; `$NAME` stands for a path (see `places`).
"""

import errno
import json
import re
import resource
import shlex
import signal
import socket
from functools import partial

import click
import pytest

import nbspam as library
from nbspam.cli import main, serving
from nbspam.errors import InputError
from nbspam.server import supervisor, worker
from nbspam.store import modelfile
from support import SPAM, complains, make_maildir, raising, run_nbspam, write_files

# Wrong usage: status 2.
USAGE = r"""
words x | unexpected extra argument (x); give a model with -m, or see `nbspam words --help`
--pears | no such option before the command; give it after the command, or see `nbspam --help`
classify --fp-cost | Option '--fp-cost' requires an argument; see `nbspam classify --help`
classify -m "" | nbspam: --model-file '': no name of a file here; give one
train $FOLDER -m s3://a/m.nbspam | s3://a/m.nbspam: no name of a file here; give one
eval $FOLDER --errors "" | nbspam: --errors '': no name of a file here; give one
shard 1/2 $FOLDER -o none/ | nbspam: --output none/: no name of a file here; give one
classify --modle-file x | --modle-file: no such option; did you mean --model-file?
cluster | Missing
classify --fp-cost x | nbspam: --fp-cost x: not a number above 0; a miss costs 1
classify --jobs 0 | nbspam: --jobs 0 is not in the range x>=1; see `nbspam classify --help`
cluster -k 2 --restarts 10001 | nbspam: --restarts 10001 is not in the range 1<=x<=10000
cluster -k 2 --start x --restarts 9 | --restarts: EM starts from --start; leave out one
cluster -k 2 --start x --seed 9 | --seed: EM starts from --start; leave out one
table train --restarts 10001 | --restarts 10001 is not in the range 0<=x<=10000
prune --half-life nan | nbspam: --half-life nan is not a number; see `nbspam prune --help`
prune --half-life 0 | --half-life 0.0 is not in the range x>0
filter "a b" | a b: the message comes by standard input; write: nbspam filter < 'a b'
filter given#2 | given#2: the message comes by standard input; write: nbspam filter < FILE
filter --sure .9 | --sure: for --learn confident; give it, too
setup work | work: not an account; write imaps://USER@HOST/, or [account.NAME] into
sort $BOX --log json | --log: for --watch; give it, too
sort $BOX --flag S | --flag S: not a letter that people set (programs set P, R, S and T); give --f
sort $BOX --flag F --spam-folder .S | --spam-folder: no mail moves with --flag; leave one of
sort $BOX --metrics 0 | --metrics: for --watch; give it, too
serve --socket-mode 9 | --socket-mode 9: not three digits from 0 to 7; write 660 for
classify --prior spam=nan $FOLDER | --prior: not shares between 0 and 1
train --format mbx $FOLDER | --format 'mbx' is not one of 'eml', 'mbox'
table train --format mbox $MELONS | --format 'mbox' is not one of 'csv', 'tsv', 'jsonl'; see
table train --order 101 | --order 101 is not in the range 1<=x<=100
classify --prior spam | nbspam: --prior spam: not NAME=P; write it as --prior spam=0.8
classify --prior estimated --prior spam=.8 | nbspam: --prior estimated: not NAME=P; write it as
classify --prior spam=.1 --prior spam=.9 | --prior names a class twice; give each class one share
shard 1/2 $FOLDER | Missing option '-o' / '--output'
shard 1/2 $FOLDER -o $OTHER --max-parents 2 | --max-parents: no such option
shard 1/2 $FOLDER -o $OTHER --model tan | --model tan needs all documents at once
shard 0/4 $FOLDER -o $OTHER | 0/4: not I/N; shards are numbered from 1: the first of four is 1/4
help trian | no command 'trian'; did you mean train?
trian | no command 'trian'; did you mean train?
help table tune | no command 'tune'; see `nbspam table --help`
help train x | nbspam train has no commands; leave out x

predict --unsure-cost 0.7 | with --fp-cost 2 give less than 0.667
explain --loss x --fp-cost 1 | --loss: it has all costs
classify --loss none | --loss none: No such file
predict --loss loss | --loss loss: not JSON; write {
explain --loss deep | --loss deep: not JSON
classify --loss large | --loss large: more than 1,048,576 bytes
predict --loss list | --loss list: not an object with "actions" and "loss"

eval $FOLDER --cv 3 | the smallest class, ham, has 2 different messages
eval $FOLDER --cv 2 --test x | two ways to judge
eval $FOLDER --alpha 1 | --alpha: only for training
eval $FOLDER --cv 2 --alpha -1 | not a number from 0 up
eval $FOLDER --cv 2 --label work | write it as --label work=mail/work
eval $FOLDER --cv all | --cv all: not a number of folds
eval $FOLDER --cv 2 --seed 99999999999 | --seed 99999999999 is not in the range 0<=x<=4294967295
eval $FOLDER --online --test x | --test and --online
eval $FOLDER --policy error | --policy: only online
eval $FOLDER --cv 2 --order name | --order: only online
eval $FOLDER --online --min-df 2 | --min-df
eval $FOLDER --online --model bernoulli | --preset mail
eval --ham $FOLDER/ham --online | only one class (ham)
eval $FOLDER --errors none/x.tsv | --errors none/x.tsv: there is no folder none
eval $FOLDER --errors folder | --errors folder: a folder; give a file
eval $FOLDER --cv 2 --errors - --json | --errors -: not beside --json
eval $FOLDER --plot - --json | --plot -: not beside --json; give a file's name
eval $FOLDER --errors ./a.svg --plot a.svg | --errors ./a.svg: the same file twice
eval gone --cv 2 --plot a.pdf | --plot a.pdf: neither .png nor .svg; end the name in one
table info -m $TABLE --plot - | --plot -: neither .png nor .svg; end the name in one
eval gone --cv 2 --per-week 9 | --per-week: for the report
eval gone --per-week 1000000000001 | is not in the range 1<=x<=1000000000000
eval gone --cv 2 --report - | --report -: not a name of HTML; give one that ends in .html
compare gone --against --pairs --report page.pdf | --report page.pdf: not a name of HTML
explain gone --report no/page.html | --report no/page.html: there is no folder no
table explain gone --factors --report a.html | --report and --factors: two forms of answer
explain gone --brief --json | --brief and --json: two forms of answer
table explain gone --factors -n 3 | --number and --factors: two forms of answer
cluster gone -k 2 --assignments -n 3 | --number and --assignments: two forms of answer
cluster gone -k 2 --assignments --json --trace | --trace and --assignments --json: two forms
table explain gone --factors --brief | --brief and --factors: two forms of answer
compare $FOLDER --against --pears | --against '--pears': --pears: no such option
compare $FOLDER --against "'" | give options of `nbspam train`
compare $TEXTS --against '--preset mail' | --preset mail says how tables are read; give it to all
compare $FOLDER --against stray | give options of `nbspam train`
compare $FOLDER --against --help | give options of `nbspam train`
compare $FOLDER --against --pairs --online --cv 2 | --cv and --online: two ways to judge
compare $FOLDER | compare: one way of training; add another, such as: --against
compare $FOLDER --model multinomial | such as: --against '--model bernoulli'
table compare $LIHANG --target Y | such as: --against '--model aode'
export --format csv | 'csv' is not one of 'jsonl', 'bogoutil'
update --ham $ONE --spam $BOX $NEW | new.eml: states no class, and the options state spam, ham
train --ham $ONE --spam $BOX $NEW | give it an option of its own, or quote the pattern of the files
vectorize $TEXTS -o x.npz --vocabulary given --min-df 2 | --min-df
vectorize $TEXTS -o x.npz --vocabulary twice | a token stands twice in the vocabulary; name each
vectorize ./given.csv -o given.csv | --output given.csv: the same file twice
vectorize --label a=./given.csv -o given.csv | --output given.csv: the same file twice
vectorize --files0-from listed -o given.csv | --output given.csv: the same file twice
tune $FOLDER --unsure-cost 9 | --unsure-cost 9
doubts --ham $FOLDER/ham | only the class ham
doubts --ham $FOLDER/ham --spam $NEW | fewer than two different messages of class spam
doubts -0 --json $FOLDER | two forms of answer
classify --csv -0 | -0 and --csv: two forms of answer; leave out one
share snapshot new --users users | share snapshot: --users is for join; leave it out
allow "a b" | a b: no address; write ann@example.org, example.org, list:ID or
allow --trust "a b" | --trust a b: no name of a server; give the first word
deny --forget | --forget: no address; name those to take off the list
query --target class | model has no network; train one beside it: nbspam train SOURCE
table query -m $TABLE --target Y | train one beside it: nbspam table train SOURCE

words -m $TABLE | use: nbspam table info
relabel --to y x -m $TABLE | use: nbspam table unlearn
merge $TABLE $TABLE -o $OTHER | use: nbspam table merge
tune x -m $TABLE | see: nbspam table
prune -m $TABLE | see: nbspam table
filter -m $TABLE | see: nbspam table
train --spam x --ham ham --ham ./x | ./x: given as spam and as ham; give each class its own
train x --target y | --target: for tables; use: nbspam table train
table eval x --target y | --target: only for training; add --cv K or --test SOURCE
table eval x --cv 2 | --cv, --test: train a new model; say --target COLUMN, too
table eval x --online | --online: for mail and text; use: nbspam eval
table cluster x -k 2 --min-df 3 | --min-df: for mail and text; use: nbspam cluster
train $FOLDER --hard -m $OTHER | --rounds, --epsilon: for --unlabelled PATH; give it too
classify --format csv imaps://ann@x/INBOX | imaps://ann@x/INBOX: mail, and no csv; leave

table query $NETWORK | the model by -m FILE
table query -m $NETWORK --target 好瓜 --seed 1 | --seed: for --gibbs N; give it, too
table query -m $NETWORK --target 好瓜=x | target 好瓜=x: no such value; choose from: 是, 否
table query -m $NETWORK --evidence 大小=1 --target 好瓜 | evidence '大小': no such
table query -m $NETWORK --evidence 敲声=x --target 好瓜 | 敲声=x: no such value
table query -m $NETWORK --evidence 敲声 --target 好瓜 | 敲声: not NAME=VALUE
table query -m $NETWORK --target x | target 'x': no such variable
table query -m $NETWORK --target 好瓜 --target 好瓜 | name each once
table query -m $NETWORK --target 好瓜 --evidence 好瓜=是 | among the evidence
table query -m $NETWORK --target 好瓜 --evidence 甜度=高 甜度=低 | has a value already
table query -m $NETWORK 甜度=高 | say --target NAME too
table query -m $NETWORK --gibbs 100 | say --target NAME too
table query -m $NETWORK --independent 好瓜 甜度 --target 好瓜 | --target and --independent: two
table query -m $NETWORK --target 好瓜 --moral | --target and --moral: two forms of answer
table query -m $NETWORK --dot --moral --json | --json and --dot: two forms of answer; leave out
table query -m $NETWORK --target 好瓜 --gibbs 1000000000001 | from 40 to 1,000,000,000,000
table query -m $NETWORK --independent 好瓜 好瓜 | not two variables without evidence; name
table query -m other.json | not a network
table query -m round.json | round.json: its arrows lead round in a circle; remove one
table train $MELONS --target 好瓜 --model tan --criterion aic -m $OTHER | --criterion
table train $LIHANG --target Y --model aode --order 2 -m $OTHER | --order: --model aode has no such
table train $LIHANG --target Y --drop X2 --model multinomial --root X1 -m $OTHER | has no such
table train $LIHANG --target Y --model tan --root d -m $OTHER | --root d: no such column; choose
table train $MELONS --target 好瓜 --model network --max-parents 0 -m $OTHER | max-parents

table train $LIHANG --target Y -m $OTHER --values X2=S --values X2=L | --values X2: stated twice;
table train $LIHANG --target Y -m $OTHER --dirichlet Y=1,1 --dirichlet Y=2,2 | Y: stated twice;
table eval $LIHANG --target Y --cv 7 | has 6 rows
table train long.csv --target y --model aode -m $OTHER | 9,000 values need 1.2 GiB, more than the 1
train $CORPUS --model network --features 40 --max-parents 39 | need 8,192.0 GiB, more than the 0.5
train bad.csv --encoding utf-9 | --encoding utf-9: unknown
table train bad.csv --target label --encoding utf-9 -m $OTHER | --encoding utf-9: unknown

table train $LIHANG --target Y --structure no-column -m $OTHER | 'size' is no column; choose from:
table train $LIHANG --target Y --structure no-list -m $OTHER | not a structure; write {"child": [
table train $LIHANG --target Y --structure circle -m $OTHER | its arrows lead round in a circle
table train $LIHANG --target Y --structure no-values -m $OTHER | not a structure
table train $LIHANG --target Y --structure three -m $OTHER | --structure three: not a structure
table train $LIHANG --target Y --structure no-pair -m $OTHER | not a structure
table train $LIHANG --target Y --structure graph --start tree -m $OTHER | --start: the search
table train $LIHANG --target Y --structure graph --max-parents 2 -m $OTHER | --max-parents: for a
table train $LIHANG --target Y --structure graph --model tan -m $OTHER | not for --model tan
table train $LIHANG --target Y --structure graph --class-prior uniform -m $OTHER | structure gives

prune -m features | features: a model of dependent tokens, only for classify, predict
tune $FOLDER -m features | features: a model of dependent tokens, only for classify, predict
sort $BOX -m features | features: a model of dependent tokens, only for classify, predict
export -m features | features: a model of dependent tokens, only for classify, predict
filter -m features | features: a model of dependent tokens, only for classify, predict
sort $BOX -m $TABLE | $TABLE: the model of a table; see: nbspam table
update $FOLDER -m features | features: a model of kind features, which cannot learn
unlearn $FOLDER -m features | features: a model of kind features, which cannot learn
relabel --to ham $FOLDER -m features | features: a model of kind features, which cannot learn
unlearn $FOLDER -m unledgered | unledgered: has no ledger, so it does not know which messages
relabel --to ham $FOLDER -m unledgered | train it again without --no-ledger
table merge $TABLE $MODEL -o $OTHER | $MODEL: not a model of a table; name models of one kind
table merge $MODEL $TABLE -o $OTHER | the model of a table; see: nbspam table
train $TEXTS --vocabulary given -m $OTHER | --vocabulary: for bernoulli, multinomial
train $TEXTS --model tan --vocabulary given -m $OTHER | --vocabulary: for bernoulli, multinomial
train $TEXTS --model bernoulli --min-df 2 --vocabulary given -m $OTHER | --min-df, --max-features:
train $TEXTS --model bernoulli --no-ledger --vocabulary given -m $OTHER | with --vocabulary
train $TEXTS --unlabelled $TEXTS --vocabulary given -m $OTHER | not for EM
train $TEXTS --model bernoulli --vocabulary twice -m $OTHER | a token is there twice, as 'a' and
train $TEXTS --model bernoulli --vocabulary halved -m $OTHER | 2g:half: a pair has two words; give
train $TEXTS --no-ledger --unlabelled x -m $OTHER | not for EM; leave that out
train $TEXTS --no-ledger --model tan -m $OTHER | nbspam: --no-ledger: not for --model tan; l
train $TEXTS --sent $BOX -m $OTHER | this model is of texts
train $FOLDER --sent $BOX --unlabelled $TEXTS -m $OTHER | not for EM
train $FOLDER --model bernoulli --criterion aic -m $OTHER | --criterion
train $CORPUS --model a2de --features 2000 -m $OTHER | values cubed
train $TEXTS --model bernoulli --weighting counts | sees only whether a token is in a document
train $FOLDER --engine dusk | --engine dusk: unknown; choose from fork, dask, loky, ray, or dask:A
train $FOLDER --engine dask: | --engine dask:: unknown; choose from fork, dask, loky, ray, or
table eval $MELONS --target 好瓜 --test $MELONS --engine loky | --engine: for --cv; --test trains
train $TEXTS --unlabelled $FOLDER --unlabelled-weight -1 | --unlabelled-weight -1
train $TEXTS --unlabelled-weight 1 | --unlabelled PATH
train $TEXTS --unlabelled $FOLDER --model complement | bernoulli or multinomial
train $TEXTS --unlabelled $FOLDER --model bernoulli --weighting tf-idf | tf-idf: --model
train $TEXTS --unlabelled $FOLDER --alpha 0 | --alpha 0
train $TEXTS --model aode --dirichlet 2,5 -m $OTHER | no other class_prior or dirichlet enters
train $TEXTS --unlabelled $FOLDER --max-features 5 | --max-features: not for EM; leave it out
train $TEXTS --unlabelled $FOLDER --min-df 1000 | --min-df 1000
train $TEXTS --dirichlet label=3,7 --class-prior uniform | gives the classes a prior, as --class
train $TEXTS --dirichlet text=3,7 | --dirichlet text: not the column of the classes
train $TEXTS --dirichlet 1,1 --dirichlet 2,2 | only the classes have such a prior
train $TEXTS --dirichlet 1,2,3 | 3 numbers for 2 classes; give one for each
train $TEXTS --dirichlet 1,2 --estimate mle | --dirichlet: --estimate mle adds nothing; leave
table train $LIHANG --target Y --alpha 2 --estimate mle -m $OTHER | --alpha: --estimate mle adds
table train $MELONS --target 好瓜 --hard -m $OTHER | for rows without a class; say --em or
table train $MELONS --target 好瓜 --em --unlabelled-weight auto -m $OTHER | auto: not a number
table train $MELONS --target 好瓜 --em --model tan -m $OTHER | tan: not possible with EM
table cluster $MELONS -k 2 --alpha auto | --alpha auto: not a number from 0 up
table cluster $MELONS -k 18 | -k 18: not from 2 to the number of rows, 17; give
table cluster -k 2 --files0-from nothing | -k 2: not from 2 to the number of rows, 0; give
classify $FOLDER --prior eggs=0.3 | nbspam: --prior
eval $FOLDER --model aode --online | --online: not for
compare $FOLDER --online --against '--model tan' | --online: not for --model tan
table compare $LIHANG --target Y --against '--target y' | give it outside the quotes
table compare $LIHANG --target Y --against --pairs | give options of `nbspam table train`
sort $BOX -m $MODEL --loss asks | --loss: it is for ham, spam and unsure, but the labels are ask;
sort $BOX -m $MODEL --spam-folder ../x/y | not the name of a Maildir folder
sort $BOX -m $MODEL --spam-folder .Unsure | $BOX: one folder for two kinds of mail (.unsure,
"""
# What is given cannot be read: status 1.
UNREADABLE = r"""
table query -m no.json | no.json: No such file
table query -m $MELONS | not a model
table query -m broken.json | not JSON
doubts $FOLDER/ham | none has a label
eval --files0-from nothing | sources: no messages to judge; give some
tune --files0-from nothing | sources: no messages to judge; give some
table eval -m $TABLE --files0-from nothing | sources: no rows to judge; give some
doubts -m nowhere $FOLDER | nowhere: no such model; train one with: nbspam train SOURCE -m nowhere
table classify -m no | no: no such model; train one with: nbspam table train SOURCE --target NAME
table unlearn -m no | no: no such model; train one with: nbspam table train SOURCE --target NAME
table merge no $TABLE -o $OTHER | no: no such model; give the names of models or parts
merge no part2 -o $OTHER | no: no such model; give the names of models or parts
table classify -m $MELONS/m | m: cannot read the model: Not a directory; give another with -m
merge truncated $MODEL -o $OTHER | its header says 4096); write it again as it was made
table classify $FOLDER -m $TABLE | a folder; give a table
table classify $LIHANG#99 -m $TABLE | #99: no such row there; check its name
table update -m $TABLE $ROWS | no column 'Y', which the model has learned from
table unlearn -m $TABLE strange.csv | strange.csv#1: not learned like this, or not so often
train --spam $FOLDER/spam --model aode | two classes
train --spam $FOLDER/spam | only one class (spam)
train $FOLDER --model aode --min-df 99 | no token is in enough messages; lower --min-df
train $FOLDER --min-df 99 -m $OTHER | no token is in enough messages; lower --min-df
train $FOLDER --alpha 1e19 -m $OTHER | not written (settings: alpha: 1e+19); use smaller numbers
table train huge.csv --target y --model multinomial -m $OTHER | feature_count_: out of range); use
train $TEXTS --model bernoulli --vocabulary gone -m $OTHER | give a file of tokens
train $TEXTS --model bernoulli --vocabulary blank -m $OTHER | blank: no token in it
table train $LIHANG --target Y --structure gone -m $OTHER | gone: No such file
train $FOLDER -m $MELONS/m | cannot be written: Not a directory
train $ROWS --label-column class | X1, X2
table cluster $MELONS -k 2 --drop x | no column 'x'
table cluster empty.csv -k 2 | no column has a value; give some
table classify four.csv -m $TABLE | has 4 cells, and none names a column of the model (X1, X2, Y)
table train iris.arff --target Y -m $OTHER | iris.arff: a table in a format that is not read; save
train bad.csv --encoding utf-8 | bad.csv: line 3: not utf-8; give another --encoding
classify -m $PART | $PART: a part of a training, and not a model yet; add it
update --spam - -m $PART | $PART: a part of a training, and not a model yet; add it
"""
# Commands for models of mail and of tables refuse each other's.
FOR_BOTH = "classify", "predict", "explain", "eval", "info", "export", "query", "update", "unlearn"
OF_TABLE = [
    f"{name} -m $TABLE | the model of a table; use: nbspam table {name}" for name in FOR_BOTH
]
OF_MAIL = [
    f"table {name} | a model of mail or text; give a table's by -m, or use: nbspam {name}"
    for name in FOR_BOTH
]
# What needs classes says so before it waits for standard input.
LABELLED = "train", "eval", "update", "tune", "doubts", "shard 1/2 -o x"
LABELLED += ("compare --against --pairs",)
UNLABELLED = [
    f"{line} | nbspam: {name}: no SOURCE, and mail on standard input states no class; give"
    f" labelled mail, such as: nbspam {name} mails/, or: nbspam {name} --spam PATH --ham PATH"
    for line, name in ((line, line.split()[0]) for line in LABELLED)
]
ROWS = [(2, row) for row in [*USAGE.split("\n"), *OF_TABLE, *OF_MAIL, *UNLABELLED]]
ROWS += [(1, row) for row in UNREADABLE.split("\n")]
FILES = {
    "loss": b"{",
    "asks": b'{"actions": ["ask"], "loss": {"ham": [0], "spam": [0]}}',
    "deep": b"[" * 100_000,
    "large": b" " * (1 << 20) + b"1",
    "list": b"[]",
    "nothing": b"",
    "broken.json": b'{"variables": [',
    "other.json": b"[1, 2]",
    "round.json": b'{"variables": [{"name": "a", "values": [""], "parents": ["a"], "table": []}]}',
    "truncated": modelfile._header(4096, 0) + b"x",
    "empty.csv": b"a,b\n?,\n,?\n",
    "strange.csv": b"X1,X2,Y\n9,S,1\n",
    "four.csv": b"a,b,c,d\n1,2,3,4\n",
    "huge.csv": b"x,y\n9e17,a\n9e17,a\n2,b\n",
    "bad.csv": b"label,text\nham,x\nspam,\xff\n",
    "iris.arff": b"@relation iris\n",
    "long.csv": b"v,w,y\na0,b0,0\n"
    + b"".join(b"a%d,b%d,%d\n" % (i, i, i % 2) for i in range(4500)),
    "given": b"x\ny\n",
    "listed": b"given.csv\0",
    "twice": b"a\na\n",
    "halved": b"2g:half\n",
    "blank": b"\n",
    # structures
    "graph": b'{"Y": ["X1"]}',
    "no-column": b'[["size", "Y"]]',
    "no-list": b'{"X1": "Y"}',
    "circle": b'[["X1", "X2"], ["X2", "X1"]]',
    "no-values": b'{"variables": [{"name": "X1"}]}',
    "no-pair": b'[["a"]]',
    "three": b"3",
}


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path: path.read_bytes() for path in files}


def test_each_wrong_command_line_is_refused_in_one_line(nbspam, places, tmp_path, monkeypatch):
    write_files(tmp_path, FILES)
    for name in ("folder", "folder.png"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    library.train(places["FOLDER"], ledger=False).save("unledgered")
    library.train(places["FOLDER"], model="aode", max_features=9).save("features")
    before = contents(tmp_path)
    for status, row in filter(lambda each: each[1], ROWS):
        for name in sorted(places, key=len, reverse=True):
            row = row.replace(f"${name}", str(places[name]))
        line, said = row.split(" | ")
        assert complains(nbspam(*shlex.split(line), stdin=SPAM), status, said), row
    assert contents(tmp_path) == before

    monkeypatch.setattr("os.access", lambda path, mode: path != str(tmp_path))
    for option in ("--report", "--errors"):
        page = tmp_path / "page.html"
        done = nbspam("eval", places["FOLDER"], "--cv", "2", option, page)
        assert complains(done, 2, f"{option} {page}: cannot be written; give another name")


# ---- `nbspam serve` refuses what cannot be served, in one line ----


@pytest.fixture(autouse=True)
def no_server(monkeypatch):
    """Fail where a test would really serve."""

    monkeypatch.setattr(supervisor.Supervisor, "run", raising(AssertionError("it serves")))


def test_wrong_options_are_refused(nbspam, trained, tmp_path, monkeypatch):
    monkeypatch.delattr(socket, "SO_PEERCRED", raising=False)  # as on macOS
    password = tmp_path / "password"
    password.write_text("\nsecret\n")
    write_files(tmp_path, {"loss": b'{"actions": ["ask"], "loss": {"ham": [0], "spam": [0]}}'})
    no_users = "--review none: No such file or directory; with --users, give the folder of mail"
    no_maildir = "--move: --review . is no Maildir, and only in one can messages be moved; give"
    no_password = f"{password}: its first line is empty; write a password"
    no_http = "--password-file: for --http ADDRESS; give it, too"
    no_labels = "--loss: it is for ham, spam and unsure, but the labels are ask; leave it out"
    make_maildir(tmp_path / "box")
    lists = make_maildir(tmp_path / "box" / ".Lists")
    for options, status, words in [
        ("", 2, "no address to listen on; give --spamd ADDRESS or --http ADDRESS or --milter"),
        ("--spamd here", 2, "--spamd here: not an address; write HOST:PORT, or a path"),
        ("--spamd /none/a/b", 1, "--spamd /none/a/b: no folder /none/a; make it"),
        ("--http 192.0.2.1:7", 1, "requested address; give another address"),
        ("--http 0 --password-file none", 1, "--password-file none: No such file"),
        (f"--http 0 --password-file {password}", 1, no_password),
        ("--milter 0 --reject-above 2", 2, "--reject-above"),
        ("--spamd 0 --reject-above .9", 2, "--reject-above: for --milter ADDRESS; give it, too"),
        ("--http 0 --quarantine-above .9", 2, "--quarantine-above: for --milter ADDRESS; give it"),
        ("--http 0 --allow-tell", 2, "--allow-tell: for --spamd ADDRESS; give it, too"),
        (f"--spamd 0 --password-file {__file__}", 2, no_http),
        ("--http 0 --subject-tag X", 2, "--subject-tag: for --spamd or --milter ADDRESS; give it"),
        ("--http 0 --bogosity", 2, "--bogosity: for --spamd or --milter ADDRESS; give it, too"),
        ("--spamd 0 --socket-mode 600", 2, "--socket-mode: for a socket at a PATH; give it, too"),
        ("--spamd 0 --socket-group x", 2, "--socket-group: for a socket at a PATH; give it, too"),
        ("--milter 0 --when-busy wait", 2, "--when-busy"),
        ("--spamd 0 --log xml", 2, "--log"),
        (f"-m {trained} --spamd 0 --jobs 1000", 2, "--jobs 1000: more than 64 workers; give"),
        (f"-m {trained} --spamd 0 --loss {tmp_path}/loss", 2, no_labels),
        ("--milter 0 --subject-tag spämchen", 2, "--subject-tag 'spämchen': not printable ASCII"),
        ("--spamd 0 --report-teaches", 2, "--report-teaches: for --allow-tell; give it, too"),
        ("--spamd 0 --peer-users", 2, "--peer-users: this system does not say who connects; l"),
        ("--spamd 0 --review box", 2, "--review box: shown on a page; give --web"),
        ("--web 0 --review none", 1, "--review none: no such mailbox; give a Maildir"),
        ("--web 0 --users u --review none", 1, no_users),
        ("--web 0 --move", 2, "--move: moves the mail that --review shows; give --review"),
        ("--web 0 --review . --move", 2, no_maildir),
        (f"--web 0 --review {lists} --move", 2, f"{lists}: a folder of a Maildir, and mail"),
        ("--web 0.0.0.0:0", 2, "other machines can reach it"),
    ]:
        assert complains(nbspam("serve", *options.split()), status, words)
    monkeypatch.setattr(socket, "SO_PEERCRED", 17, raising=False)  # as on Linux
    unused = nbspam("serve", "--spamd", 0, "--peer-users")
    assert complains(unused, 2, "--peer-users: for a socket at a PATH; give it, too")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = nbspam("serve", "-m", trained, "--spamd", port)
    said = f"--spamd 127.0.0.1:{port}: Address already in use; give another address"
    assert complains(found, 1, said)


NO_MEMORY = "out of memory; allow more (ulimit -v), or give less mail at once"


def test_a_system_that_grants_too_little_is_told_in_one_line(nbspam, trained, monkeypatch):
    for error, said in (
        (MemoryError(), NO_MEMORY),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), NO_MEMORY),
        (ModuleNotFoundError("No module named '_x'", name="_lzma"), "built without _lzma; inst"),
        (OSError(errno.EMFILE, "Too many open files"), "open files; allow more (ulimit -n)"),
        (OSError(errno.EAGAIN, "x"), "too many processes; allow more (ulimit -u), or use one (-j"),
        (BlockingIOError(errno.EAGAIN, "write could not complete", 0), "standard output: write"),
        (FileNotFoundError(errno.ENOENT, "of getcwd"), "the current folder was removed; change"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "a.zip/x"), "a.zip/x: Not a dir"),
    ):
        monkeypatch.setattr(supervisor.Supervisor, "run", raising(error))
        assert complains(nbspam("serve", "-m", trained, "--spamd", "0"), 1, said)
    for error in (LookupError("unknown encoding: euc-jp"), SystemError("NULL")):
        monkeypatch.setattr(main.CommandGroup, "make_context", raising(error))
        with pytest.raises(type(error)):
            nbspam("classify")
        with monkeypatch.context() as patch:
            patch.setattr(main, "_FOR_NUMPY", 1 << 60)  # too little memory explains it
            assert complains(nbspam("classify"), 1, NO_MEMORY)


def test_a_word_that_the_encoding_of_the_locale_lacks_is_refused(nbspam, folder):
    """As Python reads 日 in UTF-8 where the locale is ja_JP.eucJP."""
    said = r"-m m\ud897: not text in utf-8, the locale's encoding; set LC_ALL=C.UTF-8"
    assert complains(nbspam("train", folder, "-m", "m\ud897"), 2, said)
    status, out, err = nbspam("filter", "-m", "m\ud897", stdin=SPAM)
    assert (status, out, said in err) == (2, SPAM.decode(), True)


@pytest.mark.parametrize("megabytes", [70, 80, 90])
def test_a_system_that_has_too_few_addresses_for_numpy_is_told_in_one_line(trained, megabytes):
    most = megabytes << 20, resource.RLIM_INFINITY
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, most)
    found = run_nbspam("serve", "-m", trained, "--spamd", "0", preexec_fn=limit)
    assert complains(found, 1, NO_MEMORY)
    found = run_nbspam("filter", "-m", trained, input=SPAM.decode(), preexec_fn=limit)
    assert complains(found, 1, NO_MEMORY)
    assert found[1] == SPAM.decode()


@pytest.mark.parametrize("rows", ["sea\tship sail\nsky\tcloud wing\n", "ham\ttea\nspam\tpills\n"])
def test_a_model_of_other_classes_or_of_texts_is_refused(nbspam, model, tmp_path, rows):
    (tmp_path / "t.tsv").write_text(rows * 3)
    assert nbspam("train", tmp_path / "t.tsv")[0] == 0
    assert complains(nbspam("serve", "--spamd", "0"), 2, "serve a model of mail, of ham and spam")


def test_a_damaged_secret_stops_the_page_only(nbspam, trained, monkeypatch):
    trained.with_name(f"{trained.name}.secret").write_text("no secret\n")
    trained.with_name(f"{trained.name}.secret").chmod(0o600)
    shown = []
    monkeypatch.setattr(
        supervisor.Supervisor, "run", lambda self: shown.extend(dict(self.service.listeners))
    )
    why = f"{trained}.secret: not a secret; remove it, and a new one is made"
    assert complains(nbspam("serve", "-m", trained, "--web", "0"), 1, why)
    status, _, err = nbspam("serve", "-m", trained, "--web", "0", "--spamd", "0")
    assert (status, shown) == (0, ["spamd"])
    assert f"{why}; there is no page until this is mended and SIGHUP sent" in err


def test_a_protocol_whose_library_is_missing_says_what_to_install(nbspam, trained, monkeypatch):
    worker.protocol.cache_clear()  # another test may have served by them
    for name, extra in (("http", "serve"), ("web", "web")):
        monkeypatch.setitem(worker.PROTOCOLS, name, ("nbspam_missing", "X"))
        found = nbspam("serve", "-m", trained, f"--{name}", "0")

        assert complains(found, 2, f"--{name}: needs nbspam_missing", f"'nbspam[{extra}]'")


def test_a_server_that_begins_is_not_ended_by_a_signal_to_read_its_choices(nbspam, monkeypatch):
    seen = []

    def begin(*_, **__):
        seen.extend(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        raise InputError("begun")

    monkeypatch.setattr(serving, "server_choices", begin)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert complains(nbspam("serve", "--spamd", "0"), 1, "begun")
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert signal.SIGHUP in seen


@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"n\n", 2), (b"\n", 2)])
def test_a_model_that_is_not_there_is_asked_about_at_a_terminal(
    nbspam, tmp_path, monkeypatch, answer, status
):
    monkeypatch.setattr(supervisor.Supervisor, "run", lambda _: None)
    monkeypatch.setattr("nbspam.cli.output.at_terminal", lambda: True)
    found, _, err = nbspam("serve", "-m", tmp_path / "typo", "--web", "0", stdin=answer)

    assert found == status
    assert err.startswith(f"{tmp_path}/typo: no such model; begin a new one? [y/N]:")
    assert ("/?token=" in err) == (status == 0)
    assert not (tmp_path / "typo").exists()


def test_without_a_terminal_a_model_that_is_not_there_is_told(nbspam, tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor.Supervisor, "run", lambda each: each.reread())
    serve = "serve", "-m", tmp_path / "typo", "--web", "0"
    status, _, err = nbspam(*serve)
    address, told, *again = err.splitlines()  # SIGHUP may lead to another model
    assert again == [address, told]
    monkeypatch.setattr(supervisor.Supervisor, "run", lambda _: None)
    _, _, err = nbspam(*serve, "--log", "json")  # each line is of that form
    page, note = map(json.loads, err.splitlines())

    assert (status, "/?token=" in address) == (0, True)
    assert told == f"nbspam: {tmp_path}/typo: there is no model yet; the first lesson begins one"
    assert (page.keys(), "/?token=" in page["page"]) == ({"page"}, True)
    assert note == {"note": told.removeprefix("nbspam: ")}
    monkeypatch.setattr(click, "echo", raising(OSError(errno.ENOSPC, "No space left on device")))
    assert nbspam(*serve) == nbspam(*serve, "--log", "json") == (0, "", "")


def test_who_lets_strangers_teach_is_warned_and_costs_are_read_at_the_start(
    nbspam, trained, tmp_path, monkeypatch
):
    loss, actions = tmp_path / "loss", []
    loss.write_text('{"actions": ["spam", "ham"], "loss": {"ham": [1, 0], "spam": [0, 1]}}')

    def run(self):
        loss.unlink()
        actions.extend(self.service.choices.rule_of(self.service.model.classifier()).actions)

    monkeypatch.setattr(supervisor.Supervisor, "run", run)
    assert nbspam("serve", "-m", trained, "--spamd", "0", "--loss", loss)[0] == 0
    assert actions == ["spam", "ham"]

    monkeypatch.setattr(supervisor.Supervisor, "run", lambda _: None)
    addresses = "--spamd", "0.0.0.0:0", "--spamd", "0", "--http", "0.0.0.0:0"
    status, _, err = nbspam("serve", "-m", trained, *addresses, "--allow-tell")

    assert status == 0
    told = r"nbspam: --spamd 0\.0\.0\.0:\d+: whoever reaches it from other machines can teach the "
    assert re.fullmatch(f"{told}model\n", err)
    assert nbspam("serve", "-m", trained, "--spamd", "0.0.0.0:0")[2] == ""
    assert nbspam("serve", "-m", trained, "--spamd", "0", "--allow-tell")[2] == ""
