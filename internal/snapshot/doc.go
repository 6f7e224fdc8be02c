// Package snapshot freezes what a job runs. Take copies the code of the project and of code_save_dir into the job's folder
// and writes snapshot.json beside it: the commit and what differs from it, the interpreter with its packages, the machine.
// Command then points a command line into the copy, so that editing the tree while the job waits, or afterwards, changes
// nothing, and Verify says whether the copy is still what was taken.
//
// Data, checkpoints and large files are not copied. They stay reachable at the same relative place through links to the
// originals, their hashes are recorded, and a change of them is told apart from a change of the code.
//
// What it does not freeze: the installed packages (their versions are recorded), files above the project's folder
// ("../data" from a script at the top), and environment files that hold secrets, which are linked and never copied.
package snapshot
