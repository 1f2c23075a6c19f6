"""sft-data: from conversations to tokenized samples for sft-run.

errors.py        what a problem looks like to the user
jsonl.py         strict reading of JSON Lines
conversation.py  which conversations are accepted
template.py      the model's tokenizer and chat template
spans.py         which tokens are trained
prepare.py       the command `prepare`
sample.py        the prepared format; the commands `show` and `check`
cli.py           the command line
"""

__version__ = "0.1.0"
