# SPDX-License-Identifier: GPL-2.0
"""A WSGI application that says which process it runs in."""
import os


def app(_environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"%d\n" % os.getpid()]
