"""The programs of the pages run, and print what the page says."""

import pathlib
import re
import subprocess
import sys


def test_the_first_program_of_the_page(tmp_path):
    page = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.S).group(1)
    printed = re.search(r"It prints\n\n```\n(.*?)```", page, re.S).group(1)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (printed, "")


def test_the_program_of_the_page_of_all_languages(tmp_path):
    page = (pathlib.Path(__file__).parents[3] / "docs" / "EVERYWHERE.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.S).group(1)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("b'ash' b'Fraxinus'\n", "")
