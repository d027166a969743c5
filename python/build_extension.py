# SPDX-License-Identifier: MIT
"""Builds the extension for one interpreter and puts it where it is loaded from.

Arguments: OUTPUT FOLDER INCLUDE[:INCLUDE] COMPILER-AND-FLAGS...
OUTPUT is what Meson waits for; FOLDER gets the same file under the same name.
"""

import os
import subprocess
import sys


def main(output, folder, include, *command):
    for path in include.split(":"):
        command += ("-isystem", path)
    result = subprocess.run(command + ("-o", output))
    if result.returncode != 0:
        return result.returncode
    # A new name each time: a running interpreter keeps the file it has mapped.
    os.makedirs(folder, exist_ok=True)
    place = os.path.join(folder, os.path.basename(output))
    if os.path.exists(place):
        os.unlink(place)
    os.link(output, place)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
