# SPDX-License-Identifier: Apache-2.0
"""What docs/python.md and README.md show is what happens."""
import doctest
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Docs(unittest.TestCase):
    def setUp(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(ROOT)

    def test_pages(self):
        for page, least in (("docs/python.md", 20), ("README.md", 2)):
            blocks = re.sub(r"^```.*$", "", "\n\n".join(re.findall(r"^```pycon\n.*?^```$", (ROOT / page).read_text(encoding="utf-8"),
                                                                  re.M | re.S)), flags=re.M)
            report = []
            with self.subTest(page):
                done = doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(blocks, {}, page, page, 0), out=report.append)
                self.assertEqual(done.failed, 0, "".join(report))
                self.assertGreaterEqual(done.attempted, least)


if __name__ == "__main__":
    unittest.main()
