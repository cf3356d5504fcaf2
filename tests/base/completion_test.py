#!/usr/bin/env python3
"""What the programs print for shells and for man(1), tried in the shells.

  tests/base/completion_test.py BIN

BIN has the programs. bash is there wherever the tests run; zsh, fish and groff
are tried where they are installed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path()
PROGRAMS = ["rpc-worker", "tune", "tune-opt", "tune-server", "tunec"]


def run(*command, **more):
    return subprocess.run([str(part) for part in command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, **more)


def printed(program, *arguments):
    done = run(BIN / program, *arguments)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def bash(program, line, folder="."):
    """What bash offers for the last word of the line."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    done = run("bash", "-c", f"""
        {printed(program, "--print-completion", "bash")}
        COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}
        _{program.replace("-", "_")}_complete
        printf '%s\\n' "${{COMPREPLY[@]}}" """, cwd=folder)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.split()


class Completion(unittest.TestCase):
    def test_bash_commands(self):
        commands = bash("tune", "tune ")
        for command in ["run", "jobs", "db", "devices", "explain", "completion"]:
            self.assertIn(command, commands)
        self.assertEqual(bash("tune", "tune expl"), ["explain"])
        self.assertEqual(bash("tune", "tune db im"), ["import"])
        self.assertEqual(bash("tune", "tune --server host:1 db di"), ["diff"])
        self.assertEqual(bash("tune", "tune nonsense im"), [])

    def test_bash_options_and_values(self):
        self.assertIn("--trials", bash("tune", "tune run --tr"))
        self.assertNotIn("--trials", bash("tune", "tune jobs --tr"))
        # Options of the program itself stand after commands, too.
        self.assertIn("--server", bash("tune", "tune db stats --se"))
        self.assertEqual(bash("tune", "tune run --model "), ["xgboost", "random"])
        self.assertEqual(bash("tune", "tune completion "), ["bash", "zsh", "fish"])
        self.assertEqual(bash("tune", "tune best --print tr"), ["trace"])
        self.assertIn("--db", bash("tune-server", "tune-server --d"))
        self.assertEqual(bash("tunec", "tunec --as"), ["--as-is"])

    def test_bash_files(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "program.py").touch()
            self.assertEqual(bash("tune", "tune run pro", folder), ["program.py"])
            self.assertEqual(bash("tunec", "tunec --db pro", folder),
                             ["program.py"])

    def test_scripts_are_valid(self):
        for program in PROGRAMS:
            for shell in ["bash", "zsh", "fish"]:
                if shutil.which(shell) is None:
                    continue
                script = printed(program, "--print-completion", shell)
                done = run(shell, "-n", "/dev/stdin", input=script)
                self.assertEqual((done.returncode, done.stderr), (0, ""),
                                 f"{program} {shell}")

    def test_every_option_is_in_every_script(self):
        for program in PROGRAMS:
            options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+",
                                     printed(program, "--help")))
            for shell, form in [("bash", "{}"), ("zsh", "{}["),
                                ("fish", "-l {}")]:
                script = printed(program, "--print-completion", shell)
                for option in options:
                    name = option[2:] if shell == "fish" else option
                    self.assertIn(form.format(name), script, (program, shell))

    @unittest.skipIf(shutil.which("fish") is None, "fish is not installed")
    def test_fish(self):
        def offered(line):
            script = printed("tune", "--print-completion", "fish")
            done = run("fish", "--no-config", "-c",
                       f"source /dev/stdin; complete -C '{line}'", input=script)
            return [one.split("\t")[0] for one in done.stdout.splitlines()]
        self.assertEqual(offered("tune expl"), ["explain"])
        self.assertEqual(offered("tune db im"), ["import"])
        self.assertIn("xgboost", offered("tune run --model "))

    def test_the_command_of_tune(self):
        for shell in ["bash", "zsh", "fish"]:
            self.assertEqual(printed("tune", "completion", shell),
                             printed("tune", "--print-completion", shell))
        for arguments in [["completion", "csh"], ["--print-completion", "csh"]]:
            done = run(BIN / "tune", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stdout, "")
            self.assertIn("csh", done.stderr)


class ManPages(unittest.TestCase):
    def test_have_all_parts(self):
        page = printed("tune", "--print-man")
        for part in [".TH TUNE 1", ".SH SYNOPSIS", ".SH COMMANDS",
                     r"\fBtune db import\fR", r"\fB\-\-trials\fR",
                     r"\fBTUNE_SERVER\fR", r"\fBtunec\fR(1)"]:
            self.assertIn(part, page)
        self.assertIn(".SH ARGUMENTS", printed("tunec", "--print-man"))

    @unittest.skipIf(shutil.which("groff") is None, "groff is not installed")
    def test_groff_has_no_warnings(self):
        for program in PROGRAMS:
            done = run("groff", "-man", "-ww", "-Tutf8",
                       input=printed(program, "--print-man"),
                       env={**os.environ, "LC_ALL": "C.UTF-8"})
            self.assertEqual((done.returncode, done.stderr), (0, ""), program)
            self.assertIn("SYNOPSIS", re.sub(r".\x08|\x1b\[\d*m", "",
                                             done.stdout))


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
