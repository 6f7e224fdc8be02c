#!/usr/bin/env python3
# Everything that only looks like a declaration.
import argparse
HELP = '''
parser.add_argument("--not-me", default=1)
'''
name = "x"
print(f"{name!r:>{len("parser.add_argument('--nor-me')")}} {{'--this'}}")  # parser.add_argument("--no")
parser = argparse.ArgumentParser()
def add_argument(flag): return flag
add_argument("--own-function")
parser.add_argument("--größe", default='ä"b', help=u'Größe in \u00b5m')
parser \
    .add_argument("--continued", default=r"C:\data", metavar="X") \

parser.add_argument("--bytes", default=b"x")
parser.add_argument("--nested", default=[1, (2, 3)], type=lambda s: s.split(","))
